#pragma once

#include "launcher/runtime/output/output_relay.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A relay with real pipes at both sides, and what its callbacks said.
namespace ddrun::test {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds long_enough = 20s;  // for what must happen; how fast is judged elsewhere

struct Pipe {
    Pipe();
    UniqueFd read_end;
    UniqueFd write_end;
};

// Reads all bytes until the end of file (or EIO of a terminal) on a thread of its own.
class Reader {
  public:
    explicit Reader(int fd, std::size_t step = 65536);
    ~Reader();          // reads no further
    std::string all();  // once, after the end of file

  private:
    Pipe stop_;
    std::future<std::string> text_;
};
// Reads until `condition` holds for what was read so far; false after `limit`.
bool read_until(int fd, std::string& so_far,
                const std::function<bool(const std::string&)>& condition,
                Milliseconds limit = long_enough);
void write_all(int fd, std::string_view bytes);
[[nodiscard]] std::string file_text(const std::string& path);
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);
[[nodiscard]] bool has(const std::string& text, const std::string& part);
[[nodiscard]] std::size_t count_of(const std::string& text, const std::string& part);
bool eventually(const std::function<bool()>& condition, Milliseconds limit = long_enough);

class Folder {
  public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

// The worker's side of its two pipes.
struct TestWorker {
    UniqueFd out;
    UniqueFd err;
};

class RelayFixture {
  public:
    explicit RelayFixture(launcher::RelayOptions options);

    // Prefix "[local_rank] "; `adjust` changes the plan before it is handed over.
    TestWorker add(int local_rank, const std::function<void(launcher::WorkerStreams&)>& adjust = {},
                   int round = 0);
    void ended(int local_rank, int round = 0) { relay->worker_ended(round, local_rank); }
    // Closes both ends, reports the end, waits for `drained`.
    bool end(TestWorker& worker, int local_rank);
    bool await_drained(int local_rank, int round = 0, Milliseconds limit = long_enough);
    [[nodiscard]] int times_active();
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> failures();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::pair<int, int>, int> drained_;
    std::vector<std::pair<std::string, std::string>> failures_;
    int active_ = 0;

  public:
    std::unique_ptr<launcher::OutputRelay> relay;  // last: its thread uses the rest
};

// Both consoles lead into one pipe, as after 2>&1.
[[nodiscard]] launcher::RelayOptions into(const Pipe& console);

}  // namespace ddrun::test
