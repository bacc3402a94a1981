#include "tests/process/output/relay_fixture.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace ddrun::test {

Pipe::Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    read_end = UniqueFd(ends[0]);
    write_end = UniqueFd(ends[1]);
}

Reader::Reader(int fd, std::size_t step)
    : text_(std::async(std::launch::async, [fd, step, stop = stop_.read_end.get()] {
          std::string all;
          std::string buffer(step, '\0');
          for (;;) {
              pollfd entries[] = {{fd, POLLIN, 0}, {stop, POLLIN, 0}};
              if (::poll(entries, 2, -1) < 0) continue;
              if (entries[1].revents != 0) return all;
              const ssize_t n = ::read(fd, buffer.data(), buffer.size());
              if (n <= 0) return all;
              all.append(buffer.data(), static_cast<std::size_t>(n));
          }
      })) {}

Reader::~Reader() {
    stop_.write_end.reset();
}

std::string Reader::all() {
    return text_.get();
}

bool read_until(int fd, std::string& so_far,
                const std::function<bool(const std::string&)>& condition, Milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    std::array<char, 65536> buffer;
    while (!condition(so_far)) {
        const auto left = std::chrono::ceil<Milliseconds>(end - std::chrono::steady_clock::now());
        pollfd entry{fd, POLLIN, 0};
        if (left <= 0ms || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) return false;
        const ssize_t n = ::read(fd, buffer.data(), buffer.size());
        if (n <= 0) return condition(so_far);
        so_far.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return true;
}

void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) throw std::runtime_error("a worker's write failed");
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

std::string file_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const auto newline = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, newline - at));
        at = newline + 1;
    }
    return lines;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
        ++count;
    return count;
}

bool eventually(const std::function<bool()>& condition, Milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

Folder::Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "ddrun-output-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    path_ = name;
}

Folder::~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

RelayFixture::RelayFixture(launcher::RelayOptions options) {
    launcher::RelayCallbacks callbacks;
    callbacks.drained = [this](int round, int local_rank) {
        const std::lock_guard lock(mutex_);
        ++drained_[{round, local_rank}];
        changed_.notify_all();
    };
    callbacks.active = [this](int, int) {
        const std::lock_guard lock(mutex_);
        ++active_;
    };
    callbacks.file_failed = [this](std::string path, std::string words) {
        const std::lock_guard lock(mutex_);
        failures_.emplace_back(std::move(path), std::move(words));
    };
    relay = std::make_unique<launcher::OutputRelay>(options, std::move(callbacks));
}

TestWorker RelayFixture::add(int local_rank,
                             const std::function<void(launcher::WorkerStreams&)>& adjust,
                             int round) {
    Pipe out;
    Pipe err;
    launcher::WorkerStreams streams;
    streams.round = round;
    streams.rank = streams.local_rank = local_rank;
    streams.out.prefix = streams.err.prefix = "[" + std::to_string(local_rank) + "] ";
    if (adjust) adjust(streams);
    streams.out.read_end = ::fcntl(out.read_end.get(), F_DUPFD_CLOEXEC, 0);
    streams.err.read_end = ::fcntl(err.read_end.get(), F_DUPFD_CLOEXEC, 0);
    relay->add_worker(std::move(streams));
    return {std::move(out.write_end), std::move(err.write_end)};
}

bool RelayFixture::end(TestWorker& worker, int local_rank) {
    worker.out.reset();
    worker.err.reset();
    ended(local_rank);
    return await_drained(local_rank);
}

bool RelayFixture::await_drained(int local_rank, int round, Milliseconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return drained_[{round, local_rank}] == 1; });
}

int RelayFixture::times_active() {
    const std::lock_guard lock(mutex_);
    return active_;
}

std::vector<std::pair<std::string, std::string>> RelayFixture::failures() {
    const std::lock_guard lock(mutex_);
    return failures_;
}

launcher::RelayOptions into(const Pipe& console) {
    launcher::RelayOptions options;
    options.console_out = options.console_err = console.write_end.get();
    return options;
}

}  // namespace ddrun::test
