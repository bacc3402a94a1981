#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/protocol/time.hpp"
#include "rendezvous/protocol/worker_messages.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace ddrun::detail {

// Connects to the agent ("@name" is an abstract address, anything else a path). Blocks until
// `deadline` where the agent's queue is full. Throws Error{environment} naming DDRUN_AGENT_SOCKET
// where nobody listens there, Error{system}, or AgentLost.
[[nodiscard]] UniqueFd connect_to_agent(const std::string& address, TimePoint deadline);

// Messages over one non-blocking socket; never raises SIGPIPE. Thread-unsafe.
class AgentSocket {
  public:
    explicit AgentSocket(UniqueFd socket);

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] bool is_open() const { return open_; }
    // Both ends see it at once. The descriptor lives until this object ends: another thread may
    // just be waiting on it.
    void close();

    void queue(const rendezvous::FromWorker& message);
    // Gives the kernel what it takes now. False: the connection is gone.
    [[nodiscard]] bool flush();
    [[nodiscard]] bool has_unsent() const { return sent_in_queue_ < queue_.size(); }
    [[nodiscard]] std::size_t unsent_bytes() const { return queue_.size() - sent_in_queue_; }
    // Bytes queued and bytes given to the kernel since the start.
    [[nodiscard]] std::uint64_t queued() const { return total_queued_; }
    [[nodiscard]] std::uint64_t sent() const {
        return total_queued_ - queue_.size() + sent_in_queue_;
    }

    enum class Read { fine, closed, malformed };
    // Takes what has arrived.
    [[nodiscard]] Read receive();
    // The next whole message that has arrived; nullopt: none, or it was malformed (then
    // malformed()).
    [[nodiscard]] std::optional<rendezvous::ToWorker> next();
    [[nodiscard]] bool malformed() const { return malformed_; }
    // The oldest descriptor that has arrived and was not taken; none where there is none.
    [[nodiscard]] UniqueFd take_descriptor();

  private:
    UniqueFd socket_;
    std::string queue_;
    std::size_t sent_in_queue_ = 0;
    std::uint64_t total_queued_ = 0;
    rendezvous::FrameReader frames_{rendezvous::max_frame_bytes};
    std::deque<UniqueFd> descriptors_;
    bool malformed_ = false;
    bool open_ = true;
};

}  // namespace ddrun::detail
