#pragma once

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

namespace ddrun {

// Logs that ranks do not mix up: what concerns the job is printed once, by rank 0, and kept in
// `main.log`; what concerns one rank goes to that rank's own `rank_<r>.txt`. The files lie in the
// launcher's log directory of this round, or where to_directory() says; with neither, nothing is
// kept.
//
// Files are only appended to, one write per line, so a killed worker loses no finished line and a
// restarted one continues the file. Threads: any. Blocks: for the write of one line. A line that
// cannot be written is dropped, which is said once on stderr; logging throws only from
// to_directory().
class Log {
  public:
    // Rank 0: one line to stdout and to `main.log`. Other ranks: nothing. The parts are put
    // together as operator<< prints them; no newline needed.
    template <typename... Parts>
    void info(const Parts&... parts) {
        if (is_main()) main_line(join(parts...));
    }

    // Every rank: one line to its own `rank_<r>.txt`, nothing on the console.
    template <typename... Parts>
    void rank(const Parts&... parts) {
        if (has_directory()) rank_line(join(parts...));
    }

    // A status that replaces itself ("step 120/1000 loss 3.21 eta 40s"): rank 0 on a terminal only,
    // in no file. The next info() line takes its place.
    template <typename... Parts>
    void status(const Parts&... parts) {
        if (is_main() && console_is_terminal()) status_line(join(parts...));
    }

    // From now on the files are here; the directory is made where it is missing. Throws
    // Error{environment} naming the path when that, or opening a file in it, fails.
    void to_directory(const std::filesystem::path& directory);

    [[nodiscard]] bool is_main() const noexcept;  // rank 0
    [[nodiscard]] bool has_directory() const noexcept;
    // Whether what rank 0 prints ends on a terminal (under ddrun: ddrun's own stdout).
    [[nodiscard]] bool console_is_terminal() const noexcept;

    struct State;
    explicit Log(std::unique_ptr<State> state);  // made by Worker
    ~Log();

  private:
    template <typename... Parts>
    static std::string join(const Parts&... parts) {
        std::ostringstream line;
        (line << ... << parts);
        return std::move(line).str();
    }
    void main_line(std::string_view line);
    void rank_line(std::string_view line);
    void status_line(std::string_view line);

    std::unique_ptr<State> state_;
};

}  // namespace ddrun
