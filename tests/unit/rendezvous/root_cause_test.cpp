#include "rendezvous/core/root_cause.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"

#include <algorithm>

using namespace ddrun::rendezvous;
using namespace std::chrono_literals;
using ddrun::TimePoint;

namespace {

Report report(int rank, ddrun::Duration at, bool signalled = false, int blamed = -1) {
    Report result;
    result.cause.failure.rank = rank;
    result.cause.failure.signalled_by_ddrun = signalled;
    result.cause.failure.blamed_rank = blamed;
    result.happened = TimePoint(at);
    return result;
}

int root_rank(const std::vector<Report>& reports) {
    return root_cause(reports).cause.failure.rank;
}

}  // namespace

TEST_CASE("the oldest failure is the root") {
    CHECK(root_rank({report(0, 5ms), report(1, 3ms), report(2, 9ms)}) == 1);
}

TEST_CASE("a rank that ddrun signalled is never the root beside another") {
    CHECK(root_rank({report(0, 1ms, true), report(1, 3ms)}) == 1);
}

TEST_CASE("a rank that blames another is never the root beside another") {
    CHECK(root_rank({report(0, 1ms, false, 1), report(1, 3ms)}) == 1);
}

TEST_CASE("where only consequences are known the oldest is named") {
    CHECK(root_rank({report(0, 5ms, true), report(1, 3ms, false, 7)}) == 1);
}

TEST_CASE("failures of one instant go by node rank, then rank") {
    std::vector<Report> reports = {report(3, 1ms), report(2, 1ms), report(1, 1ms)};
    reports[0].cause.node_rank = 0;
    reports[1].cause.node_rank = 0;
    reports[2].cause.node_rank = 1;
    CHECK(root_rank(reports) == 2);
}

TEST_CASE("the order of arrival does not matter") {
    const auto seed = GENERATE(range(1u, 100u));
    INFO("seed " << seed);
    ddrun::testing::Dice dice(seed);
    std::vector<Report> reports;
    for (int rank = 0; rank < 6; ++rank) {
        reports.push_back(report(rank, std::chrono::milliseconds(dice.number(0, 4)), dice.one_in(3),
                                 dice.one_in(3) ? 0 : -1));
    }
    const int expected = root_rank(reports);
    std::sort(reports.begin(), reports.end(), [](const Report& a, const Report& b) {
        return a.cause.failure.rank < b.cause.failure.rank;
    });
    for (int i = 0; i < 20; ++i) {
        const auto a = static_cast<std::size_t>(dice.number(0, 5));
        const auto b = static_cast<std::size_t>(dice.number(0, 5));
        std::swap(reports[a], reports[b]);
        REQUIRE(root_rank(reports) == expected);
    }
}
