#include "launcher/runtime/output/console_descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

namespace ddrun::launcher {

namespace {

// What one write may carry after poll() said writable and the description blocks: a pipe has room
// for PIPE_BUF then; a terminal promises one byte, in practice it has kilobytes.
constexpr std::size_t pipe_step = PIPE_BUF;
constexpr std::size_t terminal_step = 256;
constexpr int steps_at_a_time = 64;
constexpr int large_pipe = 256 << 10;

bool may_pass(int error) {
    return error == ENOSPC || error == EDQUOT || error == ENOMEM || error == ENOBUFS;
}

// ENXIO (a pipe without reader), EACCES (a terminal of another user), no /proc: the small writes
// serve.
int open_again(int fd) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    return ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool writable_now(int fd) {
    pollfd entry{fd, POLLOUT, 0};
    return ::poll(&entry, 1, 0) == 1;
}

}  // namespace

ConsoleDescriptor::ConsoleDescriptor(int inherited)
    : inherited_(inherited), kind_(kind_of(inherited)) {
    if (kind_ == Kind::pipe || kind_ == Kind::terminal) own_ = UniqueFd(open_again(inherited));
}

ConsoleDescriptor::Kind ConsoleDescriptor::kind_of(int fd) {
    struct stat facts {};
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fstat(fd, &facts) != 0 || (flags & O_ACCMODE) == O_RDONLY)
        return Kind::closed;
    if (S_ISSOCK(facts.st_mode)) return Kind::socket;
    if (S_ISFIFO(facts.st_mode)) return Kind::pipe;
    if (S_ISCHR(facts.st_mode) && ::isatty(fd)) return Kind::terminal;
    return Kind::file;
}

void ConsoleDescriptor::enlarge() const {
    if (kind_ != Kind::pipe || !own_) return;
    // Never smaller than somebody made it; a refusal (the user's limit) changes nothing.
    if (::fcntl(own_.get(), F_GETPIPE_SZ) < large_pipe)
        (void)::fcntl(own_.get(), F_SETPIPE_SZ, large_pipe);
}

bool ConsoleDescriptor::same_target(int one, int other) {
    struct stat a {
    }, b{};
    if (::fstat(one, &a) != 0 || ::fstat(other, &b) != 0) return false;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int ConsoleDescriptor::poll_fd() const {
    if (kind_ == Kind::closed || kind_ == Kind::file) return -1;
    return own_ ? own_.get() : inherited_;
}

ConsoleDescriptor::Written ConsoleDescriptor::write(std::string_view bytes) const {
    if (kind_ == Kind::closed) return {0, State::gone, EBADF};
    if (kind_ == Kind::file) return write_file(bytes);
    if (kind_ == Kind::socket || own_) return write_once(bytes);
    return write_small(bytes);
}

ConsoleDescriptor::Written ConsoleDescriptor::write_file(std::string_view bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = ::write(inherited_, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failure(done, errno);
        done += static_cast<std::size_t>(n);
    }
    return {done, State::open, 0};
}

ConsoleDescriptor::Written ConsoleDescriptor::write_once(std::string_view bytes) const {
    ssize_t n;
    do {
        n = kind_ == Kind::socket
                ? ::send(inherited_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                : ::write(own_.get(), bytes.data(), bytes.size());
    } while (n < 0 && errno == EINTR);
    if (n < 0) return failure(0, errno);
    const auto done = static_cast<std::size_t>(n);
    return {done, done < bytes.size() ? State::refused : State::open, 0};
}

ConsoleDescriptor::Written ConsoleDescriptor::write_small(std::string_view bytes) const {
    const std::size_t step = kind_ == Kind::pipe ? pipe_step : terminal_step;
    std::size_t done = 0;
    for (int i = 0; i < steps_at_a_time && done < bytes.size(); ++i) {
        if (!writable_now(inherited_)) break;
        const ssize_t n =
            ::write(inherited_, bytes.data() + done, std::min(step, bytes.size() - done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failure(done, errno);
        done += static_cast<std::size_t>(n);
    }
    return {done, done < bytes.size() ? State::refused : State::open, 0};
}

ConsoleDescriptor::Written ConsoleDescriptor::failure(std::size_t written, int error) const {
    if (error == EAGAIN || error == EWOULDBLOCK) return {written, State::refused, error};
    const bool passes = kind_ == Kind::file ? error != EBADF && error != EINVAL : may_pass(error);
    return {written, passes ? State::failed : State::gone, error};
}

}  // namespace ddrun::launcher
