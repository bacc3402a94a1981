#include "tests/process/output/relay_fixture.hpp"
#include "tests/support/catch.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

using namespace ddrun;
using namespace ddrun::test;
using namespace ddrun::launcher;

namespace {

constexpr int line_bytes = 100;

std::string line_number(int i) {
    std::string line = "line " + std::to_string(i) + " ";
    line.resize(line_bytes - 1, '.');
    return line + "\n";
}

void write_lines(int fd, int first, int last) {
    for (int i = first; i < last; ++i) write_all(fd, line_number(i));
}

struct Shown {
    int intact = 0;
    int dropped = 0;
    int markers = 0;
    int broken = 0;
};

// Lines must be numbered lines in rising order, or markers of dropped ones.
Shown judge(const std::string& text, const std::string& prefix = "[0] ") {
    Shown shown;
    int next = 0;
    for (const auto& line : lines_of(text)) {
        int number = -1;
        if (std::sscanf(line.c_str(), "ddrun: %d line", &number) == 1) {
            shown.dropped += number;
            ++shown.markers;
        } else if (std::sscanf(line.c_str(), (prefix + "line %d ").c_str(), &number) == 1 &&
                   number >= next && line + "\n" == prefix + line_number(number)) {
            ++shown.intact;
            next = number + 1;
        } else {
            ++shown.broken;
        }
    }
    return shown;
}

RelayOptions impatient(const Pipe& console) {
    auto options = into(console);
    options.reader_patience = 100ms;
    options.console_buffer = 64u << 10;
    return options;
}

struct Terminal {
    Terminal() {
        int master_fd = -1;
        int slave_fd = -1;
        REQUIRE(::openpty(&master_fd, &slave_fd, nullptr, nullptr, nullptr) == 0);
        termios raw{};
        ::tcgetattr(slave_fd, &raw);
        ::cfmakeraw(&raw);  // "\n" stays "\n", which makes expectations readable
        ::tcsetattr(slave_fd, TCSANOW, &raw);
        master = UniqueFd(master_fd);
        slave = UniqueFd(slave_fd);
    }
    [[nodiscard]] RelayOptions options() const {
        RelayOptions made;
        made.console_out = made.console_err = slave.get();
        return made;
    }
    UniqueFd master;
    UniqueFd slave;
};

}  // namespace

TEST_CASE("LOG-1: a slow reader that moves makes workers wait; nothing is dropped") {
    Pipe console;
    RelayFixture fixture(impatient(console));
    auto worker = fixture.add(0);
    constexpr int lines = 10'000;
    std::thread writer([&] {
        write_lines(worker.out.get(), 0, lines);
        worker = {};
        fixture.ended(0);
    });
    std::string text;
    // One small read at a time, each after a pause within the patience.
    for (int i = 0; i < 30; ++i) {
        std::this_thread::sleep_for(20ms);
        char some[4096];
        const ssize_t n = ::read(console.read_end.get(), some, sizeof some);
        REQUIRE(n > 0);
        text.append(some, static_cast<std::size_t>(n));
    }
    Reader rest(console.read_end.get());
    writer.join();
    REQUIRE(fixture.await_drained(0));
    fixture.relay->finish();
    console.write_end.reset();
    const Shown shown = judge(text + rest.all());
    CHECK(shown.intact == lines);
    CHECK(shown.broken == 0);
    CHECK(shown.markers == 0);
    CHECK(fixture.relay->losses().empty());
}

TEST_CASE(
    "LOG-9: a stopped reader loses lines after the patience, files lose nothing, one marker "
    "tells") {
    Folder folder;
    Pipe console;
    RelayFixture fixture(impatient(console));
    auto worker =
        fixture.add(0, [&](WorkerStreams& streams) { streams.out.file = folder.file("log"); });
    constexpr int lines = 20'000;
    write_lines(worker.out.get(), 0, lines);  // would block for ever if nobody dropped
    CHECK(eventually([&] { return file_text(folder.file("log")).size() == lines * line_bytes; }));

    std::string text;
    REQUIRE(read_until(console.read_end.get(), text,
                       [](auto& so_far) { return has(so_far, "dropped here"); }));
    write_lines(worker.out.get(), lines, lines + 10);
    REQUIRE(read_until(console.read_end.get(), text,
                       [&](auto& so_far) { return has(so_far, line_number(lines + 9)); }));
    const Shown shown = judge(text);
    CHECK(shown.broken == 0);
    CHECK(shown.markers == 1);
    CHECK(shown.dropped > 0);
    CHECK(shown.intact + shown.dropped == lines + 10);
    const auto losses = fixture.relay->losses();
    REQUIRE(losses.size() == 1);
    CHECK(losses[0] == "console: " + std::to_string(shown.dropped) +
                           " lines dropped (its reader took nothing for 0.1 s)");
    CHECK(fixture.end(worker, 0));
}

