#include "tests/process/output/relay_fixture.hpp"
#include "tests/support/catch.hpp"

#include <map>
#include <random>
#include <thread>

using namespace ddrun;
using namespace ddrun::test;
using namespace ddrun::launcher;

namespace {

// The i-th line of a stream: its number, then letters; 1 to 3000 bytes.
std::string numbered_line(int stream, int i) {
    std::mt19937 random(static_cast<unsigned>(stream * 100'003 + i));
    std::string line = std::to_string(i) + ":";
    line.resize(std::max<std::size_t>(line.size(), 1 + random() % 3000));
    for (auto at = std::to_string(i).size() + 1; at < line.size(); ++at)
        line[at] = static_cast<char>('a' + random() % 26);
    return line;
}

void write_in_small_chunks(int fd, const std::string& text) {
    for (std::size_t at = 0; at < text.size(); at += 7)
        write_all(fd, std::string_view(text).substr(at, 7));
}

// Ends the relay and the console's pipe, and gives what the reader got.
std::string finish(RelayFixture& fixture, Pipe& console, Reader& reader) {
    fixture.relay->finish();
    console.write_end.reset();
    return reader.all();
}

}  // namespace

TEST_CASE("LOG-1: 32 streams in chunks of 7 bytes, a slow reader, every line intact and in order") {
    constexpr int workers = 16;
    constexpr int lines_each = 150;
    Pipe console;
    auto options = into(console);
    options.console_buffer = 64u << 10;
    RelayFixture fixture(options);
    Reader reader(console.read_end.get(), 300);
    std::vector<std::thread> writers;
    for (int i = 0; i < workers; ++i) {
        auto worker = std::make_shared<TestWorker>(fixture.add(i, [i](WorkerStreams& streams) {
            streams.out.prefix = "[" + std::to_string(i) + " out] ";
            streams.err.prefix = "[" + std::to_string(i) + " err] ";
        }));
        for (const int stream : {2 * i, 2 * i + 1})
            writers.emplace_back([worker, stream] {
                for (int k = 0; k < lines_each; ++k)
                    write_in_small_chunks(stream % 2 ? worker->err.get() : worker->out.get(),
                                          numbered_line(stream, k) + "\n");
            });
    }
    for (auto& writer : writers) writer.join();
    writers.clear();
    for (int i = 0; i < workers; ++i) fixture.ended(i);
    for (int i = 0; i < workers; ++i) REQUIRE(fixture.await_drained(i));
    const auto lines = lines_of(finish(fixture, console, reader));

    std::map<int, int> next;
    int intact = 0;
    for (const auto& line : lines) {
        int rank = -1;
        char kind[4] = {};
        REQUIRE(std::sscanf(line.c_str(), "[%d %3s] ", &rank, kind) == 2);
        const int stream = 2 * rank + (kind[0] == 'e' ? 1 : 0);
        REQUIRE(line.substr(line.find("] ") + 2) == numbered_line(stream, next[stream]++));
        ++intact;
    }
    CHECK(intact == 2 * workers * lines_each);
    CHECK(fixture.relay->losses().empty());
}

TEST_CASE("LOG-1: an unfinished last line gets its newline when the worker ends") {
    Pipe console;
    RelayFixture fixture(into(console));
    Reader reader(console.read_end.get());
    auto worker = fixture.add(3);
    write_all(worker.out.get(), "first\nno newline");
    CHECK(fixture.end(worker, 3));
    CHECK(finish(fixture, console, reader) == "[3] first\n[3] no newline\n");
}

TEST_CASE("a line over the limit comes in pieces, each with the prefix") {
    Pipe console;
    auto options = into(console);
    options.line_limit = 10;
    RelayFixture fixture(options);
    Reader reader(console.read_end.get());
    auto worker = fixture.add(0);
    write_all(worker.out.get(), "0123456789abcdefghijXYZ\nshort\n");
    CHECK(fixture.end(worker, 0));
    CHECK(finish(fixture, console, reader) ==
          "[0] 0123456789\n[0] abcdefghij\n[0] XYZ\n[0] short\n");
}

TEST_CASE("stdout and stderr go to their own consoles") {
    Pipe out;
    Pipe err;
    auto options = into(out);
    options.console_err = err.write_end.get();
    RelayFixture fixture(options);
    Reader out_reader(out.read_end.get());
    Reader err_reader(err.read_end.get());
    auto worker = fixture.add(0);
    write_all(worker.out.get(), "result\n");
    write_all(worker.err.get(), "warning\n");
    CHECK(fixture.end(worker, 0));
    fixture.relay->say("ddrun: the end");
    fixture.relay->finish();
    out.write_end.reset();
    err.write_end.reset();
    CHECK(out_reader.all() == "[0] result\n");
    CHECK(err_reader.all() == "[0] warning\nddrun: the end\n");
}

TEST_CASE("LOG-5: all that reached the pipe before a death is shown, 1 MB in a burst") {
    Pipe console;
    RelayFixture fixture(into(console));
    Reader reader(console.read_end.get());
    auto worker = fixture.add(0);
    std::string text;
    for (int i = 0; text.size() < 1'000'000; ++i) text += "line " + std::to_string(i) + "\n";
    write_all(worker.out.get(), text);
    CHECK(fixture.end(worker, 0));
    const auto shown = finish(fixture, console, reader);
    CHECK(lines_of(shown).size() == lines_of(text).size());
    CHECK(lines_of(shown).back() == "[0] " + lines_of(text).back());
}

TEST_CASE("LOG-5: a line is visible while its worker runs on") {
    Pipe console;
    RelayFixture fixture(into(console));
    auto worker = fixture.add(0);
    std::string seen;
    for (int i = 0; i < 50; ++i) {
        const std::string line = "x" + std::to_string(i) + "\n";
        write_all(worker.out.get(), line);
        REQUIRE(
            read_until(console.read_end.get(), seen, [&](auto& text) { return has(text, line); }));
    }
}

TEST_CASE("ddrun's own lines stand between the workers' lines, never inside") {
    Pipe console;
    RelayFixture fixture(into(console));
    Reader reader(console.read_end.get());
    auto worker = fixture.add(0);
    std::thread writer([&] {
        for (int i = 0; i < 3000; ++i)
            write_in_small_chunks(worker.out.get(), "a line of a worker\n");
    });
    for (int i = 0; i < 500; ++i) fixture.relay->say("ddrun: said " + std::to_string(i));
    writer.join();
    CHECK(fixture.end(worker, 0));
    int said = 0, written = 0;
    for (const auto& line : lines_of(finish(fixture, console, reader))) {
        if (line == "ddrun: said " + std::to_string(said))
            ++said;
        else if (line == "[0] a line of a worker")
            ++written;
    }
    CHECK(said == 500);
    CHECK(written == 3000);
}

TEST_CASE("a stream that is not shown is still in the tail") {
    Pipe console;
    RelayFixture fixture(into(console));
    Reader reader(console.read_end.get());
    auto worker = fixture.add(
        0, [](WorkerStreams& streams) { streams.out.to_console = streams.err.to_console = false; });
    write_all(worker.out.get(), "hello\n");
    write_all(worker.err.get(), "why\n");
    CHECK(fixture.end(worker, 0));
    CHECK(fixture.relay->tail(0, 0) == std::vector<std::string>{"why"});
    CHECK(finish(fixture, console, reader).empty());
}

TEST_CASE(
    "the tail: last 20 lines of stderr, of stdout when stderr was silent, also after the end") {
    Pipe console;
    RelayFixture fixture(into(console));
    Reader reader(console.read_end.get());
    auto talker = fixture.add(0);
    auto quiet = fixture.add(1);
    for (int i = 0; i < 100; ++i) write_all(talker.err.get(), "trace " + std::to_string(i) + "\n");
    write_all(talker.out.get(), "not this\n");
    write_all(quiet.out.get(), "only stdout\n");
    CHECK(eventually([&] { return fixture.relay->tail(0, 1).size() == 1; }));
    CHECK(fixture.end(talker, 0));
    CHECK(fixture.end(quiet, 1));
    for (int again = 0; again < 2; ++again) {
        const auto tail = fixture.relay->tail(0, 0);
        REQUIRE(tail.size() == 20);
        CHECK(tail.front() == "trace 80");
        CHECK(tail.back() == "trace 99");
        CHECK(fixture.relay->tail(0, 1) == std::vector<std::string>{"only stdout"});
        CHECK(fixture.relay->tail(7, 7).empty());
        fixture.relay->finish();
    }
    console.write_end.reset();
    reader.all();
}

TEST_CASE("activity is told at most once a second") {
    Pipe console;
    RelayFixture fixture(into(console));
    Reader reader(console.read_end.get());
    auto worker = fixture.add(0);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 2000; ++i) write_all(worker.out.get(), "busy\n");
    CHECK(fixture.end(worker, 0));
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
    CHECK(fixture.times_active() >= 1);
    CHECK(fixture.times_active() <= 1 + seconds.count());
    finish(fixture, console, reader);
}

TEST_CASE("rounds are told apart") {
    Pipe console;
    RelayFixture fixture(into(console));
    Reader reader(console.read_end.get());
    for (int round = 1; round <= 4; ++round) {
        auto worker = fixture.add(0, {}, round);
        write_all(worker.err.get(), "round " + std::to_string(round) + "\n");
        worker = {};
        fixture.ended(0, round);
        REQUIRE(fixture.await_drained(0, round));
    }
    CHECK(fixture.relay->tail(4, 0) == std::vector<std::string>{"round 4"});
    CHECK(fixture.relay->tail(3, 0) == std::vector<std::string>{"round 3"});
    CHECK(fixture.relay->tail(1, 0).empty());
    CHECK(finish(fixture, console, reader) ==
          "[0] round 1\n[0] round 2\n[0] round 3\n[0] round 4\n");
}
