#include "launcher/runtime/keeper_link.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ddrun::launcher {
namespace {

struct AncillaryData {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(keeper::spawn_descriptors * sizeof(int))> bytes{};
};

void attach(msghdr& message, AncillaryData& data, const std::vector<UniqueFd>& descriptors) {
    const std::size_t size = descriptors.size() * sizeof(int);
    message.msg_control = data.bytes.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::array<int, keeper::spawn_descriptors> numbers{};
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
        numbers[i] = descriptors[i].get();
    }
    std::memcpy(CMSG_DATA(header), numbers.data(), size);
}

}  // namespace

KeeperLink::KeeperLink(boost::asio::io_context& io, keeper::KeeperProcess process,
                       Callbacks callbacks)
    : process_(process),
      descriptor_(io, process.link),
      callbacks_(std::move(callbacks)),
      frames_(keeper::max_link_frame_bytes) {
    wait_readable();
}

void KeeperLink::send(const keeper::ToKeeper& message) {
    send([bytes = keeper::encode(message)]() mutable {
        return std::optional<Frame>(Frame{std::move(bytes), {}});
    });
}

void KeeperLink::send(Producer producer) {
    if (lost_) {
        return;
    }
    waiting_.push_back(std::move(producer));
    // A producer may itself send: that waits for its turn in the loop that called it.
    if (!awaiting_write_ && !writing_) {
        write_all();
    }
}

void KeeperLink::write_all() {
    writing_ = true;
    while (!lost_ && (current_ || !waiting_.empty())) {
        if (!current_) {
            const Producer produce = std::move(waiting_.front());
            waiting_.pop_front();
            current_ = produce();
        } else if (!write_some(*current_)) {
            wait_writable();
            break;
        } else if (current_->bytes.empty()) {
            current_.reset();
        }
    }
    writing_ = false;
}

// False: the socket is full. A dead keeper is noticed by the reading side, which says so once.
bool KeeperLink::write_some(Frame& frame) {
    iovec bytes{frame.bytes.data(), frame.bytes.size()};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    AncillaryData data;
    if (!frame.descriptors.empty()) {
        attach(message, data, frame.descriptors);
    }
    const ssize_t sent =
        ::sendmsg(descriptor_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
        // ETOOMANYREFS: too many descriptors are under way; the keeper takes them soon.
        if (errno == EAGAIN || errno == EINTR || errno == ETOOMANYREFS) {
            return false;
        }
        frame.bytes.clear();
        return true;
    }
    frame.descriptors.clear();
    frame.bytes.erase(0, static_cast<std::size_t>(sent));
    return true;
}

void KeeperLink::wait_writable() {
    awaiting_write_ = true;
    descriptor_.async_wait(boost::asio::posix::descriptor_base::wait_write,
                           [this](const boost::system::error_code& error) {
                               awaiting_write_ = false;
                               if (!error) {
                                   write_all();
                               }
                           });
}

void KeeperLink::wait_readable() {
    descriptor_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                           [this](const boost::system::error_code& error) {
                               if (!error) {
                                   read_all();
                               }
                           });
}

void KeeperLink::read_all() {
    std::array<char, 16384> buffer;
    const ssize_t size =
        ::recv(descriptor_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        return lose();
    }
    if (size > 0) {
        frames_.append({buffer.data(), static_cast<std::size_t>(size)});
    }
    while (const auto frame = frames_.next()) {
        const auto message = keeper::decode_from_keeper(*frame);
        if (!message) {
            return lose();
        }
        callbacks_.message(*message);
    }
    frames_.broken() ? lose() : wait_readable();
}

void KeeperLink::lose() {
    if (!lost_) {
        lost_ = true;
        waiting_.clear();
        current_.reset();
        callbacks_.lost();
    }
}

}  // namespace ddrun::launcher
