#include "tests/process/sdk/ranks.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <csignal>
#include <sstream>
#include <thread>
#include <utility>

using namespace ddrun;
using namespace ddrun::testing;
using namespace std::chrono_literals;

namespace {

// Each line is one answer of the store; a world of one and a world behind an agent must say the
// same.
void tour(Store& store, std::ostream& say) {
    store.set("a", "1");
    say << store.get("a") << '|' << store.find("b").value_or("none") << '|';
    say << store.add("n", 5) << ',' << store.add("n", -7) << ',' << store.get("n") << '|';
    say << store.compare_set("a", "2", "x") << ',' << store.compare_set("a", "1", "3") << ','
        << store.compare_set("new", "", "v") << '|';
    store.remove("a");
    store.remove("a");
    say << store.find("a").has_value() << '|';
    store.set("k1", std::string("\0\n\xff", 3));
    const auto values = store.get_all({"new", "k1"});
    say << values[0] << ',' << values[1].size() << '|';
    try {
        store.set("text", "abc");
        store.add("text", 1);
    } catch (const Error& error) {
        say << (error.kind() == ErrorKind::store) << '|';
    }
    try {
        (void)store.get("never", 20ms);
    } catch (const TimedOut&) {
        say << "timed out";
    }
}

constexpr auto tour_answers = "1|none|5,-2,-2|1,3,v|0|v,3|1|timed out";

}  // namespace

TEST_CASE("the store answers the same alone and behind an agent") {
    const auto ranks =
        run_ranks(1, [](Worker& worker, std::ostream& say) { tour(worker.store(), say); });
    CHECK(ranks[0].said == tour_answers);

    Worker alone = Worker::from_environment();
    std::ostringstream say;
    tour(alone.store(), say);
    CHECK(say.str() == tour_answers);
}

TEST_CASE("requests that were sent without waiting answer as the waiting calls do, alone and not") {
    const auto story = [](Store& store, std::ostream& say) {
        std::vector<Pending<std::int64_t>> sums;
        for (int i = 0; i < 1000; ++i) sums.push_back(store.async_add("n", 1));
        std::int64_t expected = 0;
        bool in_order = true;
        for (auto& sum : sums) in_order = in_order && sum.get() == ++expected;
        say << in_order << '|';
        auto absent = store.async_get("late", 60s);
        say << absent.is_ready();
        (void)store.async_set("late", "here");  // nobody looks at the answer
        say << absent.get() << '|';
        auto wrong = store.async_add("late", 1);
        try {
            (void)wrong.get();
        } catch (const Error& error) {
            say << (error.kind() == ErrorKind::store) << '|';
        }
        store.async_remove("late").get();
        say << store.async_find("late").get().has_value() << '|';
        say << store.async_get_all({"n"}).get().front() << '|';
        say << store.get_all({}).size();
    };
    constexpr auto answers = "1|0here|1|0|1000|0";
    const auto ranks =
        run_ranks(1, [&](Worker& worker, std::ostream& say) { story(worker.store(), say); });
    CHECK(ranks[0].said == answers);
    Worker alone = Worker::from_environment();
    std::ostringstream say;
    story(alone.store(), say);
    CHECK(say.str() == answers);
}

TEST_CASE("a request that nobody waits for leaves all the same") {
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream& say) {
        if (worker.rank() == 1) {
            for (int i = 0; i < 3; ++i) (void)worker.store().async_add("signs", 1);
            (void)worker.store().get("seen");
        } else {
            while (worker.store().find("signs").value_or("") != "3") std::this_thread::yield();
            worker.store().set("seen", "yes");
            say << "seen";
        }
    });
    CHECK(ranks[0].said == "seen");
}

