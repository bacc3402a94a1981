#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/protocol/worker_messages.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
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

// Where one read puts its bytes; connections of one thread share it. Its size bounds what one
// connection is served before the others, the timers and the signals have their turn.
using ReadBuffer = std::array<char, 32u << 10>;

// One process at the other end of the agent socket. Malformed bytes, silence before the hello, or a
// reader that does not read end this connection and nothing else. All that one read brings is
// handed over in one go; answers are gathered and leave together when the owner says so.
class WorkerConnection : public std::enable_shared_from_this<WorkerConnection> {
  public:
    struct Callbacks {
        std::function<void(WorkerConnection&, rendezvous::FromWorker)> message;
        std::function<void()> read;  // what one read brought has been handed over
        std::function<void(WorkerConnection&)> closed;  // once, unless the owner called close()
    };

    // `buffer` outlives the connection.
    WorkerConnection(boost::asio::io_context& io, UniqueFd socket, int peer_pid, ReadBuffer& buffer,
                     Callbacks callbacks);

    [[nodiscard]] bool open() const { return descriptor_.is_open(); }

    void start(std::chrono::milliseconds patience);  // for the hello
    // Puts the message behind what is unsent; flush() gives the socket what it takes now, the rest
    // follows by itself.
    void queue(const rendezvous::ToWorker& message,
               std::shared_ptr<const UniqueFd> descriptor = nullptr);
    void flush();
    [[nodiscard]] std::size_t unsent_bytes() const { return outgoing_.size() - sent_; }
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

    bool awaits_flush = false;  // for the owner's list of those to flush

  private:
    struct Rider {  // a descriptor that travels with the first byte of its message
        std::size_t position = 0;
        std::shared_ptr<const UniqueFd> descriptor;
    };
    enum class ReadResult { more, nothing_now, ended };

    void wait_readable();
    void wait_writable();
    void write_all();
    [[nodiscard]] bool write_some();
    void all_sent();
    void drop_sent();
    void stop_sending();
    void resume_reading();
    [[nodiscard]] ReadResult read_some();
    [[nodiscard]] ReadResult take(std::string_view bytes);
    [[nodiscard]] bool deliver_frames();
    void fail();

    boost::asio::posix::stream_descriptor descriptor_;
    boost::asio::steady_timer hello_deadline_;
    ReadBuffer& buffer_;
    Callbacks callbacks_;
    rendezvous::FrameReader frames_;
    std::string outgoing_;
    std::size_t sent_ = 0;  // bytes of it that the socket has
    std::deque<Rider> riders_;
    std::size_t bytes_before_hello_ = 0;
    int peer_pid_ = 0;
    int local_rank_ = -1;
    bool reading_ = false;
    bool writing_ = false;
    bool held_up_ = false;  // requests wait until answers are taken
    bool closing_ = false;
    bool deaf_ = false;  // does not receive any more
};

}  // namespace ddrun::launcher
