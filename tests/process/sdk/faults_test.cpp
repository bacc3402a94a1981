#include "tests/process/sdk/ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using namespace ddrun;
using namespace ddrun::testing;
using namespace std::chrono_literals;

namespace {

// A mix of everything a training loop calls; 10 operations a lap.
void one_operation(Worker& worker, int index, std::vector<float>& data,
                   const CallOptions& options) {
    auto& group = worker.process_group();
    const auto world = static_cast<std::size_t>(worker.world_size());
    const auto part = std::span(data).first(data.size() / world);
    const auto whole = std::span(data).first(part.size() * world);
    std::vector<float> scratch(whole.size());
    switch (index % 5) {
        case 0:
            return group.all_reduce(data, ReduceOp::avg, options);
        case 1:
            return group.broadcast(data, index % worker.world_size(), options);
        case 2:
            return group.all_gather(part, scratch, options);
        case 3:
            return group.reduce_scatter(whole, std::span(scratch).first(part.size()), ReduceOp::sum,
                                        options);
        default:
            return group.barrier(options);
    }
}

using Clock = std::chrono::steady_clock;

struct Fault {
    int victim = 0;
    int at = 0;  // the operation before which it strikes
    int signal = SIGKILL;
};

// Every survivor must end by a typed error that names the victim; how long it waited is said.
std::vector<RankResult> run_with(FakeAgent& agent, const Fault& fault, std::size_t elements,
                                 std::chrono::milliseconds timeout) {
    const CallOptions patient{.timeout = 30s};  // no fault yet: a busy machine is none
    return run_ranks(agent, [&](Worker& worker, std::ostream& say) {
        std::vector<float> data(elements, 1.0f);
        worker.process_group().barrier(patient);
        worker.progress(0);  // the agent may strike from here
        // Without end: a victim that could finish first might be killed after its last operation,
        // which no survivor can notice.
        for (int i = 0;; ++i) {
            if (worker.rank() == fault.victim && i == fault.at) ::raise(fault.signal);
            const auto before = Clock::now();
            try {
                one_operation(worker, i, data, i < fault.at ? patient : CallOptions{timeout});
            } catch (const PeerLost& error) {
                say << "lost " << error.rank() << " at " << i << " after "
                    << std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before)
                           .count();
                return;
            } catch (const TimedOut& error) {
                say << "timed out";
                for (const int rank : error.missing()) say << ' ' << rank;
                say << " at " << i;
                return;
            }
        }
    });
}

void check_survivors(const std::vector<RankResult>& ranks, const Fault& fault,
                     const std::string& expected) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (static_cast<int>(rank) == fault.victim) continue;
        CAPTURE(rank, ranks[rank].said, ranks[rank].status);
        CHECK(ranks[rank].said.find(expected) == 0);
        CHECK(ranks[rank].exited_with(0));
    }
}

// A thread of this process, blocked in the kernel.
bool is_asleep(int tid) {
    std::ifstream in("/proc/self/task/" + std::to_string(tid) + "/stat");
    std::string text;
    std::getline(in, text);
    const auto name_end = text.rfind(')');
    return name_end != std::string::npos && text[name_end + 2] == 'S';
}

}  // namespace

TEST_CASE("a peer killed at any operation is named by every survivor") {
    for (const bool notice : {true, false}) {
        for (int at = 0; at < 10; ++at) {
            FakeAgent agent(3);
            agent.tells_of_deaths = notice;  // without it the shared memory itself must tell
            const Fault fault{at % 3, at, SIGKILL};
            CAPTURE(notice, at);
            check_survivors(run_with(agent, fault, 70000, 30s), fault,
                            "lost " + std::to_string(fault.victim) + " at " + std::to_string(at));
        }
    }
}

TEST_CASE("a peer stopped at any operation makes every survivor time out and name it") {
    for (int at = 0; at < 5; ++at) {
        FakeAgent agent(3);
        const Fault fault{at % 3, at, SIGSTOP};
        CAPTURE(at);
        check_survivors(run_with(agent, fault, 1000, 500ms), fault,
                        "timed out " + std::to_string(fault.victim) + " at " + std::to_string(at));
    }
}

TEST_CASE("peers killed at random moments, with and without the agent's notice") {
    const auto seed = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    INFO("seed " << seed);
    Dice dice(seed);
    for (int trial = 0; trial < 24; ++trial) {
        const int world = dice.number(2, 5);
        const int victim = dice.number(0, world - 1);
        FakeAgent agent(world);
        agent.tells_of_deaths = dice.one_in(2);
        const auto delay = std::chrono::microseconds(dice.between(0, 20000));
        int ready = 0;
        agent.on_message = [&](int, const rendezvous::FromWorker& message) {
            if (std::holds_alternative<rendezvous::Progress>(message) && ++ready == world)
                agent.after(delay, [&] { agent.kill(victim, SIGKILL); });
        };
        const auto elements = static_cast<std::size_t>(dice.between(1, 300000));
        const Fault fault{victim, -1, SIGKILL};
        CAPTURE(trial, world, victim, agent.tells_of_deaths, delay.count(), elements);
        check_survivors(run_with(agent, fault, elements, 30s), fault,
                        "lost " + std::to_string(victim));
    }
}

