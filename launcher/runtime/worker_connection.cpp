#include "launcher/runtime/worker_connection.hpp"

#include "rendezvous/protocol/codec.hpp"

#include <boost/asio/post.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ddrun::launcher {
namespace {

using boost::asio::posix::descriptor_base;
using ErrorCode = boost::system::error_code;

// Answers beyond this leave at once, so that what is unsent stays small; and once all is sent no
// larger buffer is kept, so that thousands of idle connections cost little.
constexpr std::size_t gathered_bytes = 64u << 10;
constexpr std::size_t kept_capacity = 4u << 10;

ssize_t send_some(int socket, std::string_view bytes, const UniqueFd* descriptor) {
    if (descriptor == nullptr) {
        return ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = descriptor->get();
    std::memcpy(CMSG_DATA(header), &number, sizeof number);
    return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

WorkerConnection::WorkerConnection(boost::asio::io_context& io, UniqueFd socket, int peer_pid,
                                   ReadBuffer& buffer, Callbacks callbacks)
    : descriptor_(io),
      hello_deadline_(io),
      buffer_(buffer),
      callbacks_(std::move(callbacks)),
      frames_(rendezvous::max_frame_bytes),
      peer_pid_(peer_pid) {
    ErrorCode refused;  // by epoll, for want of memory or watches
    descriptor_.assign(socket.get(), refused);
    if (!refused) {
        (void)socket.release();
    }
}

void WorkerConnection::start(std::chrono::milliseconds patience) {
    hello_deadline_.expires_after(patience);
    hello_deadline_.async_wait([self = weak_from_this()](const ErrorCode& error) {
        if (const auto connection = self.lock(); connection && !error && !connection->accepted()) {
            connection->fail();
        }
    });
    wait_readable();
}

void WorkerConnection::accept_as(int local_rank) {
    local_rank_ = local_rank;
    hello_deadline_.cancel();
}

// --- what the worker says -----------------------------------------------------------------------

void WorkerConnection::wait_readable() {
    if (reading_ || !descriptor_.is_open()) {
        return;
    }
    reading_ = true;
    descriptor_.async_wait(descriptor_base::wait_read,
                           [self = shared_from_this()](const ErrorCode& error) {
                               self->reading_ = false;
                               if (!error && self->descriptor_.is_open() &&
                                   self->read_some() != ReadResult::ended && !self->held_up_) {
                                   self->wait_readable();
                               }
                           });
}

void WorkerConnection::catch_up() {
    const auto self = shared_from_this();  // a callback may drop the owner's reference
    while (descriptor_.is_open() && read_some() == ReadResult::more) {
    }
}

WorkerConnection::ReadResult WorkerConnection::read_some() {
    const std::size_t most = accepted() ? buffer_.size() : max_hello_bytes;
    const ssize_t size = ::recv(descriptor_.native_handle(), buffer_.data(), most, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return ReadResult::nothing_now;
    }
    if (size <= 0) {
        fail();
        return ReadResult::ended;
    }
    return take({buffer_.data(), static_cast<std::size_t>(size)});
}

WorkerConnection::ReadResult WorkerConnection::take(std::string_view bytes) {
    bytes_before_hello_ += accepted() ? 0 : bytes.size();
    frames_.append(bytes);
    const bool understood = deliver_frames();
    callbacks_.read();
    if (!understood) {
        fail();
    }
    return descriptor_.is_open() ? ReadResult::more : ReadResult::ended;
}

// False: the peer broke the protocol. While it does not take its answers, its requests wait.
bool WorkerConnection::deliver_frames() {
    held_up_ = false;
    while (unsent_bytes() <= reply_backlog) {
        const auto frame = frames_.next();
        if (!frame) {
            return !frames_.broken() && (accepted() || bytes_before_hello_ < max_hello_bytes);
        }
        auto message = rendezvous::decode_from_worker(*frame);
        if (!message) {
            return false;
        }
        callbacks_.message(*this, std::move(*message));
        if (!descriptor_.is_open() || closing_) {
            return true;
        }
    }
    held_up_ = true;
    return true;
}

// Requests that waited come first, then the socket.
void WorkerConnection::resume_reading() {
    if (!held_up_ || !descriptor_.is_open() || closing_) {
        return;
    }
    if (take({}) == ReadResult::more && !held_up_) {
        wait_readable();
    }
}

// --- what it is told ----------------------------------------------------------------------------

void WorkerConnection::queue(const rendezvous::ToWorker& message,
                             std::shared_ptr<const UniqueFd> descriptor) {
    if (!descriptor_.is_open() || closing_ || deaf_) {
        return;
    }
    drop_sent();
    if (descriptor) {
        riders_.push_back({outgoing_.size(), std::move(descriptor)});
    }
    rendezvous::append(outgoing_, message);
    if (unsent_bytes() >= gathered_bytes) {
        flush();
    }
}

// A peer that is always a little behind must not make the buffer grow for ever.
void WorkerConnection::drop_sent() {
    if (sent_ < gathered_bytes || sent_ < outgoing_.size() / 2) {
        return;
    }
    outgoing_.erase(0, sent_);
    for (Rider& rider : riders_) {
        rider.position -= sent_;
    }
    sent_ = 0;
}

void WorkerConnection::flush() {
    if (!writing_) {
        write_all();
    }
}

void WorkerConnection::write_all() {
    while (descriptor_.is_open() && unsent_bytes() > 0) {
        if (!write_some()) {
            return;
        }
    }
    all_sent();
}

// Up to the next message that carries a descriptor. False: not now, or never again.
bool WorkerConnection::write_some() {
    const bool carries = !riders_.empty() && riders_.front().position == sent_;
    const std::size_t next_rider = carries ? 1 : 0;
    const std::size_t end =
        riders_.size() > next_rider ? riders_[next_rider].position : outgoing_.size();
    const ssize_t sent = send_some(descriptor_.native_handle(),
                                   std::string_view(outgoing_).substr(sent_, end - sent_),
                                   carries ? riders_.front().descriptor.get() : nullptr);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
        wait_writable();
        return false;
    }
    if (sent < 0) {
        stop_sending();
        return false;
    }
    if (carries) {
        riders_.pop_front();
    }
    sent_ += static_cast<std::size_t>(sent);
    return true;
}

void WorkerConnection::all_sent() {
    outgoing_.clear();
    sent_ = 0;
    if (outgoing_.capacity() > kept_capacity) {
        outgoing_.shrink_to_fit();
    }
    if (closing_) {
        fail();
    } else if (held_up_) {
        boost::asio::post(descriptor_.get_executor(),
                          [self = shared_from_this()] { self->resume_reading(); });
    }
}

// A worker that is gone may have left words in the socket: reading goes on to their end.
void WorkerConnection::stop_sending() {
    deaf_ = true;
    riders_.clear();
    all_sent();
}

void WorkerConnection::wait_writable() {
    writing_ = true;
    descriptor_.async_wait(descriptor_base::wait_write,
                           [self = shared_from_this()](const ErrorCode& error) {
                               self->writing_ = false;
                               if (!error) {
                                   self->write_all();
                               }
                           });
}

// --- the end ------------------------------------------------------------------------------------

void WorkerConnection::fail() {
    if (descriptor_.is_open()) {
        close();
        callbacks_.closed(*this);
    }
}

void WorkerConnection::close() {
    hello_deadline_.cancel();
    ErrorCode ignored;
    descriptor_.close(ignored);
}

void WorkerConnection::close_after_sending() {
    closing_ = true;
    flush();
}

}  // namespace ddrun::launcher
