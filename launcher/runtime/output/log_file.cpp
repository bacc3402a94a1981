#include "launcher/runtime/output/log_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ddrun::launcher {

namespace {

constexpr Duration retry_pause = std::chrono::seconds(1);

// A full disk keeps the description good; after anything else (ESTALE, EIO) only a new one may
// work.
bool description_is_good(int error) {
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

}  // namespace

LogFile::LogFile(std::string path, TimePoint now) : path_(std::move(path)) {
    open_file(now);
}

void LogFile::open_file(TimePoint now) {
    file_ =
        UniqueFd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666));
    if (!file_) failed(errno, now);
}

void LogFile::write(std::string_view bytes, TimePoint now) {
    if (bytes.empty() || closed_) return;
    std::size_t done = 0;
    if (ready(now) && put_inserted(now)) {
        done = put(bytes, now);
        if (!note_.empty() && last_byte_ == '\n' && done == bytes.size()) {
            inserted_ = std::exchange(note_, {});
            (void)put_inserted(now);
        }
    }
    lost_ += bytes.size() - done;
    unmarked_ += bytes.size() - done;
}

void LogFile::note(std::string_view line, TimePoint now) {
    if (closed_) return;
    note_ = std::string(line) + "\n";
    if (last_byte_ != '\n' || !ready(now)) return;
    inserted_ += std::exchange(note_, {});
    (void)put_inserted(now);
}

void LogFile::close(TimePoint now) {
    if (closed_) return;
    retry_at_.reset();
    if ((unmarked_ > 0 || !note_.empty() || !inserted_.empty()) && ready(now)) {
        if (!note_.empty()) inserted_ += (last_byte_ == '\n' ? "" : "\n") + note_;
        (void)put_inserted(now);
    }
    file_.reset();
    closed_ = true;
}

bool LogFile::ready(TimePoint now) {
    if (retry_at_ && now < *retry_at_) return false;
    retry_at_.reset();
    if (!file_) open_file(now);
    return static_cast<bool>(file_);
}

// True when nothing of our own stands before the worker's next byte any more.
bool LogFile::put_inserted(TimePoint now) {
    while (!inserted_.empty() || unmarked_ > 0) {
        if (inserted_.empty()) {
            inserted_ = std::string(last_byte_ == '\n' ? "" : "\n") +
                        "ddrun: " + std::to_string(unmarked_) + " bytes lost here (" +
                        std::strerror(error_) + ")\n";
            unmarked_ = 0;
        }
        const std::size_t done = put(inserted_, now);
        inserted_.erase(0, done);
        if (!inserted_.empty()) return false;
    }
    return true;
}

std::size_t LogFile::put(std::string_view bytes, TimePoint now) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            failed(n < 0 ? errno : EIO, now);
            break;
        }
        done += static_cast<std::size_t>(n);
        last_byte_ = bytes[done - 1];
    }
    return done;
}

void LogFile::failed(int error, TimePoint now) {
    if (error_ == 0) reported_ = false;
    error_ = error;
    retry_at_ = now + retry_pause;
    if (!description_is_good(error)) file_.reset();
}

std::optional<std::string> LogFile::loss() const {
    if (lost_ == 0) return std::nullopt;
    return path_ + ": " + std::to_string(lost_) + " bytes lost (" + std::strerror(error_) + ")";
}

std::optional<std::string> LogFile::take_first_failure() {
    if (std::exchange(reported_, true)) return std::nullopt;
    return std::string("cannot be written: ") + std::strerror(error_) +
           "; its bytes are dropped and counted until writing works again";
}

}  // namespace ddrun::launcher
