#include <ddrun/error.hpp>
#include <ddrun/log.hpp>

#include "worker_sdk/src/log_state.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <system_error>

namespace ddrun {
namespace {

constexpr std::string_view clear_line = "\r\x1b[K";

// "2025-03-01T12:00:00.123Z round 2 | "
std::string stamp(int round) {
    const auto now = std::chrono::system_clock::now();
    const auto since =
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
    const std::time_t seconds = since.count() / 1000;
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    std::array<char, 32> date{};
    std::array<char, 64> text{};
    std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc);
    std::snprintf(text.data(), text.size(), "%s.%03dZ round %d | ", date.data(),
                  static_cast<int>(since.count() % 1000), round);
    return text.data();
}

std::string file_line(int round, std::string_view line) {
    return stamp(round).append(line).append("\n");
}

// stdio, not write(): what the program itself prints stays in order.
void print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void open_or_throw(detail::LogFile& file) {
    if (const std::string problem = file.open(); !problem.empty())
        throw Error(ErrorKind::environment, "cannot write the log " + problem);
}

}  // namespace

Log::Log(std::unique_ptr<State> state) : state_(std::move(state)) {}

Log::~Log() {
    if (state_->status_shown) print("\n");
}

bool Log::is_main() const noexcept {
    return state_->rank == 0;
}

bool Log::has_directory() const noexcept {
    const std::lock_guard lock(state_->mutex);
    return state_->has_directory;
}

bool Log::console_is_terminal() const noexcept {
    return state_->console_is_terminal;
}

void Log::to_directory(const std::filesystem::path& directory) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error)
        throw Error(ErrorKind::environment,
                    "cannot make the log directory " + directory.string() + ": " + error.message());
    const std::lock_guard lock(state_->mutex);
    state_->use_directory(directory);
    open_or_throw(state_->rank_file);
    if (is_main()) open_or_throw(state_->main_file);
}

void Log::main_line(std::string_view line) {
    const std::lock_guard lock(state_->mutex);
    std::string text(state_->status_shown ? clear_line : "");
    state_->status_shown = false;
    print(text.append(line).append("\n"));
    if (state_->has_directory) state_->main_file.append(file_line(state_->round, line));
}

void Log::rank_line(std::string_view line) {
    const std::lock_guard lock(state_->mutex);
    state_->rank_file.append(file_line(state_->round, line));
}

void Log::status_line(std::string_view line) {
    const std::lock_guard lock(state_->mutex);
    print(std::string(clear_line).append(line));
    state_->status_shown = true;
}

void Log::State::use_directory(const std::filesystem::path& directory) {
    has_directory = true;
    main_file.name(directory / "main.log");
    rank_file.name(directory / ("rank_" + std::to_string(rank) + ".txt"));
}

}  // namespace ddrun
