#include "rendezvous/protocol/exit_status.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace ddrun {
namespace {

struct SignalWords {
    std::string_view name;
    std::string_view meaning;  // empty where the name says it all
};

// Index = number, as on x86-64 and arm64.
constexpr std::array<SignalWords, 32> signals = {{
    {"", ""},
    {"SIGHUP", "hangup"},
    {"SIGINT", "interrupt"},
    {"SIGQUIT", "quit"},
    {"SIGILL", "illegal instruction"},
    {"SIGTRAP", "trace trap"},
    {"SIGABRT", "aborted"},
    {"SIGBUS", "bus error"},
    {"SIGFPE", "arithmetic error"},
    {"SIGKILL", ""},
    {"SIGUSR1", ""},
    {"SIGSEGV", "segmentation fault"},
    {"SIGUSR2", ""},
    {"SIGPIPE", "broken pipe"},
    {"SIGALRM", "alarm clock"},
    {"SIGTERM", "terminated"},
    {"SIGSTKFLT", ""},
    {"SIGCHLD", ""},
    {"SIGCONT", ""},
    {"SIGSTOP", ""},
    {"SIGTSTP", "terminal stop"},
    {"SIGTTIN", "terminal input"},
    {"SIGTTOU", "terminal output"},
    {"SIGURG", ""},
    {"SIGXCPU", "CPU time limit exceeded"},
    {"SIGXFSZ", "file size limit exceeded"},
    {"SIGVTALRM", "virtual timer"},
    {"SIGPROF", "profiling timer"},
    {"SIGWINCH", ""},
    {"SIGIO", ""},
    {"SIGPWR", "power failure"},
    {"SIGSYS", "bad system call"},
}};

// 32 and 33 belong to the C library, so programs count real-time signals from 34.
constexpr int first_real_time = 34;
constexpr int last_signal = 64;

bool has_name(int signal) {
    return signal > 0 && signal < static_cast<int>(signals.size());
}

std::string upper(std::string_view text) {
    std::string result(text);
    for (char& c : result) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return result;
}

// A decimal number without sign, or -1.
int plain_number(std::string_view text) {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && text.front() != '-' ? value : -1;
}

int in_range(int signal) {
    return signal >= 1 && signal <= last_signal ? signal : 0;
}

// "RTMIN+2", "RTMAX-1", "RTMIN", "RTMAX"; 0 otherwise.
int real_time_number(std::string_view name) {
    const bool from_first = name.starts_with("RTMIN");
    if (!from_first && !name.starts_with("RTMAX")) return 0;
    const int base = from_first ? first_real_time : last_signal;
    const std::string_view rest = name.substr(5);
    if (rest.empty()) return base;
    const int offset = rest.front() == (from_first ? '+' : '-') ? plain_number(rest.substr(1)) : -1;
    if (offset < 0 || offset > last_signal - first_real_time) return 0;
    return from_first ? base + offset : base - offset;
}

}  // namespace

ExitStatus ExitStatus::from_wait_status(int raw) {
    const int signal = raw & 0x7f;
    if (signal == 0) return {Kind::exited, (raw >> 8) & 0xff, false};
    return {Kind::signalled, signal, (raw & 0x80) != 0};
}

int ExitStatus::shell_code() const {
    return was_signalled() ? exit_code::signal_base + value : value;
}

std::string ExitStatus::describe() const {
    if (!was_signalled()) return "exit code " + std::to_string(value);
    std::string words = "killed by " + signal_name(value);
    if (has_name(value) && !signals[static_cast<std::size_t>(value)].meaning.empty()) {
        words.append(" (").append(signals[static_cast<std::size_t>(value)].meaning).append(")");
    }
    if (core_dumped) words += " (core dumped)";
    return words;
}

std::string signal_name(int signal) {
    if (has_name(signal)) return std::string(signals[static_cast<std::size_t>(signal)].name);
    if (signal == first_real_time) return "SIGRTMIN";
    if (signal > first_real_time && signal <= last_signal) {
        return "SIGRTMIN+" + std::to_string(signal - first_real_time);
    }
    return "signal " + std::to_string(signal);
}

int signal_number(const std::string& name) {
    if (name.empty()) return 0;
    if (const int number = plain_number(name); number >= 0) return in_range(number);
    std::string wanted = upper(name);
    if (!wanted.starts_with("SIG")) wanted.insert(0, "SIG");
    for (std::size_t number = 1; number < signals.size(); ++number) {
        if (signals[number].name == wanted) return static_cast<int>(number);
    }
    if (wanted == "SIGPOLL") return 29;
    if (wanted == "SIGIOT") return 6;
    if (wanted == "SIGCLD") return 17;
    return real_time_number(std::string_view(wanted).substr(3));
}

}  // namespace ddrun
