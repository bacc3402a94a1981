#pragma once

#include <ddrun/device.hpp>
#include <ddrun/error.hpp>
#include <ddrun/log.hpp>
#include <ddrun/nccl.hpp>
#include <ddrun/process_group.hpp>
#include <ddrun/store.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddrun {

struct WorkerOptions {
    // How long from_environment() may wait for the agent's welcome.
    std::chrono::milliseconds agent_timeout = std::chrono::seconds(10);
    // Of every collective call that names none. Long enough for a rank that saves a large
    // checkpoint meanwhile; a dead peer is noticed at once and does not wait for it.
    std::chrono::milliseconds collective_timeout = std::chrono::minutes(5);
    // The most that ProcessGroup::allocate() hands out on each rank. Address space until touched.
    // The same on every rank.
    std::size_t shared_bytes_per_rank = std::size_t{1} << 30;
};

enum class StopReason {
    none,
    requested,  // the agent asked: ddrun was told to stop, or the round ends
    signal,     // SIGTERM, SIGINT or SIGHUP reached this process
    peer_lost,  // another rank died: nothing that needs all ranks can finish
};

struct StopRequest {
    StopReason reason = StopReason::none;
    int signal = 0;  // the signal behind it; 0: none
    // When this process will be killed if it is still there; nullopt: not known.
    std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
};

// One worker of a job: the face of the SDK. Made once, at the start of main(), and kept until the
// end.
//
// Under ddrun it is connected to this node's agent by one socket, served by one thread of its own;
// all members are safe to call from any thread, but for process_group() (see there). Started alone
// (`./train`), it is a world of one: no agent, no socket, no thread, and everything else works.
//
// A process forked from this one must not use it: calls throw Error{invalid_use}, and destruction
// there does nothing. Descriptors of the SDK are closed by exec.
class Worker {
  public:
    // Reads RANK, WORLD_SIZE, ... as ddrun sets them, and connects to the agent. Blocks at most
    // `agent_timeout`. Throws Error{environment} naming the variable, Error{refused} with the
    // agent's words, AgentLost where it does not answer, PeerLost where the round is over already,
    // or Error{system}.
    [[nodiscard]] static Worker from_environment(const WorkerOptions& options = {});

    Worker(Worker&&) noexcept;
    Worker& operator=(Worker&&) noexcept;
    // Leaves the group (peers still waiting for this rank get PeerLost), sends what is unsent for
    // at most a second, joins the thread.
    ~Worker();

    // --- who I am; never blocks, never throws ---

    [[nodiscard]] int rank() const noexcept;  // 0 .. world_size() - 1
    [[nodiscard]] int world_size() const noexcept;
    [[nodiscard]] int local_rank() const noexcept;        // on this node
    [[nodiscard]] int local_world_size() const noexcept;  // workers on this node
    [[nodiscard]] int node_rank() const noexcept;
    [[nodiscard]] int node_count() const noexcept;
    [[nodiscard]] int round() const noexcept;          // 1, and one more after each restart
    [[nodiscard]] int restart_count() const noexcept;  // round() - 1
    [[nodiscard]] const std::string& job_id() const noexcept;

    // Looks for a CUDA driver on the first call (a real one takes tens of milliseconds to answer).
    // Where it finds none, or too few devices for this node's workers, rank 0 says so once on
    // stderr and every rank uses the CPU. Never throws.
    [[nodiscard]] const Device& device();

    [[nodiscard]] Store& store();
    [[nodiscard]] Log& log() noexcept;

    // The group of all ranks. The first call makes it: every rank makes that call; on several nodes
    // it returns when this rank's connections stand. Ends with the Worker. Throws AgentLost,
    // PeerLost, TimedOut after `collective_timeout`, Error{system}.
    [[nodiscard]] ProcessGroup& process_group();

    // A group of some ranks, in rising order; this one must be among them. Each of them makes the
    // call with the same ranks, and makes its calls for groups with common ranks in the same order;
    // the others need not. Must be gone before the Worker is. Throws as process_group();
    // Error{invalid_use} for ranks that are not in the world, not rising, or without this one.
    [[nodiscard]] std::unique_ptr<ProcessGroup> new_group(std::vector<int> ranks);

    // All ranks meet through the agents; needs no process group. Blocks and throws as
    // Store::barrier().
    void barrier(Store::Timeout timeout = Store::default_timeout);

    // New unique ids for one NCCL communicator of all ranks that the program makes itself, the same
    // on every rank: one for each 128 ranks begun, each made by the first rank of its block and
    // handed round through the store. With one rank in 128 or fewer that is one id:
    //
    //     const auto ids = worker.nccl_unique_ids();
    //     ncclUniqueId id;
    //     std::memcpy(&id, &ids.front(), sizeof id);
    //     ncclCommInitRankConfig(&comm, worker.world_size(), id, worker.rank(), &config);
    //
    // and otherwise ncclCommInitRankScalable with all of them. All ranks make the call; each n-th
    // one under a name gives ids of its own, and a new round starts afresh, so that none is used
    // twice. NCCL is loaded by name (DDRUN_NCCL_LIBRARY, else libnccl.so.2); no GPU is needed. Do
    // not ask for ids that are not used: a maker keeps a listener and a thread of NCCL's for each
    // until all ranks have called on it.
    //
    // Blocks until the makers have published, at most `timeout`. Throws what Store::get() throws;
    // Error{environment} where NCCL cannot be loaded; Error{refused} naming both versions where
    // this rank's NCCL is not the makers'; Error{system} in NCCL's words.
    [[nodiscard]] std::vector<NcclUniqueId> nccl_unique_ids(
        std::string_view name = "world", Store::Timeout timeout = std::chrono::minutes(2));

    // --- the life of a training run ---

    // Whether to finish the step, save and end. Cheap: for every step. Never throws. All ranks get
    // the same answer between two collectives of process_group(): a request that reached any rank
    // counts from the next collective on, so every rank leaves its loop at the same step. Without
    // collectives it turns true when the request arrives here. Once true it stays true.
    //
    // The first call arms it: from then on SIGTERM, SIGINT (Ctrl-C) or SIGHUP raises this flag
    // where it would have ended the process; a second one kills. A program that never asks dies of
    // the first.
    [[nodiscard]] bool should_stop();
    // Why; StopReason::none before any request. Tells of this rank's own knowledge at once.
    [[nodiscard]] StopRequest stop_request() const;

    // Alive, and step `step` is finished: feeds the hang detection and the restart budget. Cheap:
    // for every step (sent at most every 50 ms, the newest wins). Never blocks, never throws.
    void progress(std::int64_t step) noexcept;

    // Another attempt would fail the same way (wrong data, wrong settings): tells the agent and
    // throws Error{never_retry}, whose exit_code() is 93.
    [[noreturn]] void never_retry(std::string_view words);

  private:
    struct State;
    explicit Worker(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace ddrun
