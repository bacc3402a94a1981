#include "worker_sdk/src/control/agent_socket.hpp"

#include "rendezvous/protocol/codec.hpp"

#include <ddrun/error.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

namespace ddrun::detail {
namespace {

constexpr std::size_t read_bytes = 64 * 1024;
constexpr std::size_t kept_capacity = 256 * 1024;
constexpr std::size_t most_descriptors = 8;  // in one read; the agent sends one a message

struct Address {
    sockaddr_un name{};
    socklen_t length = 0;
};

std::string about(const std::string& address) {
    return "DDRUN_AGENT_SOCKET=" + address;
}

Address address_of(const std::string& text) {
    Address address;
    address.name.sun_family = AF_UNIX;
    if (text.size() >= sizeof address.name.sun_path)
        throw Error(ErrorKind::environment, about(text) + " is too long for a socket address");
    std::memcpy(address.name.sun_path, text.data(), text.size());
    if (text.front() == '@') address.name.sun_path[0] = '\0';
    address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
    if (text.front() != '@') ++address.length;  // paths end with a zero byte
    return address;
}

// A unix connect does not wait: where the listener's queue is full it must be tried again.
void wait_for_room(const std::string& text, TimePoint deadline) {
    constexpr auto pause = std::chrono::milliseconds(1);
    if (std::chrono::steady_clock::now() + pause > deadline)
        throw AgentLost(about(text) + ": the agent does not accept connections in time");
    std::this_thread::sleep_for(pause);
}

}  // namespace

UniqueFd connect_to_agent(const std::string& text, TimePoint deadline) {
    const Address address = address_of(text);
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket)
        throw Error(ErrorKind::system,
                    std::string("no socket for the agent: ") + std::strerror(errno));
    while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.name),
                     address.length) != 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN)
            throw Error(ErrorKind::environment, about(text) + ": no agent answers there (" +
                                                    std::strerror(errno) +
                                                    "); start this program with ddrun");
        wait_for_room(text, deadline);
    }
    return socket;
}

AgentSocket::AgentSocket(UniqueFd socket) : socket_(std::move(socket)) {}

void AgentSocket::close() {
    open_ = false;
    (void)::shutdown(socket_.get(), SHUT_RDWR);
}

void AgentSocket::queue(const rendezvous::FromWorker& message) {
    // What is sent makes room before the queue grows for a peer that is always a little behind.
    if (sent_in_queue_ > queue_.size() / 2) {
        queue_.erase(0, sent_in_queue_);
        sent_in_queue_ = 0;
    }
    const std::size_t before = queue_.size();
    rendezvous::append(queue_, message);
    total_queued_ += queue_.size() - before;
}

bool AgentSocket::flush() {
    while (has_unsent()) {
        const ssize_t sent = ::send(socket_.get(), queue_.data() + sent_in_queue_,
                                    queue_.size() - sent_in_queue_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno == EAGAIN;
        sent_in_queue_ += static_cast<std::size_t>(sent);
    }
    queue_.clear();
    if (queue_.capacity() > kept_capacity) queue_.shrink_to_fit();
    sent_in_queue_ = 0;
    return true;
}

AgentSocket::Read AgentSocket::receive() {
    std::array<char, read_bytes> bytes;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control;
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN || errno == EINTR ? Read::fine : Read::closed;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            descriptors_.emplace_back(fd);
        }
    }
    if (got == 0) return Read::closed;
    if (descriptors_.size() > most_descriptors) return Read::malformed;
    frames_.append({bytes.data(), static_cast<std::size_t>(got)});
    return Read::fine;
}

std::optional<rendezvous::ToWorker> AgentSocket::next() {
    const auto frame = frames_.next();
    if (!frame) {
        malformed_ = frames_.broken();
        return std::nullopt;
    }
    auto message = rendezvous::decode_to_worker(*frame);
    malformed_ = !message;
    return message;
}

UniqueFd AgentSocket::take_descriptor() {
    if (descriptors_.empty()) return {};
    UniqueFd oldest = std::move(descriptors_.front());
    descriptors_.pop_front();
    return oldest;
}

}  // namespace ddrun::detail
