#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/protocol/worker_messages.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ddrun::launcher {

// What a connection may cost before and after its hello.
constexpr std::size_t max_hello_bytes = 4096;
constexpr std::size_t reply_backlog = 1u << 20;  // beyond it no further request is read

// One process at the other end of the agent socket. Malformed bytes, silence before the hello, or a
// reader that does not read end this connection and nothing else.
class WorkerConnection : public std::enable_shared_from_this<WorkerConnection> {
  public:
    struct Callbacks {
        std::function<void(WorkerConnection&, rendezvous::FromWorker)> message;
        std::function<void(WorkerConnection&)> closed;  // once, unless the owner called close()
    };

    WorkerConnection(boost::asio::io_context& io, UniqueFd socket, int peer_pid,
                     Callbacks callbacks);

    [[nodiscard]] bool open() const { return descriptor_.is_open(); }

    void start(std::chrono::milliseconds patience);  // for the hello
    void send(const rendezvous::ToWorker& message,
              std::shared_ptr<const UniqueFd> descriptor = nullptr);
    // Reads and hands over everything that has arrived; what is there is bounded by the socket
    // buffer.
    void catch_up();
    void close();
    void close_after_sending();

    // After its hello was accepted.
    void accept_as(int local_rank);
    [[nodiscard]] bool accepted() const { return local_rank_ >= 0; }
    [[nodiscard]] int local_rank() const { return local_rank_; }
    [[nodiscard]] int peer_pid() const { return peer_pid_; }

  private:
    struct Outgoing {
        std::string bytes;
        std::size_t sent = 0;
        std::shared_ptr<const UniqueFd> descriptor;

        [[nodiscard]] std::string_view rest() const { return std::string_view(bytes).substr(sent); }
    };
    enum class ReadResult { more, nothing_now, ended };

    void wait_readable();
    void wait_writable();
    void write_all();
    void stop_sending();
    void resume_reading();
    [[nodiscard]] ReadResult read_some();
    [[nodiscard]] bool deliver_frames();
    void fail();

    boost::asio::posix::stream_descriptor descriptor_;
    boost::asio::steady_timer hello_deadline_;
    Callbacks callbacks_;
    rendezvous::FrameReader frames_;
    std::deque<Outgoing> outgoing_;
    std::size_t outgoing_bytes_ = 0;
    std::size_t bytes_before_hello_ = 0;
    int peer_pid_ = 0;
    int local_rank_ = -1;
    bool reading_ = false;
    bool writing_ = false;
    bool closing_ = false;
    bool deaf_ = false;  // does not receive any more
};

}  // namespace ddrun::launcher