TEST_CASE("a peer that comes back after the others gave up is told so") {
    FakeAgent agent(2);
    const auto ranks = run_ranks(agent, [&](Worker& worker, std::ostream&) {
        worker.process_group().barrier();
        if (worker.rank() == 1) (void)worker.store().get("rank 0 gave up");
        try {
            worker.process_group().barrier({.timeout = 50ms});
        } catch (const TimedOut&) {
            worker.store().set("rank 0 gave up", "");
            throw;
        }
    });
    CHECK(ranks[0].said == "timed_out: barrier 2: rank 1 did not arrive in time");
    CHECK(ranks[1].said.find("rank 1 did not arrive in time") != std::string::npos);
    REQUIRE(agent.notices(0).size() == 1);
    CHECK(std::get<rendezvous::AbortedBecause>(agent.notices(0)[0]).rank == 1);
    CHECK(agent.notices(1).empty());
}

TEST_CASE("a peer that leaves early is named, also by ranks that come later") {
    const auto ranks = run_ranks(3, [](Worker& worker, std::ostream&) {
        worker.process_group().barrier();
        if (worker.rank() == 2) return;
        worker.process_group().barrier();
    });
    CHECK(ranks[0].said == "peer_lost: barrier 2: rank 2 has ended its Worker and left the group");
    CHECK(ranks[1].said == ranks[0].said);
    CHECK(ranks[0].exited_with(75));
}

TEST_CASE("a broken group throws at once ever after") {
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream& say) {
        if (worker.rank() == 1) {
            (void)worker.process_group();
            ::raise(SIGKILL);
        }
        for (int i = 0; i < 2; ++i) {
            try {
                worker.process_group().barrier();
            } catch (const PeerLost& error) {
                say << error.rank() << ' ';
            }
        }
        say << worker.should_stop() << (worker.stop_request().reason == StopReason::peer_lost);
    });
    CHECK(ranks[0].said.find("1 1 1") == 0);
}

TEST_CASE("ranks that call different collectives all get the same words") {
    struct Case {
        std::function<void(ProcessGroup&)> others;
        std::function<void(ProcessGroup&)> rank_2;
        std::string words;
    };
    std::vector<float> data(100000);
    std::vector<double> doubles(100000);
    const std::vector<Case> cases = {
        {[&](ProcessGroup& g) { g.all_reduce(data); },
         [&](ProcessGroup& g) { g.all_reduce(std::span(data).first(10)); },
         "ranks 0, 1 and 3 called all_reduce 1 (sum of 100000 float32); rank 2 called all_reduce 1 "
         "(sum of 10 float32)"},
        {[&](ProcessGroup& g) { g.all_reduce(data); },
         [&](ProcessGroup& g) { g.all_reduce(doubles); },
         "rank 2 called all_reduce 1 (sum of 100000 float64)"},
        {[&](ProcessGroup& g) { g.all_reduce(data); },
         [&](ProcessGroup& g) { g.all_reduce(data, ReduceOp::max); },
         "rank 2 called all_reduce 1 (max of 100000 float32)"},
        {[&](ProcessGroup& g) { g.broadcast(data, 0); },
         [&](ProcessGroup& g) { g.broadcast(data, 1); },
         "ranks 0, 1 and 3 called broadcast 1 (100000 float32 from rank 0); rank 2 called "
         "broadcast 1 "
         "(100000 float32 from rank 1)"},
        {[&](ProcessGroup& g) { g.barrier(); }, [&](ProcessGroup& g) { g.all_reduce(data); },
         "ranks 0, 1 and 3 called barrier 1; rank 2 called all_reduce 1"},
    };
    for (const auto& one : cases) {
        const auto ranks = run_ranks(4, [&](Worker& worker, std::ostream&) {
            (worker.rank() == 2 ? one.rank_2 : one.others)(worker.process_group());
        });
        CAPTURE(one.words);
        for (const auto& rank : ranks) {
            CHECK(rank.said.find("desynchronised: the ranks called different collectives: ") == 0);
            CHECK(rank.said.find(one.words) != std::string::npos);
            CHECK(rank.said == ranks[0].said);
            CHECK(rank.exited_with(1));
        }
    }
}

TEST_CASE("two threads inside the group at once are told, one at a time is fine") {
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream& say) {
        auto& group = worker.process_group();
        if (worker.rank() == 1) {
            group.barrier();
            (void)worker.store().get("refused");
            return group.barrier();
        }
        std::thread([&] { group.barrier(); }).join();
        std::atomic<int> inside = 0;
        std::thread waits([&] {
            inside = ::gettid();
            group.barrier();  // until rank 1 sees the key
        });
        while (!is_asleep(inside)) std::this_thread::yield();
        try {
            group.barrier();
        } catch (const Error& error) {
            say << (error.kind() == ErrorKind::invalid_use ? "refused" : error.what());
        }
        worker.store().set("refused", "");
        waits.join();
    });
    CHECK(ranks[0].said == "refused");
    CHECK(ranks[1].exited_with(0));
}
