#include "launcher/keeper/inspect.hpp"

#include "launcher/keeper/proc.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace ddrun::launcher::keeper {
namespace {

constexpr std::size_t most_threads = 512;
constexpr std::size_t most_kinds = 8;
constexpr std::size_t most_frames = 12;

const char* state_name(char state) {
    switch (state) {
        case 'R':
            return "running";
        case 'S':
            return "sleeping";
        case 'D':
            return "in uninterruptible sleep";
        case 'T':
            return "stopped";
        case 't':
            return "stopped by a debugger";
        case 'Z':
            return "dead, not yet reaped";
        default:
            return "in an unknown state";
    }
}

std::string first_word(const std::string& text) {
    return text.substr(0, text.find_first_of(" \n"));
}

// "sleeping in futex_wait_queue (system call 202)"
std::string activity(pid_t pid, const std::string& folder, char state) {
    std::string words = state_name(state);
    const std::string channel = read_proc_file(pid, folder + "wchan", 128);
    if (!channel.empty() && channel != "0") words += " in " + channel;
    const std::string call = first_word(read_proc_file(pid, folder + "syscall", 128));
    if (!call.empty() && call != "running" && call != "-1") words += " (system call " + call + ")";
    return words;
}

std::string threads_line(pid_t pid) {
    const std::vector<pid_t> threads = threads_of(pid);
    std::map<std::string, int> kinds;
    for (std::size_t i = 0; i < std::min(threads.size(), most_threads); ++i) {
        const std::string folder = "task/" + std::to_string(threads[i]) + "/";
        ++kinds[activity(pid, folder, state_of_thread(pid, threads[i]))];
    }
    std::vector<std::pair<int, std::string>> ordered;
    for (const auto& [what, count] : kinds) ordered.emplace_back(count, what);
    std::sort(ordered.rbegin(), ordered.rend());
    ordered.resize(std::min(ordered.size(), most_kinds));
    std::string line = std::to_string(threads.size()) + " threads:";
    for (const auto& [count, what] : ordered) {
        line.append(" ").append(std::to_string(count)).append(" ").append(what).append(",");
    }
    line.pop_back();
    return line;
}

// "[<0>] futex_wait+0x1a/0x20" a line -> "futex_wait < do_futex < ..."
std::string kernel_stack(pid_t pid) {
    const std::string stack = read_proc_file(pid, "stack", 8192);
    std::string line;
    std::size_t frames = 0;
    for (std::size_t from = 0; from < stack.size() && frames < most_frames; ++frames) {
        const std::size_t end = std::min(stack.find('\n', from), stack.size());
        const std::string_view entry = std::string_view(stack).substr(from, end - from);
        const std::size_t name = entry.find("] ");
        if (name != std::string_view::npos) {
            const std::string_view symbol = entry.substr(name + 2);
            line.append(line.empty() ? "" : " < ").append(symbol.substr(0, symbol.find('+')));
        }
        from = end + 1;
    }
    return line;
}

}  // namespace

std::string inspect_process(pid_t pid, const std::string& command) {
    const auto facts = read_process(pid);
    if (!facts) return std::string("pid ").append(std::to_string(pid)).append(" is gone");
    std::string words("pid ");
    words.append(std::to_string(pid)).append(" (").append(command).append(") is ");
    words += activity(pid, "", facts->state);
    const std::size_t children = children_of(pid).size();
    if (children > 0) words += "; child processes: " + std::to_string(children);
    if (threads_of(pid).size() > 1) words.append("\n").append(threads_line(pid));
    if (const std::string stack = kernel_stack(pid); !stack.empty()) {
        words.append("\nkernel stack: ").append(stack);
    }
    return words;
}

}  // namespace ddrun::launcher::keeper
