#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddrun::launcher {

// One log file: bytes exactly as written, appended, never truncated. A write that fails loses its
// bytes (counted), never a worker's time; once a second it is tried again, and where it works again
// a line says how many bytes are missing there. Output thread only; blocks for as long as the disk
// does.
class LogFile {
  public:
    LogFile(std::string path, TimePoint now);  // opens (O_APPEND, created with the umask's mode)

    void write(std::string_view bytes, TimePoint now);
    // A line of ddrun's own, put at the next line's start.
    void note(std::string_view line, TimePoint now);
    // Last try to say what is missing, then close. Idempotent.
    void close(TimePoint now);

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] bool open() const { return static_cast<bool>(file_); }
    // "PATH: 4096 bytes lost (No space left on device)".
    [[nodiscard]] std::optional<std::string> loss() const;
    // Once: what went wrong first.
    [[nodiscard]] std::optional<std::string> take_first_failure();

  private:
    void open_file(TimePoint now);
    [[nodiscard]] bool ready(TimePoint now);
    [[nodiscard]] std::size_t put(std::string_view bytes, TimePoint now);
    [[nodiscard]] bool put_inserted(TimePoint now);
    void failed(int error, TimePoint now);

    std::string path_;
    UniqueFd file_;
    std::string inserted_;  // lines of our own that are not wholly written yet
    std::string note_;      // waits for a line's start
    char last_byte_ = '\n';
    bool reported_ = true;
    bool closed_ = false;
    int error_ = 0;
    std::optional<TimePoint> retry_at_;
    std::uint64_t lost_ = 0;
    std::uint64_t unmarked_ = 0;  // of them, not yet told in the file
};

}  // namespace ddrun::launcher
