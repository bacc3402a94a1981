#include "tests/process/output/relay_fixture.hpp"
#include "tests/support/catch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

using namespace ddrun;
using namespace ddrun::test;
using namespace ddrun::launcher;
using Clock = std::chrono::steady_clock;

TEST_CASE("a worker whose pipes are at their end is drained at once") {
    Pipe console;
    RelayFixture fixture(into(console));
    const auto begin = Clock::now();
    for (int i = 0; i < 100; ++i) {
        auto worker = fixture.add(i);
        REQUIRE(fixture.end(worker, i));
    }
    CHECK(Clock::now() - begin < 900ms);  // none of them waited for a grace period
}

TEST_CASE("a worker nobody added is drained") {
    Pipe console;
    RelayFixture fixture(into(console));
    fixture.ended(5);
    CHECK(fixture.await_drained(5));
}

TEST_CASE("LOG-5: whoever else holds the pipe delays the end by a second at most") {
    Pipe console;
    RelayFixture fixture(into(console));
    auto worker = fixture.add(0);  // stays open: a grandchild has it
    write_all(worker.out.get(), "before\nunfinished");
    const auto begin = Clock::now();
    fixture.ended(0);
    REQUIRE(fixture.await_drained(0));
    const auto took = Clock::now() - begin;
    CHECK(took > 900ms);
    CHECK(took < 3s);
    fixture.relay->finish();
    console.write_end.reset();
    CHECK(Reader(console.read_end.get()).all() == "[0] before\n[0] unfinished\n");
}

TEST_CASE("LOG-5: a holder that writes without end delays it no longer") {
    ::signal(SIGPIPE, SIG_IGN);
    Pipe console;
    RelayFixture fixture(into(console));
    Reader reader(console.read_end.get());
    auto worker = fixture.add(0);
    std::thread holder([fd = worker.out.get()] {
        while (::write(fd, "still here\n", 11) > 0) {
        }
    });
    const auto begin = Clock::now();
    fixture.ended(0);
    CHECK(fixture.await_drained(0));
    CHECK(Clock::now() - begin < 4s);
    holder.join();  // our end is closed: its write fails
    fixture.relay->finish();
    console.write_end.reset();
    CHECK(has(reader.all(), "[0] still here\n"));
}

TEST_CASE("what a holder writes within the second is heard") {
    Pipe console;
    RelayFixture fixture(into(console));
    auto worker = fixture.add(0);
    fixture.ended(0);
    write_all(worker.out.get(), "a late word\n");
    worker = {};
    CHECK(fixture.await_drained(0));
    std::string seen;
    CHECK(read_until(console.read_end.get(), seen,
                     [](auto& text) { return text == "[0] a late word\n"; }));
}

TEST_CASE("finish flushes what workers that were never reported wrote") {
    Pipe console;
    RelayFixture fixture(into(console));
    auto worker = fixture.add(0);
    write_all(worker.out.get(), "a\nb");
    fixture.relay->finish();
    fixture.relay->finish();
    console.write_end.reset();
    CHECK(Reader(console.read_end.get()).all() == "[0] a\n[0] b\n");
}

TEST_CASE("after finish everything is refused politely, and no descriptor leaks") {
    Pipe console;
    RelayFixture fixture(into(console));
    fixture.relay->finish();
    auto worker = fixture.add(0);
    fixture.relay->say("too late");
    fixture.ended(0);
    ::signal(SIGPIPE, SIG_IGN);
    CHECK(::write(worker.out.get(), "x", 1) == -1);  // our end of the pipe was closed
    console.write_end.reset();
    CHECK(Reader(console.read_end.get()).all().empty());
}

TEST_CASE("a reader that never reads holds finish for the patience only") {
    Pipe console;
    auto options = into(console);
    options.reader_patience = 200ms;
    options.console_buffer = 1u << 20;
    RelayFixture fixture(options);
    auto worker = fixture.add(0);
    for (int i = 0; i < 3000; ++i) write_all(worker.out.get(), std::string(99, 'x') + "\n");
    CHECK(fixture.end(worker, 0));
    const auto begin = Clock::now();
    fixture.relay->finish();
    CHECK(Clock::now() - begin < 2s);
    const auto losses = fixture.relay->losses();
    REQUIRE(losses.size() == 1);
    CHECK(has(losses[0], "lines dropped (its reader took nothing for 0.2 s)"));
    CHECK(has(losses[0], "console: "));
}

TEST_CASE("begin_finish returns at once, tells when all is flushed, and answers stay available") {
    Pipe console;
    std::promise<void> told;
    RelayCallbacks callbacks;
    callbacks.finished = [&] { told.set_value(); };
    OutputRelay relay(into(console), callbacks);
    Pipe out;
    WorkerStreams streams;
    streams.err.read_end = ::fcntl(out.read_end.get(), F_DUPFD_CLOEXEC, 0);
    relay.add_worker(streams);
    write_all(out.write_end.get(), "why\n");
    relay.begin_finish();
    REQUIRE(told.get_future().wait_for(long_enough) == std::future_status::ready);
    const auto begin = Clock::now();
    CHECK(relay.tail(0, 0) == std::vector<std::string>{"why"});
    CHECK(relay.losses().empty());
    CHECK(Clock::now() - begin < 900ms);
    relay.finish();
    console.write_end.reset();
    CHECK(Reader(console.read_end.get()).all() == "why\n");
}

TEST_CASE("the output thread takes no signals") {
    Pipe console;
    RelayFixture fixture(into(console));
    static std::atomic<bool> here{false};
    static pthread_t self;
    self = ::pthread_self();
    struct sigaction action {};
    action.sa_handler = [](int) { here = ::pthread_equal(::pthread_self(), self) != 0; };
    ::sigaction(SIGUSR1, &action, nullptr);
    ::kill(::getpid(), SIGUSR1);
    CHECK(eventually([] { return here.load(); }));
    ::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("a thread that the kernel does not let go is left behind, and calls nobody afterwards") {
    Folder folder;
    const std::string fifo = folder.file("fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    Pipe console;
    auto options = into(console);
    options.reader_patience = 100ms;
    {
        RelayFixture fixture(options);
        // To open a fifo for writing takes as long as its reader takes: the dead file server of
        // this test.
        auto worker = fixture.add(0, [&](WorkerStreams& streams) { streams.out.file = fifo; });
        fixture.ended(0);
        CHECK(fixture.relay->tail(0, 0).empty());
        const auto begin = Clock::now();
        fixture.relay->finish();
        CHECK(Clock::now() - begin < 6s);
        CHECK(fixture.relay->losses().empty());
        CHECK_FALSE(fixture.await_drained(0, 0, 0ms));
    }
    // Now the kernel lets it go; it ends by itself and closes its console.
    const UniqueFd reader(::open(fifo.c_str(), O_RDONLY | O_CLOEXEC));
    console.write_end.reset();
    CHECK(Reader(console.read_end.get()).all().empty());
}