TEST_CASE("answers that nobody takes, and requests faster than the agent, hold nothing up") {
    const auto ranks = run_ranks(1, [](Worker& worker, std::ostream& say) {
        const std::string value(10'000, 'v');
        std::vector<Pending<std::string>> answers;
        for (int i = 0; i < 2000; ++i) {  // 20 MB each way
            (void)worker.store().async_set("k" + std::to_string(i % 7), value);
            answers.push_back(worker.store().async_get("k" + std::to_string(i % 7)));
        }
        std::size_t bytes = 0;
        for (auto& answer : answers) bytes += answer.get().size();
        say << bytes;
    });
    CHECK(ranks[0].said == "20000000");
}

TEST_CASE("threads of one worker share its link, each waiting for what it asked") {
    const auto ranks = run_ranks(1, [](Worker& worker, std::ostream& say) {
        std::vector<std::thread> threads;
        std::atomic<int> late = 0;
        for (int t = 0; t < 8; ++t)
            threads.emplace_back([&, t] {
                for (int i = 0; i < 200; ++i) (void)worker.store().add("n", 1);
                try {
                    (void)worker.store().get("never" + std::to_string(t), 20ms);
                } catch (const TimedOut&) {
                    ++late;
                }
                (void)worker.store().get("end");
            });
        while (late < 8 || worker.store().get("n") != "1600") std::this_thread::yield();
        worker.store().set("end", "");
        for (auto& thread : threads) thread.join();
        say << "all";
    });
    CHECK(ranks[0].said == "all");
}

TEST_CASE("an answer that comes after its Worker has ended is an error, not a crash") {
    const auto ranks = run_ranks(1, [](Worker& worker, std::ostream& say) {
        auto answer = [&] {
            Worker short_lived = std::move(worker);
            return short_lived.store().async_get("never");
        }();
        try {
            (void)answer.get();
        } catch (const AgentLost& error) {
            say << error.what();
        }
    });
    CHECK(ranks[0].said == "store get 'never': the Worker has ended");
}

TEST_CASE("a stop request and a peer's death are heard while other threads use the link") {
    FakeAgent agent(2);
    const auto ranks = run_ranks(agent, [](Worker& worker, std::ostream& say) {
        worker.barrier();
        if (worker.rank() == 1) ::raise(SIGKILL);
        try {
            for (;;) (void)worker.store().add("n", 1);
        } catch (const PeerLost& error) {
            say << "rank " << error.rank();
        }
    });
    CHECK(ranks[0].said == "rank 1");
}

TEST_CASE("ranks meet over the store") {
    const auto ranks = run_ranks(4, [](Worker& worker, std::ostream& say) {
        if (worker.rank() == 2) worker.store().set("address", "here");
        say << worker.store().get("address") << ' ';
        for (const auto& value :
             worker.store().all_gather("ids", "r" + std::to_string(worker.rank())))
            say << value;
        for (int i = 0; i < 3; ++i) worker.barrier();
        say << ' ' << worker.store().add("count", 1) / 10;
        worker.barrier();
        say << ' ' << worker.store().get("count");
    });
    for (const auto& rank : ranks) CHECK(rank.said == "here r0r1r2r3 0 4");
}

TEST_CASE("a barrier that not all reach times out and names who is missing") {
    const auto ranks = run_ranks(3, [](Worker& worker, std::ostream&) {
        if (worker.rank() != 1) worker.barrier(50ms);
        if (worker.rank() == 1) (void)worker.store().get("never", 300ms);
    });
    CHECK(ranks[0].said.find("timed_out: store barrier 'ddrun.barrier'") == 0);
    CHECK(ranks[0].said.find("1") != std::string::npos);
    CHECK(ranks[2].exited_with(75));
}

TEST_CASE("a store wait ends when a peer dies, and the agent is told of the culprit") {
    FakeAgent agent(3);
    const auto ranks = run_ranks(agent, [](Worker& worker, std::ostream&) {
        worker.barrier();
        if (worker.rank() == 1) ::raise(SIGKILL);
        (void)worker.store().get("never");
    });
    CHECK(ranks[1].died_of(SIGKILL));
    for (const int survivor : {0, 2}) {
        const auto& rank = ranks[static_cast<std::size_t>(survivor)];
        CHECK(rank.said == "peer_lost: store get 'never': rank 1 was killed by signal 9");
        REQUIRE(agent.notices(survivor).size() == 1);
        const auto* told =
            std::get_if<rendezvous::AbortedBecause>(&agent.notices(survivor).front());
        REQUIRE(told != nullptr);
        CHECK(told->rank == 1);
    }
}

TEST_CASE("keys and values beyond the limits are refused with words, and the link lives on") {
    const auto ranks = run_ranks(1, [](Worker& worker, std::ostream& say) {
        for (const auto& [key, value] : {std::pair(std::size_t{5000}, std::size_t{1}),
                                         std::pair(std::size_t{10}, std::size_t{65} << 20)}) {
            try {
                worker.store().set(std::string(key, 'k'), std::string(value, 'v'));
            } catch (const Error& error) {
                say << (error.kind() == ErrorKind::store) << ' ';
            }
        }
        worker.store().set("large", std::string(30u << 20, 'v'));
        say << worker.store().get("large").size();
    });
    CHECK(ranks[0].said == "1 1 " + std::to_string(30u << 20));
}
