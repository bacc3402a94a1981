#include "tests/support/program.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace ddrun::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* call) {
    throw std::system_error(errno, std::generic_category(), call);
}

std::string fresh_tag() {
    static std::atomic<int> count{0};
    return std::to_string(::getpid()) + "x" + std::to_string(count++) + "x" +
           std::to_string(std::random_device{}());
}

std::vector<std::string> child_environment(const Invocation& invocation, const std::string& tag) {
    std::map<std::string, std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const auto equals = text.find('=');
        variables[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& name : invocation.unset) variables.erase(name);
    for (const auto& [name, value] : invocation.env) variables[name] = value;
    variables["DDTAG"] = tag;
    std::vector<std::string> entries;
    for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
    return entries;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> list;
    for (auto& text : strings) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
}

void append_available(int& fd, std::string& to) {
    char buffer[65536];
    while (fd >= 0) {
        const auto got = ::read(fd, buffer, sizeof buffer);
        if (got > 0) {
            to.append(buffer, static_cast<std::size_t>(got));
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        ::close(fd);  // end of file, or EIO: the other side of the terminal closed
        fd = -1;
    }
}

void set_nonblocking(int fd) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void close_fd(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
}

}  // namespace

Program::Program(Invocation invocation) : tag_(fresh_tag()) {
    auto environment = child_environment(invocation, tag_);
    auto argv = invocation.argv;
    auto argv_pointers = pointers(argv);
    auto environment_pointers = pointers(environment);
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    int master = -1, slave = -1;
    if (invocation.terminal) {
        if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) fail("openpty");
        ::fcntl(master, F_SETFD, FD_CLOEXEC);
    } else {
        if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) fail("pipe2");
        if (invocation.stdin_open && ::pipe2(in, O_CLOEXEC) != 0) fail("pipe2");
    }
    started_ = Clock::now();
    pid_ = ::fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
        if (invocation.terminal) {
            ::login_tty(slave);
        } else {
            const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
            ::dup2(invocation.stdin_open ? in[0] : null, 0);
            ::dup2(out[1], 1);
            ::dup2(err[1], 2);
        }
        if (!invocation.directory.empty() && ::chdir(invocation.directory.c_str()) != 0)
            ::_exit(99);
        if (invocation.before_exec) invocation.before_exec();
        ::execvpe(argv_pointers[0], argv_pointers.data(), environment_pointers.data());
        ::_exit(98);
    }
    if (invocation.terminal) {
        ::close(slave);
        in_ = ::fcntl(master, F_DUPFD_CLOEXEC, 0);
        out_fd_ = master;
    } else {
        ::close(out[1]);
        ::close(err[1]);
        close_fd(in[0]);
        in_ = in[1];
        out_fd_ = out[0];
        err_fd_ = err[0];
    }
    for (const int fd : {out_fd_, err_fd_})
        if (fd >= 0) set_nonblocking(fd);
}

Program::~Program() {
    for (int round = 0; round < 100; ++round) {
        if (!status_) ::kill(pid_, SIGKILL);
        const auto left = descendants();
        for (const auto pid : left) ::kill(pid, SIGKILL);
        pump(Milliseconds(10));
        if (status_ && left.empty()) break;
    }
    close_fd(in_);
    close_fd(out_fd_);
    close_fd(err_fd_);
}

void Program::send_signal(int signal) const {
    if (!status_) ::kill(pid_, signal);
}

void Program::type(const std::string& keys) {
    if (::write(in_, keys.data(), keys.size()) < 0 && errno != EPIPE) fail("write");
}

void Program::close_terminal() {
    close_fd(in_);
    close_fd(out_fd_);
}

void Program::close_output() {
    close_fd(out_fd_);
}

bool Program::reap(bool block) {
    if (status_) return true;
    int raw = 0;
    if (::waitpid(pid_, &raw, block ? 0 : WNOHANG) != pid_) return false;
    status_ = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
    ended_ = Clock::now();
    return true;
}

void Program::pump(Milliseconds limit) {
    pollfd fds[2] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};
    const bool had_ended = reap(false);
    ::poll(fds, 2, static_cast<int>(std::min(limit, Milliseconds(had_ended ? 1 : 5)).count()));
    append_available(out_fd_, out_);
    append_available(err_fd_, err_);
    reap(false);
}

std::optional<int> Program::wait(Milliseconds limit) {
    wait_until([this] { return status_.has_value(); }, limit);
    if (!status_) return std::nullopt;
    pump(Milliseconds(0));
    return status_;
}

bool Program::wait_until(const std::function<bool()>& condition, Milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    while (!condition()) {
        const auto left = deadline - Clock::now();
        if (left <= left.zero()) return false;
        pump(std::chrono::ceil<Milliseconds>(left));
    }
    return true;
}

bool Program::wait_for_output(const std::string& text, Milliseconds limit) {
    return wait_until([&] { return has(out_, text) || has(err_, text); }, limit);
}

std::chrono::steady_clock::duration Program::lifetime() const {
    return (status_ ? ended_ : Clock::now()) - started_;
}

std::vector<pid_t> Program::descendants() const {
    const std::string needle = "DDTAG=" + tag_;
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const auto pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
        if (pid <= 0 || pid == pid_) continue;
        std::string environment = read_file(entry.path().string() + "/environ");
        environment.push_back('\0');
        if (environment.find(needle + '\0') == std::string::npos) continue;
        const char state = process_state(pid);
        if (state != 0 && state != 'Z' && state != 'X') found.push_back(pid);
    }
    return found;
}

bool Program::leaves_nothing(Milliseconds limit) {
    return wait_until([this] { return descendants().empty(); }, limit);
}

Finished run(Invocation invocation, Milliseconds limit) {
    Program program(std::move(invocation));
    Finished result;
    result.code = program.wait(limit).value_or(-1);
    result.seconds = std::chrono::duration<double>(program.lifetime()).count();
    result.left_nothing = program.leaves_nothing(1s);
    result.output = program.output();
    result.errors = program.errors();
    return result;
}

std::string ddrun_path() {
    return DDRUN_BINARY;
}

Invocation ddrun_with(std::vector<std::string> arguments) {
    Invocation invocation;
    invocation.argv = std::move(arguments);
    invocation.argv.insert(invocation.argv.begin(), ddrun_path());
    return invocation;
}

Invocation shell(int workers, const std::string& script, std::vector<std::string> flags) {
    flags.push_back("--nproc-per-node=" + std::to_string(workers));
    for (const char* word : {"sh", "-c"}) flags.emplace_back(word);
    flags.push_back(script);
    return ddrun_with(std::move(flags));
}

Finished run_ddrun(std::vector<std::string> arguments, Milliseconds limit) {
    return run(ddrun_with(std::move(arguments)), limit);
}

TemporaryDirectory::TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ddrun-test.XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) fail("mkdtemp");
    path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        ++count;
    return count;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream buffer;
    buffer << in.rdbuf();
    return buffer.str();
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

char process_state(pid_t pid) {
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    const auto close = stat.rfind(')');
    return close == std::string::npos || close + 2 >= stat.size() ? char{0} : stat[close + 2];
}

}  // namespace ddrun::test
