#pragma once

#include "rendezvous/protocol/time.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What the user asked for, after flags, environment, job file and defaults were put together.
// Plain values; every field says its meaning, unit, default and consequence.
namespace ddrun::launcher {

// How the program is started.
enum class ProgramKind {
    automatic,  // *.py under the active Python with -u; anything else is executed
    execute,    // --no-python: executed as it is, also when it ends in .py
    module,     // -m: python -u -m NAME
    script,     // --run-path: python -u PATH, whatever its name; also a folder with __main__.py
};

// --nproc-per-node
enum class SlotSource { number, automatic, gpu, cpu };
struct SlotRequest {
    SlotSource source = SlotSource::number;
    int number = 1;
    bool operator==(const SlotRequest&) const = default;
};

// Which of a worker's streams a flag means; values as in torchrun: 0, 1, 2, 3.
enum class Streams { none = 0, out = 1, err = 2, both = 3 };

// A value for all ranks, or a map of ranges ("0-7:3,12:1"); ranks not named have `otherwise`.
struct RankRange {
    int first = 0;
    int last = 0;  // inclusive
    bool operator==(const RankRange&) const = default;
};
struct StreamMap {
    Streams otherwise = Streams::none;
    std::vector<std::pair<RankRange, Streams>> ranges;
    [[nodiscard]] Streams for_rank(int local_rank) const;  // the last matching range wins
    bool operator==(const StreamMap&) const = default;
};

// A set of ranks; empty means all.
struct RankSet {
    std::vector<RankRange> ranges;
    [[nodiscard]] bool contains(int rank) const;
    bool operator==(const RankSet&) const = default;
};

enum class NumaBinding { off, node, socket, exclusive, core_complex };
// per_rank: CUDA_VISIBLE_DEVICES has one entry, LOCAL_RANK keeps its value.
enum class GpuBinding { none, per_rank };
// Who serves PyTorch's store at MASTER_ADDR:MASTER_PORT: the agent of rank 0's node (automatic:
// where ddrun starts Python), or rank 0 itself.
enum class AgentStore { automatic, on, off };

// --prefix-command RANKS:CMD: CMD's words go before the program of these global ranks; for a rank
// that several entries name the last one counts.
struct PrefixCommand {
    RankSet ranks;
    std::vector<std::string> words;
    bool operator==(const PrefixCommand&) const = default;
};

struct JobSpec {
    // The program, as typed; arguments byte for byte.
    std::string program;
    std::vector<std::string> arguments;
    ProgramKind kind = ProgramKind::automatic;

    // --- size
    SlotRequest slots;
    int min_nodes = 1;
    int max_nodes = 1;
    std::optional<int> node_rank;

    // --- identity and addresses; one node binds loopback only
    std::string job_id = "none";  // empty (--standalone without an id): the incarnation serves
    std::string role = "default";
    std::string endpoint;  // host[:port] as typed; empty on one node
    // What the endpoint comes to for a job of several nodes: where its nodes meet. Without an
    // endpoint `master_addr` names the host, as in a static launch.
    std::string rendezvous_host;
    int rendezvous_port = 29400;
    std::optional<std::string> master_addr;
    std::optional<int> master_port;  // taken by somebody else: 71; absent: a free one
    AgentStore agent_store = AgentStore::automatic;  // on: TORCHELASTIC_USE_AGENT_STORE=True

    // --- several nodes; one node has nobody to meet and listens to nobody
    int spares = 0;  // nodes beyond max_nodes that wait until one of the others is lost
    std::optional<std::string> local_addr;      // of this node: bound, and told to the others
    std::optional<std::string> interface;       // or the network interface that has it
    std::optional<std::string> topology_group;  // nodes of one group get neighbouring ranks
    std::optional<std::string> secret_file;
    bool insecure = false;                             // neither authentication nor encryption
    Duration join_timeout = std::chrono::minutes(10);  // until the group is complete; then 75
    // How long a group that has min_nodes waits for more of max_nodes.
    Duration last_call = std::chrono::seconds(30);
    Duration heartbeat = std::chrono::seconds(1);
    Duration lease = std::chrono::seconds(15);  // silent for so long: lost
    // Workers are kept so long without contact to the rendezvous; then 75.
    Duration rendezvous_grace = std::chrono::seconds(60);
    std::optional<std::string> status_listen;  // host:port of the status page

    // --- failure
    int max_restarts = 0;            // restarts of the whole group, job-wide
    std::vector<int> no_restart_on;  // exit codes that end the job at once
    int crash_loop = 0;              // stop after K identical quick failures; 0: off
    // The second restart waits this, then doubling to 30 s; 0: never wait.
    Duration restart_backoff = std::chrono::seconds(1);
    // From the first stop signal to SIGKILL, all workers together.
    Duration shutdown_timeout = std::chrono::seconds(30);
    // No progress and no output for so long: 124.
    std::optional<Duration> hang_timeout;
    // Others may run on so long after the first exit 0: 124.
    std::optional<Duration> early_exit_timeout;
    // TERM INT HUP QUIT: stop the job, 128 + s.
    std::vector<int> stop_signals = {15, 2, 1, 3};

    // --- environment and devices
    std::vector<std::pair<std::string, std::string>> extra_env;  // --env K=V, in order
    std::optional<std::string> gpus;  // --gpus: CUDA_VISIBLE_DEVICES for the job, verbatim
    GpuBinding gpu_binding = GpuBinding::none;
    // Every worker has LOCAL_RANK=0 and one entry in CUDA_VISIBLE_DEVICES.
    bool virtual_local_rank = false;
    bool require_gpus = false;  // more workers than visible GPUs is a usage error, not a warning
    NumaBinding numa_binding = NumaBinding::off;
    bool strict_binding = false;  // a refused binding is an error (71), not a warning
    std::vector<PrefixCommand> prefix_commands;
    std::optional<int> stdin_rank;  // gets ddrun's stdin (the terminal); others /dev/null
    // "--local-rank": workers' first argument is "--local-rank=N".
    std::optional<std::string> local_rank_flag;

    // --- output
    // Given: must be usable. Absent: files only when `redirects` or `tee` asks, then in a private
    // temporary directory.
    std::optional<std::string> log_dir;
    StreamMap redirects;         // to files only, not to the console
    StreamMap tee;               // to files and to the console
    RankSet local_ranks_filter;  // console shows only these local ranks
    RankSet ranks_filter;        // console shows only these global ranks
    // Template; absent: "[${rank}] ", for several nodes "[${node}:${rank}] "; empty: no prefix.
    std::optional<std::string> line_prefix;
    std::vector<std::string> duplicate_stdout_filters;
    std::vector<std::string> duplicate_stderr_filters;
    bool log_strict = false;                 // a log file that cannot be written fails the job (71)
    std::optional<std::string> status_file;  // JSON, rewritten atomically at each change of state

    int verbosity = 0;  // -v; -1 with --quiet
    bool operator==(const JobSpec&) const = default;
};

// What `kind` comes to for this program: execute, module or script; all but execute run under
// Python.
[[nodiscard]] ProgramKind decided_kind(const JobSpec& spec);

// Workers find PyTorch's store at the agent of rank 0's node.
[[nodiscard]] bool serves_agent_store(const JobSpec& spec);

// Nodes have to meet before the first round.
[[nodiscard]] bool has_several_nodes(const JobSpec& spec);

}  // namespace ddrun::launcher
