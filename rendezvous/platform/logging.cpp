#include "rendezvous/platform/logging.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace ddrun::detail {
namespace {

constexpr auto pattern = "ddrun %H:%M:%S.%e %l %n: %v";

std::atomic<LogLevel> lowest{LogOptions{}.level};

spdlog::level::level_enum spdlog_level(LogLevel level) {
    switch (level) {
        case LogLevel::trace:
            return spdlog::level::trace;
        case LogLevel::debug:
            return spdlog::level::debug;
        case LogLevel::info:
            return spdlog::level::info;
        case LogLevel::warning:
            return spdlog::level::warn;
        case LogLevel::error:
            return spdlog::level::err;
        case LogLevel::off:
            return spdlog::level::off;
    }
    return spdlog::level::off;
}

// base_sink holds its mutex around sink_it_, so lines come one at a time.
class CallbackSink : public spdlog::sinks::base_sink<std::mutex> {
  public:
    CallbackSink() {
        formatter_ = std::make_unique<spdlog::pattern_formatter>(
            pattern, spdlog::pattern_time_type::local, "");
    }
    void replace(std::function<void(std::string)> callback) {
        const std::lock_guard lock(mutex_);
        callback_ = std::move(callback);
    }

  protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t buffer;
        formatter_->format(message, buffer);
        std::string line(buffer.data(), buffer.size());
        if (callback_) return callback_(std::move(line));
        line.push_back('\n');
        std::fwrite(line.data(), 1, line.size(), stderr);
    }
    void flush_() override {}

  private:
    std::function<void(std::string)> callback_;
};

class Loggers {
  public:
    // Never destroyed: lines may still come while static objects go.
    static Loggers& instance() {
        static auto* const loggers = new Loggers;
        return *loggers;
    }
    CallbackSink& sink() { return *sink_; }
    spdlog::logger& named(std::string_view name) {
        const std::lock_guard lock(mutex_);
        auto found = loggers_.find(name);
        if (found == loggers_.end()) {
            found = loggers_.try_emplace(std::string(name), std::string(name), sink_).first;
            found->second.set_level(spdlog::level::trace);
        }
        return found->second;
    }

  private:
    std::mutex mutex_;
    std::shared_ptr<CallbackSink> sink_ = std::make_shared<CallbackSink>();
    std::map<std::string, spdlog::logger, std::less<>> loggers_;
};

}  // namespace

void set_up_logging(LogOptions options) {
    lowest = options.level;
    // With logging off and no lines yet there is nothing to make.
    if (options.level != LogLevel::off) Loggers::instance().sink().replace(std::move(options.sink));
}

bool logs(LogLevel level) noexcept {
    return level >= lowest && level != LogLevel::off;
}

void Logger::write(LogLevel level, std::string_view text) const noexcept try {
    if (!logs(level)) return;
    Loggers::instance().named(name_).log(spdlog_level(level),
                                         spdlog::string_view_t(text.data(), text.size()));
} catch (...) {
    // A lost log line must not take the job with it.
}

}  // namespace ddrun::detail
