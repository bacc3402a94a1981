#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

// A real program under test: started, talked to, awaited, and afterwards proved to have left
// nothing.
namespace ddrun::test {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::milliseconds;

struct Invocation {
    std::vector<std::string> argv;           // argv[0] is a path or found in PATH
    std::map<std::string, std::string> env;  // added to ours; DDTAG is added by Program
    std::vector<std::string> unset;          // removed from ours
    std::string directory;                   // empty: ours
    bool terminal = false;                   // stdin, stdout, stderr are a pseudo-terminal
    bool stdin_open = false;            // stdin is a pipe held open (write_stdin); else /dev/null
    std::function<void()> before_exec;  // in the child: limits, dispositions ...
};

class Program {
  public:
    explicit Program(Invocation invocation);
    ~Program();  // ends whatever is left by SIGKILL, so that a failing test leaves nothing either
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    void send_signal(int signal) const;
    void type(const std::string& keys);  // to the terminal or the open stdin
    void close_terminal();               // the window goes away
    void close_output();                 // our read end of stdout closes: the reader went away

    // Waits for the end; nullopt after `limit`. Shell convention: 128 + signal.
    std::optional<int> wait(Milliseconds limit);
    // Waits until stdout + stderr so far satisfy it.
    bool wait_until(const std::function<bool()>& condition, Milliseconds limit);
    bool wait_for_output(const std::string& text, Milliseconds limit);

    // All that was read so far. With a terminal everything is in output().
    [[nodiscard]] const std::string& output() const { return out_; }
    [[nodiscard]] const std::string& errors() const { return err_; }
    [[nodiscard]] std::chrono::steady_clock::duration lifetime() const;

    // Living (not zombie) processes that carry this program's tag, without the program itself.
    [[nodiscard]] std::vector<pid_t> descendants() const;
    // True once nothing with the tag lives any more.
    [[nodiscard]] bool leaves_nothing(Milliseconds limit);

  private:
    void pump(Milliseconds limit);
    bool reap(bool block);

    std::string tag_;
    pid_t pid_ = -1;
    int in_ = -1;
    int out_fd_ = -1;
    int err_fd_ = -1;
    std::string out_;
    std::string err_;
    std::optional<int> status_;
    std::chrono::steady_clock::time_point started_;
    std::chrono::steady_clock::time_point ended_;
};

// The end of a program that needs no attention: runs it to its end.
struct Finished {
    int code = -1;  // -1: still running at the limit (and killed)
    std::string output;
    std::string errors;
    double seconds = 0;
    bool left_nothing = false;
};
Finished run(Invocation invocation, Milliseconds limit = 30s);

// ddrun itself, from the build.
[[nodiscard]] std::string ddrun_path();
Finished run_ddrun(std::vector<std::string> arguments, Milliseconds limit = 30s);
[[nodiscard]] Invocation ddrun_with(std::vector<std::string> arguments);
// Workers that run a shell script.
[[nodiscard]] Invocation shell(int workers, const std::string& script,
                               std::vector<std::string> flags = {});

// A private directory that goes away with the object.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);
[[nodiscard]] std::size_t count_of(const std::string& text, const std::string& part);
[[nodiscard]] bool has(const std::string& text, const std::string& part);
[[nodiscard]] std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);
[[nodiscard]] char process_state(pid_t pid);  // 'R' 'S' 'Z' 'T' ...; 0: gone

}  // namespace ddrun::test