TEST_CASE("LOG-9: while a reader is slow, what is not shown goes on at full speed") {
    Folder folder;
    Pipe console;
    auto options = into(console);
    options.console_buffer = 64u << 10;
    options.reader_patience = 1h;
    RelayFixture fixture(options);
    auto shown = fixture.add(0);
    auto hidden = fixture.add(1, [&](WorkerStreams& streams) {
        streams.out.file = folder.file("log");
        streams.out.to_console = false;
    });
    std::thread blocked([&] { write_lines(shown.out.get(), 0, 10'000); });
    write_lines(hidden.out.get(), 0, 20'000);
    CHECK(fixture.end(hidden, 1));
    CHECK(file_text(folder.file("log")).size() == 20'000 * line_bytes);
    Reader reader(console.read_end.get());
    blocked.join();
    CHECK(fixture.end(shown, 0));
    fixture.relay->finish();
    console.write_end.reset();
    CHECK(judge(reader.all()).intact == 10'000);
}

TEST_CASE("LOG-9: the reader goes away: console off, files go on, one note in a log file") {
    Folder folder;
    Pipe console;
    RelayFixture fixture(into(console));
    auto worker = fixture.add(0, [&](WorkerStreams& streams) {
        streams.out.file = folder.file("out");
        streams.err.file = folder.file("err");
    });
    write_lines(worker.out.get(), 0, 1);
    std::string seen;
    REQUIRE(
        read_until(console.read_end.get(), seen, [](auto& text) { return has(text, "line 0"); }));
    console.read_end.reset();
    write_lines(worker.out.get(), 1, 30'000);
    write_all(worker.err.get(), "one\n");
    CHECK(fixture.end(worker, 0));
    const auto log = file_text(folder.file("out"));
    CHECK(log.size() == 30'000 * line_bytes);
    const auto errors = file_text(folder.file("err"));
    CHECK(count_of(errors, "ddrun: console is gone (Broken pipe); log files go on\n") == 1);
    CHECK(has(errors, "one\n"));
    CHECK(fixture.relay->losses() ==
          std::vector<std::string>{"console: switched off (Broken pipe)"});
}

TEST_CASE("LOG-9: the terminal window is closed: EIO switches the console off") {
    Terminal terminal;
    RelayFixture fixture(terminal.options());
    auto worker = fixture.add(0);
    write_lines(worker.out.get(), 0, 1);
    std::string seen;
    REQUIRE(
        read_until(terminal.master.get(), seen, [](auto& text) { return has(text, "line 0"); }));
    terminal.master.reset();
    write_lines(worker.out.get(), 1, 10'000);
    CHECK(fixture.end(worker, 0));
    CHECK(fixture.relay->losses() ==
          std::vector<std::string>{"console: switched off (Input/output error)"});
}

TEST_CASE("LOG-9: a console closed at the start is no loss") {
    RelayOptions options;
    {
        Pipe closed;
        options.console_out = options.console_err = closed.write_end.get();
    }
    RelayFixture fixture(options);
    auto worker = fixture.add(0);
    write_lines(worker.out.get(), 0, 10'000);
    fixture.relay->say("to nobody");
    CHECK(fixture.end(worker, 0));
    fixture.relay->finish();
    CHECK(fixture.relay->losses().empty());
}

TEST_CASE("LOG-7: a console on a full disk drops with a count and blocks nobody") {
    UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    RelayOptions options;
    options.console_out = options.console_err = full.get();
    RelayFixture fixture(options);
    auto worker = fixture.add(0);
    write_lines(worker.out.get(), 0, 100'000);
    CHECK(fixture.end(worker, 0));
    fixture.relay->finish();
    CHECK(fixture.relay->losses() ==
          std::vector<std::string>{"console: 100000 lines dropped (No space left on device)"});
}

TEST_CASE("a console that is a file shares its offset with whoever else writes there") {
    Folder folder;
    UniqueFd file(::open(folder.file("console").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    write_all(file.get(), "before\n");
    RelayOptions options;
    options.console_out = options.console_err = file.get();
    RelayFixture fixture(options);
    auto worker = fixture.add(0);
    write_all(worker.out.get(), "hello\n");
    CHECK(fixture.end(worker, 0));
    fixture.relay->finish();
    write_all(file.get(), "after\n");
    CHECK(file_text(folder.file("console")) == "before\n[0] hello\nafter\n");
}

TEST_CASE("flags of inherited descriptors stay as they are") {
    Pipe console;
    Terminal terminal;
    const int before_pipe = ::fcntl(console.write_end.get(), F_GETFL);
    const int before_terminal = ::fcntl(terminal.slave.get(), F_GETFL);
    auto options = into(console);
    options.console_err = terminal.slave.get();
    RelayFixture fixture(options);
    auto worker = fixture.add(0);
    write_all(worker.out.get(), "a\n");
    write_all(worker.err.get(), "b\n");
    CHECK(fixture.end(worker, 0));
    CHECK(::fcntl(console.write_end.get(), F_GETFL) == before_pipe);
    CHECK(::fcntl(terminal.slave.get(), F_GETFL) == before_terminal);
    CHECK((before_pipe & O_NONBLOCK) == 0);
}

TEST_CASE("a socket as console: no flag is needed to never block on it") {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    RelayOptions options;
    options.console_out = options.console_err = writer.get();
    options.reader_patience = 100ms;
    options.console_buffer = 64u << 10;
    RelayFixture fixture(options);
    auto worker = fixture.add(0);
    write_lines(worker.out.get(), 0, 20'000);
    std::string text;
    REQUIRE(
        read_until(reader.get(), text, [](auto& so_far) { return has(so_far, "dropped here"); }));
    CHECK(judge(text).broken == 0);
    CHECK(fixture.end(worker, 0));
}

TEST_CASE(
    "a pipe that cannot be opened again gets small writes, and still no worker waits for ever") {
    Folder folder;
    Pipe console;
    // The pipe is root's; for this moment we are not.
    ::setfsuid(65534);
    const UniqueFd again(
        ::open(("/proc/self/fd/" + std::to_string(console.write_end.get())).c_str(), O_WRONLY));
    std::unique_ptr<RelayFixture> fixture;
    if (!again) fixture = std::make_unique<RelayFixture>(impatient(console));
    ::setfsuid(::geteuid());
    if (!fixture) {
        WARN("skipped: needs root, to give up a right for a moment");
        return;
    }
    auto worker = fixture->add(0);
    write_lines(worker.out.get(), 0, 20'000);
    std::string text;
    REQUIRE(read_until(console.read_end.get(), text,
                       [](auto& so_far) { return has(so_far, "dropped here"); }));
    Reader rest(console.read_end.get());
    write_lines(worker.out.get(), 20'000, 20'010);
    CHECK(fixture->end(worker, 0));
    fixture->relay->finish();
    console.write_end.reset();
    const Shown shown = judge(text + rest.all());
    CHECK(shown.broken == 0);
    CHECK(shown.intact + shown.dropped == 20'010);
}

TEST_CASE("a terminal that is stopped (Ctrl-S) holds nobody for ever") {
    Terminal terminal;
    auto options = terminal.options();
    options.reader_patience = 100ms;
    options.console_buffer = 64u << 10;
    RelayFixture fixture(options);
    REQUIRE(::tcflow(terminal.slave.get(), TCOOFF) == 0);
    auto worker = fixture.add(0);
    write_lines(worker.out.get(), 0, 10'000);
    CHECK(fixture.end(worker, 0));
    REQUIRE(::tcflow(terminal.slave.get(), TCOON) == 0);
    std::string text;
    CHECK(read_until(terminal.master.get(), text,
                     [](auto& so_far) { return has(so_far, "dropped here"); }));
    CHECK(judge(text).broken == 0);
    fixture.relay->finish();
}

TEST_CASE("progress on a terminal: redrawn below other ranks' lines, a line at the end") {
    ::setenv("TERM", "xterm", 1);
    Terminal terminal;
    RelayFixture fixture(terminal.options());
    auto bar = fixture.add(0);
    auto other = fixture.add(1);
    std::string text;
    const auto shows = [&](const std::string& part) {
        return read_until(terminal.master.get(), text,
                          [&](auto& so_far) { return has(so_far, part); });
    };
    write_all(bar.err.get(), "\r 10%");
    REQUIRE(shows("[0]  10%"));
    write_all(bar.err.get(), "\r 20%");
    REQUIRE(shows("\r\x1b[K\x1b[?7l[0]  20%\x1b[?7h\r"));
    text.clear();
    write_all(other.out.get(), "hello\n");
    REQUIRE(shows("\r\x1b[K[1] hello\n\x1b[?7l[0]  20%\x1b[?7h\r"));
    text.clear();
    CHECK(fixture.end(bar, 0));
    REQUIRE(shows("\r\x1b[K[0]  20%\n"));
    CHECK(fixture.end(other, 1));
}

TEST_CASE("progress on a terminal that cannot erase: nobody's line is put behind it") {
    ::setenv("TERM", "dumb", 1);
    Terminal terminal;
    RelayFixture fixture(terminal.options());
    auto bar = fixture.add(0);
    auto other = fixture.add(1);
    std::string text;
    write_all(bar.err.get(), "10%\r20%\r.");
    REQUIRE(read_until(terminal.master.get(), text,
                       [](auto& so_far) { return so_far == "[0] 10%\r[0] 20%\r"; }));
    write_all(other.out.get(), "hello\n");
    REQUIRE(read_until(terminal.master.get(), text,
                       [](auto& so_far) { return has(so_far, "20%\r\n[1] hello\n"); }));
    ::setenv("TERM", "xterm", 1);
}
