#include "launcher/runtime/worker_connection.hpp"

#include "rendezvous/protocol/codec.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ddrun::launcher {
namespace {

using boost::asio::posix::descriptor_base;
using ErrorCode = boost::system::error_code;

constexpr std::size_t read_size = 64u << 10;

ssize_t send_some(int socket, std::string_view bytes, const UniqueFd* descriptor) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (descriptor != nullptr) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        const int number = descriptor->get();
        std::memcpy(CMSG_DATA(header), &number, sizeof number);
    }
    return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

WorkerConnection::WorkerConnection(boost::asio::io_context& io, UniqueFd socket, int peer_pid,
                                   Callbacks callbacks)
    : descriptor_(io),
      hello_deadline_(io),
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

void WorkerConnection::wait_readable() {
    if (reading_ || !descriptor_.is_open()) {
        return;
    }
    reading_ = true;
    descriptor_.async_wait(
        descriptor_base::wait_read, [self = shared_from_this()](const ErrorCode& error) {
            self->reading_ = false;
            if (!error && self->descriptor_.is_open() && self->read_some() != ReadResult::ended &&
                self->outgoing_bytes_ <= reply_backlog) {
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
    std::string buffer(accepted() ? read_size : max_hello_bytes, '\0');
    const ssize_t size =
        ::recv(descriptor_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return ReadResult::nothing_now;
    }
    if (size <= 0) {
        fail();
        return ReadResult::ended;
    }
    bytes_before_hello_ += accepted() ? 0 : static_cast<std::size_t>(size);
    frames_.append({buffer.data(), static_cast<std::size_t>(size)});
    if (!deliver_frames()) {
        fail();
        return ReadResult::ended;
    }
    return ReadResult::more;
}

// False: the peer broke the protocol. While it does not take its answers, its requests wait.
bool WorkerConnection::deliver_frames() {
    while (outgoing_bytes_ <= reply_backlog) {
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
    return true;
}

void WorkerConnection::send(const rendezvous::ToWorker& message,
                            std::shared_ptr<const UniqueFd> descriptor) {
    if (!descriptor_.is_open() || closing_ || deaf_) {
        return;
    }
    outgoing_.push_back({rendezvous::encode(message), 0, std::move(descriptor)});
    outgoing_bytes_ += outgoing_.back().bytes.size();
    if (!writing_) {
        write_all();
    }
}

void WorkerConnection::write_all() {
    while (descriptor_.is_open() && !outgoing_.empty()) {
        Outgoing& front = outgoing_.front();
        const ssize_t sent =
            send_some(descriptor_.native_handle(), front.rest(), front.descriptor.get());
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            return wait_writable();
        }
        if (sent < 0) {
            return stop_sending();
        }
        front.descriptor.reset();
        front.sent += static_cast<std::size_t>(sent);
        outgoing_bytes_ -= static_cast<std::size_t>(sent);
        if (front.rest().empty()) {
            outgoing_.pop_front();
        }
    }
    if (closing_) {
        fail();
    }
}

// A worker that is gone may have left words in the socket: reading goes on to their end.
void WorkerConnection::stop_sending() {
    deaf_ = true;
    outgoing_.clear();
    outgoing_bytes_ = 0;
    if (closing_) {
        fail();
    }
}

void WorkerConnection::wait_writable() {
    writing_ = true;
    descriptor_.async_wait(descriptor_base::wait_write,
                           [self = shared_from_this()](const ErrorCode& error) {
                               self->writing_ = false;
                               if (!error) {
                                   self->write_all();
                                   self->resume_reading();
                               }
                           });
}

// Requests that waited come first, then the socket.
void WorkerConnection::resume_reading() {
    if (!descriptor_.is_open() || closing_) {
        return;
    }
    if (!deliver_frames()) {
        fail();
    } else if (outgoing_bytes_ <= reply_backlog) {
        wait_readable();
    }
}

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
    if (outgoing_.empty()) {
        fail();
    }
}

}  // namespace ddrun::launcher
