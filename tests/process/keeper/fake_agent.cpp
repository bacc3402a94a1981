#include "fake_agent.hpp"

#include "launcher/keeper/proc.hpp"
#include "rendezvous/protocol/worker_env.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <thread>

namespace ddrun::launcher::keeper {
namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

Variables own_environment() {
    Variables variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string line = *entry;
        const std::size_t equals = line.find('=');
        if (equals != std::string::npos)
            variables[line.substr(0, equals)] = line.substr(equals + 1);
    }
    return variables;
}

}  // namespace

std::string new_mark() {
    static int count = 0;
    return std::to_string(::getpid()) + "-" + std::to_string(++count);
}

FakeAgent::FakeAgent(const WorkerDefaults& defaults)
    : keeper_(start_keeper(defaults)), link_(keeper_.link), mark_(new_mark()) {}

FakeAgent::~FakeAgent() {
    send(Quit{});
    while (link_.wants_write() && !link_.closed()) link_.flush();
    ::waitpid(keeper_.pid, nullptr, 0);
}

std::string FakeAgent::tag(int round, int local_rank) const {
    return mark_ + "." + std::to_string(round) + "." + std::to_string(local_rank);
}

void FakeAgent::send(const ToKeeper& message) {
    link_.send(encode(message));
}

void FakeAgent::spawn(int local_rank, std::vector<std::string> argv, const SpawnChoices& choices) {
    Spawn order;
    order.round = choices.round;
    order.strict_binding = choices.strict_binding;
    order.plan.rank = local_rank;
    order.plan.local_rank = local_rank;
    order.plan.argv = std::move(argv);
    if (!choices.clear_environment) order.plan.environment = own_environment();
    order.plan.environment["FAKE_AGENT_MARK"] = mark_;
    order.plan.environment[std::string(variable::worker_tag)] = tag(choices.round, local_rank);
    for (const auto& [name, value] : choices.extra) order.plan.environment[name] = value;
    order.plan.owns_stdin = choices.owns_stdin;
    order.plan.cpus = choices.cpus;
    order.plan.memory_node = choices.memory_node;

    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    outputs_[local_rank] = UniqueFd(ends[0]);
    written_[local_rank].clear();
    const UniqueFd write_end(ends[1]);
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const std::array<int, 3> streams{choices.input >= 0 ? choices.input : null.get(),
                                     write_end.get(), write_end.get()};
    link_.send(encode(ToKeeper(std::move(order))), streams);
}

void FakeAgent::pump(Clock::time_point deadline) {
    pollfd link{link_.fd(), static_cast<short>(POLLIN | (link_.wants_write() ? POLLOUT : 0)), 0};
    ::poll(&link, 1, milliseconds_until(deadline));
    link_.flush();
    for (const std::string& body : link_.receive()) {
        auto message = decode_from_keeper(body);
        if (!message) throw std::runtime_error("the keeper sent nonsense");
        inbox_.push_back(std::move(*message));
    }
}

pid_t FakeAgent::started(int local_rank) {
    while (!pids_.contains(local_rank)) {
        const auto spawned = expect<Spawned>();
        pids_[spawned.local_rank] = spawned.pid;
    }
    const pid_t pid = pids_[local_rank];
    pids_.erase(local_rank);
    return pid;
}

std::string FakeAgent::output(int local_rank) {
    std::array<char, 65536> buffer{};
    const auto deadline = Clock::now() + 20s;
    for (;;) {
        pollfd readable{outputs_[local_rank].get(), POLLIN, 0};
        if (::poll(&readable, 1, milliseconds_until(deadline)) <= 0) {
            throw std::runtime_error("never closed its output: " + written_[local_rank]);
        }
        const ssize_t got = ::read(outputs_[local_rank].get(), buffer.data(), buffer.size());
        if (got <= 0) return std::exchange(written_[local_rank], {});
        written_[local_rank].append(buffer.data(), static_cast<std::size_t>(got));
        if (link_.wants_write()) link_.flush();
    }
}

void FakeAgent::await_output(int local_rank, const std::string& text) {
    const auto deadline = Clock::now() + 10s;
    std::array<char, 4096> buffer{};
    while (written_[local_rank].find(text) == std::string::npos) {
        pollfd readable{outputs_[local_rank].get(), POLLIN, 0};
        if (::poll(&readable, 1, milliseconds_until(deadline)) <= 0) {
            throw std::runtime_error("never written: " + text);
        }
        const ssize_t got = ::read(outputs_[local_rank].get(), buffer.data(), buffer.size());
        if (got <= 0) throw std::runtime_error("closed before: " + text);
        written_[local_rank].append(buffer.data(), static_cast<std::size_t>(got));
    }
}

bool FakeAgent::keeper_gone() {
    return eventually([this] {
        pump(Clock::now());
        return link_.closed();
    });
}

bool is_alive(pid_t pid) {
    const auto facts = read_process(pid);
    return facts && facts->state != 'Z' && facts->state != 'X';
}

std::vector<pid_t> living_with_mark(const std::string& mark) {
    std::vector<pid_t> found;
    for (const pid_t pid : all_processes()) {
        if (environment_value(pid, "FAKE_AGENT_MARK") == mark && is_alive(pid))
            found.push_back(pid);
    }
    return found;
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
    const auto deadline = Clock::now() + patience;
    while (!condition()) {
        if (Clock::now() >= deadline) return condition();
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

}  // namespace ddrun::launcher::keeper
