#include "launcher/keeper/spawn.hpp"

#include "launcher/keeper/worker_launcher.hpp"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace ddrun::launcher::keeper {
namespace {

std::vector<const char*> pointers_to(const std::vector<std::string>& strings) {
    std::vector<const char*> pointers;
    pointers.reserve(strings.size() + 1);
    for (const std::string& string : strings) pointers.push_back(string.c_str());
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> assignments(const Variables& variables) {
    std::vector<std::string> lines;
    lines.reserve(variables.size());
    for (const auto& [name, value] : variables) {
        lines.emplace_back(name).append("=").append(value);
    }
    return lines;
}

// Only a terminal that the job has may be passed on; a job in the background must not steal it, nor
// what is typed for somebody else: that is why it stays in the terminal's session.
TerminalShare share_of_terminal(const Spawn& order, int input, const SpawnSettings& settings) {
    const pid_t foreground = order.plan.owns_stdin ? ::tcgetpgrp(input) : -1;
    if (foreground < 0) return TerminalShare::none;
    return foreground == settings.job_group ? TerminalShare::foreground : TerminalShare::background;
}

SpawnResult refuse(const char* stage, int error_number) {
    SpawnResult result;
    result.refused = {stage, error_number, ""};
    return result;
}

}  // namespace

std::optional<termios> terminal_modes(int terminal) {
    termios modes{};
    return ::tcgetattr(terminal, &modes) == 0 ? std::optional(modes) : std::nullopt;
}

SpawnResult spawn_worker(const Spawn& order, const std::vector<UniqueFd>& streams,
                         const SpawnSettings& settings) {
    const bool complete = std::all_of(streams.begin(), streams.end(),
                                      [](const UniqueFd& fd) { return static_cast<bool>(fd); });
    if (!complete) return refuse("descriptors", EMFILE);
    if (order.plan.argv.empty()) return refuse("exec", ENOENT);

    const std::vector<std::string> environment = assignments(order.plan.environment);
    const std::vector<const char*> envp = pointers_to(environment);
    const std::vector<const char*> argv = pointers_to(order.plan.argv);
    const int input = streams.front().get();
    const TerminalShare terminal = share_of_terminal(order, input, settings);
    const auto modes = terminal == TerminalShare::foreground ? terminal_modes(input) : std::nullopt;
    WorkerLauncher launch;
    launch.env = envp.data();
    auto launched =
        launch(argv.front(), argv.data(), WorkerSetup{order, streams, settings, terminal});
    if (launched.pid < 0) return refuse(launched.stage, launched.error_number);
    SpawnResult result;
    result.pid = launched.pid;
    result.report = std::move(launched.report);
    if (terminal != TerminalShare::none) {
        result.terminal = UniqueFd(::fcntl(input, F_DUPFD_CLOEXEC, 3));
        result.modes = modes;
    }
    return result;
}

}  // namespace ddrun::launcher::keeper
