#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>

// ddrun's own log lines, for whoever hunts a problem; what users must know goes through the summary
// and notes instead. Nothing is made before the first line that is really written.
namespace ddrun::detail {

enum class LogLevel { trace, debug, info, warning, error, off };

struct LogOptions {
    LogLevel level = LogLevel::warning;  // lines below it are dropped
    // Receives each line, without newline; called on the thread that logs, one call at a time. It
    // must not log itself. Empty: written to stderr.
    std::function<void(std::string line)> sink;
};

// From any thread; replaces earlier options. Lines written before it used the defaults.
void set_up_logging(LogOptions options);

[[nodiscard]] bool logs(LogLevel level) noexcept;

// A name for lines: `constexpr Logger log("keeper link");`. From any thread; never throws.
class Logger {
  public:
    constexpr explicit Logger(std::string_view name) : name_(name) {}  // `name` must outlive it

    void trace(std::string_view text) const { write(LogLevel::trace, text); }
    void debug(std::string_view text) const { write(LogLevel::debug, text); }
    void info(std::string_view text) const { write(LogLevel::info, text); }
    void warning(std::string_view text) const { write(LogLevel::warning, text); }
    void error(std::string_view text) const { write(LogLevel::error, text); }

    // The text is only made when it will be written.
    void trace(const std::invocable auto& text) const { make(LogLevel::trace, text); }
    void debug(const std::invocable auto& text) const { make(LogLevel::debug, text); }

  private:
    void write(LogLevel level, std::string_view text) const noexcept;
    void make(LogLevel level, const std::invocable auto& text) const {
        if (logs(level)) write(level, text());
    }

    std::string_view name_;
};

}  // namespace ddrun::detail
