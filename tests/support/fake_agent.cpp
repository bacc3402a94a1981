#include "tests/support/fake_agent.hpp"

#include "rendezvous/protocol/codec.hpp"

#include <ddrun/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

// Present in an asan build only.
extern "C" int __lsan_do_recoverable_leak_check() __attribute__((weak));

namespace ddrun::testing {
namespace {

constexpr auto tick = std::chrono::milliseconds(20);  // how often stopped ranks are looked for
constexpr int body_threw = 99;
constexpr int body_leaked = 98;

TimePoint clock_now() {
    return std::chrono::steady_clock::now();
}

int checked(int result, const char* what) {
    if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
    return result;
}

std::string unused_name() {
    static int counter = 0;
    return "@ddrun-fake-agent-" + std::to_string(::getpid()) + "-" + std::to_string(++counter);
}

int listen_on(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    const int fd =
        checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
    checked(::bind(fd, reinterpret_cast<const sockaddr*>(&address), length), "bind");
    checked(::listen(fd, 256), "listen");
    return fd;
}

bool is_stopped(int pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto end_of_name = text.rfind(')');
    return end_of_name != std::string::npos && text.size() > end_of_name + 2 &&
           text[end_of_name + 2] == 'T';
}

void write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::string read_all(int fd) {
    std::string text;
    std::array<char, 4096> part;
    for (ssize_t got; (got = ::read(fd, part.data(), part.size())) > 0;)
        text.append(part.data(), static_cast<std::size_t>(got));
    return text;
}

std::string name_of(ErrorKind kind) {
    constexpr std::array names = {"environment", "system",     "agent_lost",     "refused",
                                  "peer_lost",   "timed_out",  "desynchronised", "invalid_use",
                                  "store",       "never_retry"};
    return names.at(static_cast<std::size_t>(kind));
}

int run_body(const FakeAgent::Body& body, std::ostream& say) {
    try {
        body(say);
        return 0;
    } catch (const Error& error) {
        say << name_of(error.kind()) << ": " << error.what();
        return error.exit_code();
    } catch (const std::exception& error) {
        say << "exception: " << error.what();
        return body_threw;
    }
}

void send_bytes(int socket, const std::string& frame, int descriptor) {
    iovec part{const_cast<char*>(frame.data()), frame.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (descriptor >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    }
    while (part.iov_len > 0) {
        const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return;  // the rank is gone
        part.iov_base = static_cast<char*>(part.iov_base) + sent;
        part.iov_len -= static_cast<std::size_t>(sent);
        message.msg_control = nullptr;
        message.msg_controllen = 0;
    }
}

}  // namespace

bool RankResult::exited_with(int code) const {
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

bool RankResult::died_of(int signal) const {
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

FakeAgent::FakeAgent(int world_size)
    : ranks_(static_cast<std::size_t>(world_size)), store_(world_size) {
    environment.world_size = world_size;
    environment.local_world_size = world_size;
    environment.role_world_size = world_size;
    environment.job_id = "test";
    environment.agent_socket = unused_name();
    listener_ = listen_on(environment.agent_socket);
}

FakeAgent::~FakeAgent() {
    for (auto& connection : connections_) ::close(connection.fd);
    for (const auto& [name, fd] : arenas_) ::close(fd);
    ::close(listener_);
}

std::vector<RankResult> FakeAgent::run(const Body& body) {
    for (int rank = 0; rank < environment.world_size; ++rank) fork_rank(rank, body);
    const TimePoint deadline = clock_now() + limit;
    while (living() > 0) {
        serve_once(std::min(deadline, clock_now() + tick));
        kill_stopped_if_alone();
        if (clock_now() < deadline) continue;
        for (int rank = 0; rank < environment.world_size; ++rank) kill(rank, SIGKILL);
    }
    std::vector<RankResult> results;
    for (const auto& rank : ranks_) results.push_back(rank.result);
    return results;
}

WorkerEnv FakeAgent::environment_of(int rank) const {
    WorkerEnv mine = environment;
    mine.rank = mine.local_rank = mine.role_rank = rank;
    if (nodes.empty()) return mine;
    mine.node_count = static_cast<int>(nodes.size());
    for (mine.node_rank = 0; mine.local_rank >= nodes[static_cast<std::size_t>(mine.node_rank)];
         ++mine.node_rank)
        mine.local_rank -= nodes[static_cast<std::size_t>(mine.node_rank)];
    mine.local_world_size = nodes[static_cast<std::size_t>(mine.node_rank)];
    return mine;
}

void FakeAgent::fork_rank(int rank, const Body& body) {
    std::array<int, 2> said;
    checked(::pipe2(said.data(), O_CLOEXEC), "pipe");
    const int pid = checked(::fork(), "fork");
    if (pid == 0) be_rank(rank, body, said[1]);
    ::close(said[1]);
    Rank& started = ranks_[static_cast<std::size_t>(rank)];
    started.pid = pid;
    started.pid_fd = checked(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)), "pidfd_open");
    started.said_fd = said[0];
}

void FakeAgent::be_rank(int rank, const Body& body, int said) {
    ::close(listener_);
    // A rank starts as ddrun starts it; the test runner's handlers are not its business.
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    for (const auto& [name, value] : to_variables(environment_of(rank)))
        ::setenv(name.c_str(), value.c_str(), 1);
    std::ostringstream say;
    const int code = run_body(body, say);
    write_all(said, say.str());
    const bool leaks =
        __lsan_do_recoverable_leak_check != nullptr && __lsan_do_recoverable_leak_check() != 0;
    ::_exit(leaks ? body_leaked : code);
}

void FakeAgent::serve_once(TimePoint until) {
    for (const auto& timer : timers_) until = std::min(until, timer.when);
    if (const auto next = store_.next_deadline()) until = std::min(until, *next);
    std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
    for (const auto& rank : ranks_) fds.push_back({rank.pid_fd, POLLIN, 0});
    const std::size_t first_connection = fds.size();
    for (const auto& connection : connections_) fds.push_back({connection.fd, POLLIN, 0});
    const Duration left = std::max(until - clock_now(), Duration::zero());
    const timespec wait{0, static_cast<long>(std::min<Duration>(left, tick).count())};
    ::ppoll(fds.data(), fds.size(), &wait, nullptr);
    const std::size_t known = connections_.size();
    for (std::size_t i = 0; i < known; ++i)
        if (fds[first_connection + i].revents != 0) read_from(connections_[i]);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        if ((fds[rank + 1].revents & POLLIN) != 0) reap(static_cast<int>(rank));
    if (fds[0].revents != 0) accept_all();
    send_replies(store_.advance_to(clock_now()));
    const auto due = std::stable_partition(timers_.begin(), timers_.end(), [](const Timer& timer) {
        return timer.when > clock_now();
    });
    std::vector<Timer> ready(due, timers_.end());
    timers_.erase(due, timers_.end());
    for (const auto& timer : ready) timer.action();
}

void FakeAgent::accept_all() {
    for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        connections_.emplace_back();
        connections_.back().fd = fd;
    }
}

void FakeAgent::read_from(Connection& connection) {
    std::array<char, 65536> bytes;
    const ssize_t got = ::recv(connection.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        if (connection.rank >= 0) {
            store_.forget(connection.rank);
            ranks_[static_cast<std::size_t>(connection.rank)].socket = -1;
        }
        ::close(std::exchange(connection.fd, -1));  // poll skips it from now on
        return;
    }
    if (!answers) return;
    connection.frames.append({bytes.data(), static_cast<std::size_t>(got)});
    while (const auto frame = connection.frames.next()) {
        const auto message = rendezvous::decode_from_worker(*frame);
        if (!message) throw std::runtime_error("a rank sent a frame that is not a message");
        hear(connection, *message);
    }
}

void FakeAgent::hear(Connection& connection, const rendezvous::FromWorker& message) {
    if (const auto* hello = std::get_if<rendezvous::WorkerHello>(&message))
        hear(connection, *hello);
    else if (const auto* arena = std::get_if<rendezvous::ArenaOpen>(&message))
        open_arena(connection.rank, *arena);
    else if (std::holds_alternative<rendezvous::Progress>(message) ||
             std::holds_alternative<rendezvous::AbortedBecause>(message) ||
             std::holds_alternative<rendezvous::NeverRetry>(message))
        ranks_[static_cast<std::size_t>(connection.rank)].notices.push_back(message);
    else
        send_replies(store_.step({connection.rank, message}, clock_now()));
    if (on_message) on_message(connection.rank, message);
}

void FakeAgent::hear(Connection& connection, const rendezvous::WorkerHello& hello) {
    connection.rank = hello.rank;
    ranks_.at(static_cast<std::size_t>(hello.rank)).socket = connection.fd;
    if (refuses.empty())
        send(hello.rank, rendezvous::Welcome{});
    else
        send(hello.rank, rendezvous::Refused{refuses});
}

void FakeAgent::open_arena(int rank, const rendezvous::ArenaOpen& request) {
    const std::string name =
        std::to_string(environment_of(rank).node_rank) + "/" + request.name;  // one on each node
    auto found = arenas_.find(name);
    if (found == arenas_.end()) {
        const int fd = checked(::memfd_create("ddrun-test", MFD_CLOEXEC), "memfd_create");
        checked(::ftruncate(fd, static_cast<off_t>(request.bytes)), "ftruncate");
        found = arenas_.emplace(name, fd).first;
    }
    if (::lseek(found->second, 0, SEEK_END) != static_cast<off_t>(request.bytes))
        return send(rank, rendezvous::StoreFailed{request.id, rendezvous::StoreError::mismatch,
                                                  "another rank asked for another size"});
    send_bytes(ranks_[static_cast<std::size_t>(rank)].socket,
               rendezvous::encode(rendezvous::ToWorker(rendezvous::ArenaReady{request.id})),
               found->second);
}

void FakeAgent::reap(int rank) {
    Rank& ended = ranks_[static_cast<std::size_t>(rank)];
    if (::waitpid(ended.pid, &ended.result.status, WNOHANG) != ended.pid) return;
    ended.ended = true;
    ended.result.said = read_all(ended.said_fd);
    ::close(ended.said_fd);
    ::close(std::exchange(ended.pid_fd, -1));
    if (!tells_of_deaths || !WIFSIGNALED(ended.result.status)) return;
    const std::string words = "rank " + std::to_string(rank) + " was killed by signal " +
                              std::to_string(WTERMSIG(ended.result.status));
    send_all(rendezvous::RoundAborted{rank, words});
    send_replies(store_.abort(words));
}

void FakeAgent::kill_stopped_if_alone() {
    std::vector<int> stopped;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        if (!ranks_[rank].ended && is_stopped(ranks_[rank].pid))
            stopped.push_back(static_cast<int>(rank));
    if (static_cast<int>(stopped.size()) == living())
        for (const int rank : stopped) kill(rank, SIGKILL);
}

void FakeAgent::send_replies(const rendezvous::KeyValueStore::Actions& replies) {
    for (const auto& reply : replies) send(reply.client, reply.reply);
}

void FakeAgent::send(int rank, const rendezvous::ToWorker& message) {
    const int socket = ranks_[static_cast<std::size_t>(rank)].socket;
    if (socket >= 0) send_bytes(socket, rendezvous::encode(message), -1);
}

void FakeAgent::send_all(const rendezvous::ToWorker& message) {
    for (int rank = 0; rank < environment.world_size; ++rank) send(rank, message);
}

void FakeAgent::kill(int rank, int signal) {
    const Rank& victim = ranks_[static_cast<std::size_t>(rank)];
    if (!victim.ended) ::kill(victim.pid, signal);
}

void FakeAgent::hang_up(int rank) {
    const int socket = ranks_[static_cast<std::size_t>(rank)].socket;
    if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
}

void FakeAgent::after(std::chrono::microseconds delay, std::function<void()> action) {
    timers_.push_back({clock_now() + delay, std::move(action)});
}

const std::vector<rendezvous::FromWorker>& FakeAgent::notices(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].notices;
}

int FakeAgent::living() const {
    return static_cast<int>(
        std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; }));
}

}  // namespace ddrun::testing
