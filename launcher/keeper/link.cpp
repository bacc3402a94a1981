#include "launcher/keeper/link.hpp"

#include "launcher/keeper/messages.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ddrun::launcher::keeper {
namespace {

constexpr std::size_t read_bytes = 64u << 10;
constexpr std::size_t read_budget = 512u << 10;

// Enough for what one Spawn carries; each sendmsg() carries no more, and each recvmsg() returns
// descriptors of one sendmsg() only.
struct ControlBuffer {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(spawn_descriptors * sizeof(int))> bytes{};
};

void attach(msghdr& message, ControlBuffer& control, std::span<const int> descriptors) {
    if (descriptors.empty()) return;
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
}

void collect(const msghdr& message, std::deque<UniqueFd>& received) {
    std::size_t arrived = 0;
    bool any = (message.msg_flags & MSG_CTRUNC) != 0;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message);
        header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        any = true;
        for (; CMSG_LEN((arrived + 1) * sizeof(int)) <= header->cmsg_len; ++arrived) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + arrived * sizeof(int), sizeof(int));
            received.emplace_back(fd);
        }
    }
    // Out of descriptors, the kernel drops the rest and says so: keep the places of the missing.
    for (; any && arrived < spawn_descriptors; ++arrived) received.emplace_back();
}

}  // namespace

Link::Link(int fd) : fd_(fd), frames_(max_link_frame_bytes) {}

void Link::send(std::string frame, std::span<const int> descriptors) {
    if (closed_) return;
    const std::size_t sent = queue_.empty() ? write_some(frame, descriptors) : 0;
    if (sent == frame.size() || closed_) return;
    Queued rest{std::move(frame), sent, {}};
    for (const int fd : sent == 0 ? descriptors : std::span<const int>()) {
        rest.descriptors.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
        if (!rest.descriptors.back()) return close();
    }
    queued_bytes_ += rest.bytes.size() - sent;
    queue_.push_back(std::move(rest));
}

void Link::post(std::string_view frame) {
    if (closed_) return;
    if (queue_.empty() || !queue_.back().descriptors.empty()) queue_.emplace_back();
    queue_.back().bytes.append(frame);
    queued_bytes_ += frame.size();
}

void Link::flush() {
    while (!queue_.empty() && !closed_) {
        Queued& next = queue_.front();
        std::vector<int> descriptors;
        for (const UniqueFd& fd : next.descriptors) descriptors.push_back(fd.get());
        const std::size_t sent =
            write_some(std::string_view(next.bytes).substr(next.sent), descriptors);
        if (sent == 0) return;
        next.descriptors.clear();
        next.sent += sent;
        queued_bytes_ -= sent;
        if (next.sent == next.bytes.size()) queue_.pop_front();
    }
}

std::size_t Link::write_some(std::string_view bytes, std::span<const int> descriptors) {
    std::size_t total = 0;
    while (total < bytes.size()) {
        iovec part{const_cast<char*>(bytes.data()) + total, bytes.size() - total};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        ControlBuffer control;
        attach(message, control, total == 0 ? descriptors : std::span<const int>());
        const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            total += static_cast<std::size_t>(sent);
        } else if (errno != EINTR) {
            // ETOOMANYREFS: too many descriptors in flight; the other end takes them out soon.
            if (errno != EAGAIN && errno != ETOOMANYREFS && errno != ENOBUFS) {
                close();
            }
            break;
        }
    }
    return total;
}

void Link::close() {
    closed_ = true;
    queue_.clear();
    queued_bytes_ = 0;
}

std::vector<std::string> Link::receive() {
    std::vector<std::string> bodies;
    for (std::size_t total = 0; total < read_budget;) {
        const std::size_t got = read_some();
        if (got == 0) break;
        total += got;
        while (const auto body = frames_.next()) bodies.emplace_back(*body);
        if (frames_.broken()) closed_ = true;
    }
    return bodies;
}

std::size_t Link::read_some() {
    std::array<char, read_bytes> buffer;
    iovec part{buffer.data(), buffer.size()};
    ControlBuffer control;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    ssize_t got = 0;
    do {
        got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (got <= 0) {
        closed_ = true;
        return 0;
    }
    collect(message, received_);
    frames_.append({buffer.data(), static_cast<std::size_t>(got)});
    return static_cast<std::size_t>(got);
}

std::vector<UniqueFd> Link::take_descriptors(std::size_t count) {
    std::vector<UniqueFd> taken(count);
    for (std::size_t i = 0; i < count && !received_.empty(); ++i) {
        taken[i] = std::move(received_.front());
        received_.pop_front();
    }
    return taken;
}

}  // namespace ddrun::launcher::keeper
