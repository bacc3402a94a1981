#include "launcher/keeper/proc.hpp"

#include "rendezvous/platform/unique_fd.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

namespace ddrun::launcher::keeper {
namespace {

constexpr std::size_t stat_limit = 1024;
constexpr std::size_t children_limit = 1u << 20;
constexpr std::size_t environment_limit = 8u << 20;
constexpr std::size_t chunk_bytes = 4096;
constexpr std::size_t command_limit = 120;

std::string read_file(const std::string& path, std::size_t limit) {
    std::string content;
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    while (file && content.size() < limit) {
        const std::size_t before = content.size();
        content.resize(std::min(limit, before + chunk_bytes));
        const ssize_t got = ::read(file.get(), content.data() + before, content.size() - before);
        content.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got <= 0) break;
    }
    return content;
}

// The number at the front of `text`, which loses it and the blanks around it; 0 when there is none.
pid_t take_number(std::string_view& text) {
    pid_t number = 0;
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc() ? number : 0;
}

std::vector<pid_t> numbered_entries(const std::string& directory) {
    std::vector<pid_t> numbers;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
        std::string_view name = entry->d_name;
        if (const pid_t number = take_number(name); number > 0) numbers.push_back(number);
    }
    return numbers;
}

std::string path_of(pid_t pid, std::string_view file) {
    return "/proc/" + std::to_string(pid) + "/" + std::string(file);
}

// Arguments with a NUL after each, as in /proc/PID/cmdline, for people.
std::string printable(std::string arguments) {
    arguments.resize(std::min(arguments.size(), command_limit));
    while (!arguments.empty() && arguments.back() == '\0') arguments.pop_back();
    for (char& byte : arguments) {
        if (static_cast<unsigned char>(byte) < ' ') byte = ' ';
    }
    return arguments;
}

char state_in(const std::string& stat_line) {
    const std::size_t close = stat_line.rfind(')');
    return close != std::string::npos && close + 2 < stat_line.size() ? stat_line[close + 2] : '?';
}

// A thread in uninterruptible sleep may have locked the process's memory map; whoever reads
// arguments or environment then waits with it.
bool may_hold_its_memory(pid_t pid) {
    const std::vector<pid_t> threads = threads_of(pid);
    return std::any_of(threads.begin(), threads.end(),
                       [&](pid_t thread) { return state_of_thread(pid, thread) == 'D'; });
}

bool kernel_lists_children() {
    static const bool listed = [] {
        const std::string self = std::to_string(::getpid());
        return ::access(("/proc/" + self + "/task/" + self + "/children").c_str(), R_OK) == 0;
    }();
    return listed;
}

std::vector<pid_t> children_by_parent(pid_t parent) {
    std::vector<pid_t> children;
    for (const pid_t pid : all_processes()) {
        const auto facts = read_process(pid);
        if (facts && facts->parent == parent) children.push_back(pid);
    }
    return children;
}

}  // namespace

std::string read_proc_file(pid_t pid, std::string_view file, std::size_t limit) {
    return read_file(path_of(pid, file), limit);
}

std::optional<ProcessFacts> read_process(pid_t pid) {
    const std::string line = read_proc_file(pid, "stat", stat_limit);
    // "PID (NAME) STATE PARENT GROUP SESSION ...", and NAME may hold blanks and brackets.
    const std::size_t open = line.find('(');
    const std::size_t close = line.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close + 3 > line.size()) {
        return std::nullopt;
    }
    ProcessFacts facts;
    facts.pid = pid;
    facts.name = line.substr(open + 1, close - open - 1);
    facts.state = line[close + 2];
    std::string_view rest = std::string_view(line).substr(close + 3);
    facts.parent = take_number(rest);
    (void)take_number(rest);
    facts.session = take_number(rest);
    return facts;
}

std::vector<pid_t> children_of(pid_t pid) {
    if (!kernel_lists_children()) return children_by_parent(pid);
    std::vector<pid_t> children;
    for (const pid_t thread : threads_of(pid)) {
        const std::string list =
            read_proc_file(pid, "task/" + std::to_string(thread) + "/children", children_limit);
        std::string_view rest = list;
        while (const pid_t child = take_number(rest)) children.push_back(child);
    }
    return children;
}

std::vector<pid_t> all_processes() {
    return numbered_entries("/proc");
}

char state_of_thread(pid_t pid, pid_t thread) {
    return state_in(read_proc_file(pid, "task/" + std::to_string(thread) + "/stat", stat_limit));
}

std::vector<pid_t> threads_of(pid_t pid) {
    return numbered_entries(path_of(pid, "task"));
}

std::string command_line(const std::vector<std::string>& arguments) {
    std::string joined;
    for (const std::string& argument : arguments) {
        if (joined.size() < command_limit) joined.append(argument).push_back('\0');
    }
    return printable(std::move(joined));
}

std::string command_of(pid_t pid) {
    const auto facts = read_process(pid);
    if (!facts) return "";
    std::string command =
        may_hold_its_memory(pid) ? "" : printable(read_proc_file(pid, "cmdline", command_limit));
    return command.empty() ? "[" + facts->name + "]" : command;
}

std::optional<std::string> environment_value(pid_t pid, std::string_view name) {
    if (may_hold_its_memory(pid)) return std::nullopt;
    const std::string block = read_proc_file(pid, "environ", environment_limit);
    std::string_view rest = block;
    while (!rest.empty()) {
        const std::string_view entry = rest.substr(0, rest.find('\0'));
        if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
            return std::string(entry.substr(name.size() + 1));
        }
        rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    }
    return std::nullopt;
}

std::string wait_channel_of(pid_t pid) {
    std::string channel = read_proc_file(pid, "wchan", stat_limit);
    return channel == "0" ? "" : channel;
}

}  // namespace ddrun::launcher::keeper
