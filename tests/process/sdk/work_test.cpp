// Collectives that are begun and waited for later.
#include "tests/process/sdk/ranks.hpp"
#include "tests/support/catch.hpp"

#include <csignal>
#include <numeric>
#include <thread>

using namespace ddrun;
using namespace ddrun::testing;
using namespace std::chrono_literals;

TEST_CASE("work begun in one order is done in that order, on every rank, beside calls that wait") {
    const auto ranks = run_ranks(3, [](Worker& worker, std::ostream& say) {
        auto& group = worker.process_group();
        std::vector<std::vector<float>> data(50);
        std::vector<Work> works;
        for (std::size_t i = 0; i < data.size(); ++i) {
            data[i].assign(i * 100 + 1, static_cast<float>(worker.rank() + 1));
            works.push_back(group.async_all_reduce(data[i]));
            if (i % 10 == 3) group.barrier();
        }
        std::vector<std::int64_t> last = {worker.rank()};
        group.broadcast(last, 2);
        for (std::size_t i = 0; i < works.size(); ++i) {
            REQUIRE(works[i].is_done());  // the broadcast came after it
            works[i].wait();
            for (const float value : data[i]) REQUIRE(value == 6.0f);
        }
        say << works.front().sequence() << ' ' << works.back().sequence() << ' ' << last[0];
    });
    for (const auto& rank : ranks) CHECK(rank.said == "1 55 2");
}

TEST_CASE("sixteen-bit numbers are combined as float") {
    const auto ranks = run_ranks(3, [](Worker& worker, std::ostream& say) {
        auto& group = worker.process_group();
        std::vector<BFloat16> brains(1000, BFloat16(static_cast<float>(worker.rank()) + 0.5f));
        group.all_reduce(brains, ReduceOp::avg);
        std::vector<Float16> halves(1000, Float16(static_cast<float>(worker.rank()) - 0.25f));
        auto mine = group.allocate<Float16>(1000);
        std::copy(halves.begin(), halves.end(), mine.begin());
        group.all_reduce(mine, ReduceOp::max);
        std::vector<Float16> all(3);
        group.all_gather(std::span(halves).first(1), all);
        say << static_cast<float>(brains[999]) << ' ' << static_cast<float>(mine[999]) << ' '
            << static_cast<float>(all[2]);
    });
    for (const auto& rank : ranks) CHECK(rank.said == "1.5 1.75 1.75");
}

TEST_CASE("the error of work that was begun is thrown where it is waited for, each time") {
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream& say) {
        auto& group = worker.process_group();
        std::vector<float> data(10);
        if (worker.rank() == 1) ::raise(SIGKILL);
        const Work work = group.async_all_reduce(data);
        const Work later = group.async_all_reduce(data);
        for (const Work& one : {work, work, later}) {
            try {
                one.wait();
            } catch (const PeerLost& error) {
                say << error.rank() << ' ';
            }
        }
    });
    CHECK(ranks[0].said == "1 1 1 ");
}

TEST_CASE("a deadline for the wait leaves the work under way") {
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream& say) {
        auto& group = worker.process_group();
        std::vector<float> data(10, 1.0f);
        if (worker.rank() == 1) (void)worker.store().get("go");
        const Work work = group.async_all_reduce(data);
        if (worker.rank() == 0) {
            say << work.wait_for(20ms);
            worker.store().set("go", "");
        }
        say << work.wait_for(10s) << data[9];
    });
    CHECK(ranks[0].said == "012");
    CHECK(ranks[1].said == "12");
}

TEST_CASE("work that has not begun when its Worker ends is an error, not a hang") {
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream& say) {
        std::vector<float> data(10, 1.0f);
        const auto works = [&] {
            Worker own = std::move(worker);
            auto& group = own.process_group();
            return std::vector{group.async_all_reduce(data), group.async_all_reduce(data)};
        };
        if (worker.rank() == 1) return;
        for (const Work& work : works()) {
            try {
                work.wait();
            } catch (const Error& error) {
                say << (error.kind() == ErrorKind::invalid_use ||
                        error.kind() == ErrorKind::peer_lost);
            }
        }
    });
    CHECK(ranks[0].said == "11");
}
