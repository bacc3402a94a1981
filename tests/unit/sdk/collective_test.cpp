#include "tests/support/catch.hpp"

#include <array>
#include "tests/support/seeds.hpp"
#include "worker_sdk/core/collective_call.hpp"
#include "worker_sdk/core/collective_plan.hpp"
#include "worker_sdk/core/fault.hpp"
#include "worker_sdk/core/words.hpp"

#include <vector>

using namespace ddrun;
using namespace ddrun::detail;

namespace {

Call all_reduce(std::uint64_t sequence, std::uint64_t count) {
    return {.sequence = sequence,
            .count = count,
            .operation = Operation::all_reduce,
            .type = ElementType::float32};
}

std::string list(const std::vector<int>& ranks) {
    return rank_list(ranks);
}

}  // namespace

TEST_CASE("lists of ranks read like words") {
    CHECK(list({4}) == "rank 4");
    CHECK(list({0, 1}) == "ranks 0 and 1");
    CHECK(list({0, 2, 5}) == "ranks 0, 2 and 5");
    CHECK(list({0, 1, 2, 3}) == "ranks 0-3");
    CHECK(list({0, 1, 2, 5, 6, 7, 9}) == "ranks 0-2, 5-7 and 9");
}

TEST_CASE("calls describe themselves") {
    CHECK(describe(all_reduce(17, 1024)) == "all_reduce 17 (sum of 1024 float32)");
    CHECK(describe({.sequence = 2, .operation = Operation::barrier}) == "barrier 2");
    CHECK(describe({.sequence = 3, .count = 5, .root = 1, .operation = Operation::broadcast}) ==
          "broadcast 3 (5 uint8 from rank 1)");
    CHECK(describe({.sequence = 4,
                    .count = 6,
                    .operation = Operation::all_gather,
                    .type = ElementType::int64}) == "all_gather 4 (6 int64)");
}

TEST_CASE("equal calls agree; unequal ones give a sentence that names all groups") {
    const std::vector<Call> equal(5, all_reduce(1, 8));
    CHECK_FALSE(disagreement(equal, std::array{0, 1, 2, 3, 4}));
    std::vector<Call> calls = equal;
    calls[3] = all_reduce(1, 9);
    calls[1] = {.sequence = 1, .operation = Operation::barrier};
    CHECK(disagreement(calls, std::array{0, 1, 2, 3, 4}) ==
          "the ranks called different collectives: ranks 0, 2 and 4 called all_reduce 1 (sum of 8 "
          "float32); rank 1 called barrier 1; rank 3 called all_reduce 1 (sum of 9 float32); all "
          "ranks must make the same calls in the same order");
}

TEST_CASE("misuse is named before anything is sent") {
    CHECK_FALSE(misuse(all_reduce(1, 3), 4));
    Call average = all_reduce(1, 3);
    average.reduce = ReduceOp::avg;
    CHECK_FALSE(misuse(average, 4));
    average.type = ElementType::int32;
    CHECK(misuse(average, 4)->find("use sum") != std::string::npos);
    Call broadcast = {.operation = Operation::broadcast};
    for (const int root : {-1, 4}) {
        broadcast.root = root;
        CHECK(misuse(broadcast, 4)->find("the ranks are 0 to 3") != std::string::npos);
    }
    CHECK(misfit({.count = 3, .operation = Operation::all_gather}, 11, 4) ==
          "all_gather: 3 elements for each of 4 ranks need an output of 12 elements, not 11");
    CHECK(misfit({.count = 3, .operation = Operation::reduce_scatter}, 13, 4) ==
          "reduce_scatter: 3 elements for each of 4 ranks need an input of 12 elements, not 13");
    CHECK_FALSE(misfit({.count = 3, .operation = Operation::reduce_scatter}, 12, 4));
}

TEST_CASE("parts cover all elements once, in order, cut at granules") {
    testing::Dice dice(1);
    for (int trial = 0; trial < 2000; ++trial) {
        const auto count = static_cast<std::size_t>(dice.between(0, 5000));
        const auto parts = static_cast<std::size_t>(dice.between(1, 40));
        const auto granule = static_cast<std::size_t>(dice.between(1, 64));
        CAPTURE(count, parts, granule);
        std::size_t next = 0;
        for (std::size_t index = 0; index < parts; ++index) {
            const Slice part = part_of(count, parts, index, granule);
            REQUIRE(part.first == next);
            REQUIRE((part.first % granule == 0 || part.count == 0));
            next += part.count;
        }
        REQUIRE(next == count);
    }
}

TEST_CASE("pieces cover all elements once; there is always a first one") {
    for (const std::size_t count : {0u, 1u, 9u, 10u, 11u, 100u})
        for (const std::size_t longest : {0u, 1u, 3u, 10u, 1000u}) {
            const Pieces pieces(count, longest);
            CAPTURE(count, longest);
            REQUIRE(pieces.size() >= 1);
            std::size_t next = 0;
            for (std::size_t i = 0; i < pieces.size(); ++i) {
                REQUIRE(pieces[i].first == next);
                REQUIRE(pieces[i].count <= std::max<std::size_t>(longest, 1));
                next += pieces[i].count;
            }
            REQUIRE(next == count);
        }
}

TEST_CASE("a fault fits in a word and comes back") {
    for (const auto kind : {Fault::Kind::none, Fault::Kind::peer_lost, Fault::Kind::peer_left,
                            Fault::Kind::timed_out, Fault::Kind::agent_lost})
        for (const int rank : {-1, 0, 7, 32767}) {
            const Fault fault{kind, static_cast<std::int16_t>(rank), 3};
            CHECK(unpack(pack(fault)) == fault);
        }
    CHECK(pack({Fault::Kind::peer_lost, -1, -1}) != 0);
    CHECK(unpack(0).kind == Fault::Kind::none);
}

TEST_CASE("every fault has words and a kind") {
    const Call call = all_reduce(7, 2);
    const auto lost =
        failure_of({Fault::Kind::peer_lost, 2, -1}, call, {2}, "killed by SIGKILL", 0);
    CHECK(lost == Failure{ErrorKind::peer_lost, 2,
                          "all_reduce 7 (sum of 2 float32): rank 2 is gone (killed by SIGKILL)"});
    const auto unknown = failure_of({Fault::Kind::peer_lost, -1, -1}, call, {}, "", 0);
    CHECK(unknown.words == "all_reduce 7 (sum of 2 float32): a peer is gone");
    const auto left = failure_of({Fault::Kind::peer_left, 1, 1}, call, {1}, "", 0);
    CHECK(left.kind == ErrorKind::peer_lost);
    CHECK(left.rank == 1);
    const auto late = failure_of({Fault::Kind::timed_out, 1, 0}, call, {1, 3}, "", 0);
    CHECK(late.words == "all_reduce 7 (sum of 2 float32): ranks 1 and 3 did not arrive in time");
    CHECK(late.missing == std::vector<int>{1, 3});
    const auto told = failure_of({Fault::Kind::timed_out, 1, 0}, call, {}, "", 2);
    CHECK(told.words ==
          "all_reduce 7 (sum of 2 float32): rank 1 did not arrive in time (rank 0 gave up first)");
    CHECK(told.missing == std::vector<int>{1});
    const auto agent = failure_of({Fault::Kind::agent_lost, -1, -1}, call, {}, "", 0);
    CHECK(agent.kind == ErrorKind::agent_lost);
    CHECK(failure_of({}, call, {}, "", 0).kind == ErrorKind::system);
}
