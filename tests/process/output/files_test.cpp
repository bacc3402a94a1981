#include "tests/process/output/relay_fixture.hpp"
#include "tests/support/catch.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

using namespace ddrun;
using namespace ddrun::test;
using namespace ddrun::launcher;

namespace {

std::string random_bytes(std::size_t size) {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
}

auto to_file(const std::string& path) {
    return [path](WorkerStreams& streams) {
        streams.out.file = path;
        streams.out.to_console = streams.err.to_console = false;
    };
}

// A file system of 64 KiB that only this process sees; nothing when that is not allowed here.
class SmallDisk {
  public:
    SmallDisk() {
        mounted_ = ::unshare(CLONE_NEWNS) == 0 &&
                   ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                   ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=64k") == 0;
        if (!mounted_)
            WARN("skipped: no private mount of a small tmpfs here: " << std::strerror(errno));
    }
    ~SmallDisk() {
        if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
    }
    [[nodiscard]] bool mounted() const { return mounted_; }
    [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

  private:
    Folder folder_;
    bool mounted_ = false;
};

}  // namespace

TEST_CASE("LOG-6: files have the bytes exactly as written, also when the console shows them") {
    Folder folder;
    Pipe console;
    RelayFixture fixture(into(console));
    Reader reader(console.read_end.get());
    const std::string bytes = random_bytes(3'000'000);
    std::vector<TestWorker> workers;
    for (int i = 0; i < 4; ++i)
        workers.push_back(fixture.add(i, [&](WorkerStreams& streams) {
            streams.out.file = folder.file("out" + std::to_string(i));
            streams.err.file = folder.file("err" + std::to_string(i));
            streams.out.to_console = i % 2 == 0;
        }));
    std::vector<std::thread> writers;
    for (auto& worker : workers)
        writers.emplace_back([&] {
            write_all(worker.out.get(), bytes);
            write_all(worker.err.get(), "err");
        });
    for (auto& writer : writers) writer.join();
    for (int i = 0; i < 4; ++i) CHECK(fixture.end(workers[static_cast<std::size_t>(i)], i));
    for (int i = 0; i < 4; ++i) {
        CHECK((file_text(folder.file("out" + std::to_string(i))) == bytes));
        CHECK(file_text(folder.file("err" + std::to_string(i))) == "err");
    }
    fixture.relay->finish();
    CHECK(fixture.relay->losses().empty());
    CHECK(fixture.failures().empty());
}

TEST_CASE("LOG-8: a file that exists is continued, and one that says nothing exists") {
    Folder folder;
    std::ofstream(folder.file("old")) << "earlier run\n";
    Pipe console;
    RelayFixture fixture(into(console));
    auto first = fixture.add(0, to_file(folder.file("old")));
    auto second = fixture.add(1, to_file(folder.file("silent")));
    write_all(first.out.get(), "this run");
    CHECK(fixture.end(first, 0));
    CHECK(fixture.end(second, 1));
    CHECK(file_text(folder.file("old")) == "earlier run\nthis run");
    CHECK(std::filesystem::exists(folder.file("silent")));
}

TEST_CASE("LOG-7: a full disk loses bytes and no worker's time; with space again writing resumes") {
    SmallDisk disk;
    if (!disk.mounted()) return;
    Pipe console;
    RelayFixture fixture(into(console));
    const std::string line = std::string(99, 'x') + "\n";
    { std::ofstream(disk.file("filler")) << std::string(32768, 'f'); }
    auto worker =
        fixture.add(0, [&](WorkerStreams& streams) { streams.out.file = disk.file("log"); });
    Reader reader(console.read_end.get());
    std::size_t written = 0;
    for (; written < 2000; ++written) write_all(worker.out.get(), line);
    REQUIRE(eventually([&] { return fixture.failures().size() == 1; }));
    CHECK(fixture.failures()[0].first == disk.file("log"));
    CHECK(has(fixture.failures()[0].second, "No space left on device"));

    std::filesystem::remove(disk.file("filler"));
    REQUIRE(eventually([&] {
        write_all(worker.out.get(), "after\n");
        return has(file_text(disk.file("log")), "after\n");
    }));
    CHECK(fixture.end(worker, 0));
    fixture.relay->finish();
    console.write_end.reset();
    CHECK(count_of(reader.all(), line) == written);  // the console missed nothing
    CHECK(fixture.failures().size() == 1);

    const std::string log = file_text(disk.file("log"));
    const auto gap = log.find("ddrun: ");
    REQUIRE(gap != log.npos);
    std::size_t lost = 0;
    CHECK(std::sscanf(log.c_str() + gap, "ddrun: %zu bytes lost here (No space left on device)",
                      &lost) == 1);
    CHECK(log[gap - 1] == '\n');
    CHECK(log.substr(log.find('\n', gap) + 1, 6) == "after\n");
    const auto losses = fixture.relay->losses();
    REQUIRE(losses.size() == 1);
    CHECK(losses[0] ==
          disk.file("log") + ": " + std::to_string(lost) + " bytes lost (No space left on device)");
}

TEST_CASE(
    "LOG-7: a device that is always full costs a count, one report a file, and nothing else") {
    Pipe console;
    RelayFixture fixture(into(console));
    auto worker = fixture.add(0, to_file("/dev/full"));
    for (int i = 0; i < 1000; ++i) write_all(worker.out.get(), "0123456789");
    CHECK(fixture.end(worker, 0));
    REQUIRE(fixture.failures().size() == 1);
    CHECK(has(fixture.failures()[0].second, "cannot be written: No space left on device"));
    const auto losses = fixture.relay->losses();
    REQUIRE(losses.size() == 1);
    CHECK(losses[0] == "/dev/full: 10000 bytes lost (No space left on device)");
}

TEST_CASE("LOG-8: a file that cannot be opened is reported once and opened when that is possible") {
    Folder folder;
    Pipe console;
    RelayFixture fixture(into(console));
    const std::string path = folder.file("later/log");
    auto worker = fixture.add(0, to_file(path));
    write_all(worker.out.get(), "lost\n");
    REQUIRE(eventually([&] { return fixture.failures().size() == 1; }));
    CHECK(fixture.failures()[0] ==
          std::pair<std::string, std::string>(
              path,
              "cannot be written: No such file or directory; its bytes are "
              "dropped and counted until writing works again"));
    REQUIRE(eventually([&] { return fixture.relay->losses().size() == 1; }));
    std::filesystem::create_directory(folder.file("later"));
    REQUIRE(eventually([&] {
        write_all(worker.out.get(), "kept\n");
        return has(file_text(path), "kept\n");
    }));
    CHECK(file_text(path).starts_with("ddrun: "));
    CHECK(has(file_text(path), " bytes lost here (No such file or directory)\nkept\n"));
    CHECK(fixture.end(worker, 0));
    CHECK(fixture.failures().size() == 1);
}

TEST_CASE("LOG-8: a log directory that is moved away during the run keeps its bytes") {
    Folder folder;
    Pipe console;
    RelayFixture fixture(into(console));
    std::filesystem::create_directory(folder.file("logs"));
    auto worker = fixture.add(0, to_file(folder.file("logs/out")));
    write_all(worker.out.get(), "one\n");
    REQUIRE(eventually([&] { return file_text(folder.file("logs/out")) == "one\n"; }));
    std::filesystem::rename(folder.file("logs"), folder.file("moved"));
    std::filesystem::create_directory(folder.file("logs"));
    write_all(worker.out.get(), "two\n");
    CHECK(fixture.end(worker, 0));
    CHECK(file_text(folder.file("moved/out")) == "one\ntwo\n");
}

TEST_CASE("lines that match a filter also go to one file for all ranks") {
    Folder folder;
    Pipe console;
    RelayFixture fixture(into(console));
    std::vector<TestWorker> workers;
    for (int i = 0; i < 4; ++i)
        workers.push_back(fixture.add(i, [&](WorkerStreams& streams) {
            streams.out.to_console = false;
            streams.out.duplicate_file = folder.file("filtered");
            streams.out.duplicate_filters = {"loss", "lr="};
            streams.out.duplicate_prefix = "[" + std::to_string(i) + "] ";
        }));
    std::vector<std::thread> writers;
    for (auto& worker : workers)
        writers.emplace_back([&] {
            for (int i = 0; i < 500; ++i) {
                write_all(worker.out.get(), "loss " + std::to_string(i));
                write_all(worker.out.get(), "\nnothing\nlr=1\n");
            }
            write_all(worker.out.get(), "last loss");
        });
    for (auto& writer : writers) writer.join();
    for (int i = 0; i < 4; ++i) CHECK(fixture.end(workers[static_cast<std::size_t>(i)], i));
    const auto text = file_text(folder.file("filtered"));
    CHECK(lines_of(text).size() == 4 * 1001);
    for (const auto& line : lines_of(text)) {
        REQUIRE(line.size() > 4);
        const auto words = line.substr(4);
        REQUIRE((words.starts_with("loss ") || words == "lr=1" || words == "last loss"));
    }
    CHECK(count_of(text, "[3] last loss\n") == 1);
}

TEST_CASE("a file limit (RLIMIT_FSIZE) is a failure like any other") {
    Folder folder;
    Pipe console;
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{4096, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    {
        RelayFixture fixture(into(console));
        auto worker = fixture.add(0, to_file(folder.file("log")));
        write_all(worker.out.get(), std::string(10'000, 'x'));
        CHECK(fixture.end(worker, 0));
        CHECK(fixture.failures().size() == 1);
        CHECK(file_text(folder.file("log")).size() == 4096);
        CHECK(fixture.relay->losses() ==
              std::vector<std::string>{folder.file("log") + ": 5904 bytes lost (File too large)"});
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
}
