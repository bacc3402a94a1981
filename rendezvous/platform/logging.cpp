#include "rendezvous/platform/logging.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>

namespace ddrun::detail {
namespace {

std::atomic<LogLevel> lowest{LogOptions{}.level};

struct Sink {
    std::mutex mutex;
    std::function<void(std::string)> callback;
};

// Never destroyed: lines may still come while static objects go.
Sink& sink() {
    static auto* const only = new Sink;
    return *only;
}

std::string_view name_of(LogLevel level) {
    switch (level) {
        case LogLevel::trace:
            return "trace";
        case LogLevel::debug:
            return "debug";
        case LogLevel::info:
            return "info";
        case LogLevel::warning:
            return "warning";
        case LogLevel::error:
            return "error";
        case LogLevel::off:
            return "off";
    }
    return "";
}

// "12:00:00.123", local time.
std::string time_of_day() {
    const auto now = std::chrono::system_clock::now();
    const auto since = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch());
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%02d:%02d:%02d.%03d", parts.tm_hour, parts.tm_min,
                  parts.tm_sec, static_cast<int>(since.count() % 1000));
    return text.data();
}

std::string line_of(LogLevel level, std::string_view name, std::string_view text) {
    std::string line = "ddrun " + time_of_day() + " ";
    return line.append(name_of(level)).append(" ").append(name).append(": ").append(text);
}

}  // namespace

void set_up_logging(LogOptions options) {
    lowest = options.level;
    const std::lock_guard lock(sink().mutex);
    sink().callback = std::move(options.sink);
}

bool logs(LogLevel level) noexcept {
    return level >= lowest && level != LogLevel::off;
}

void Logger::write(LogLevel level, std::string_view text) const noexcept try {
    if (!logs(level)) return;
    std::string line = line_of(level, name_, text);
    const std::lock_guard lock(sink().mutex);
    if (sink().callback) return sink().callback(std::move(line));
    line.push_back('\n');
    std::fwrite(line.data(), 1, line.size(), stderr);
} catch (...) {
    // A lost log line must not take the job with it.
}

}  // namespace ddrun::detail
