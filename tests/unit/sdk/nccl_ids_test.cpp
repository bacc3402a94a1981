#include "worker_sdk/core/nccl_ids.hpp"

#include "tests/support/catch.hpp"

using namespace ddrun::detail;

TEST_CASE("one id for each 128 ranks begun") {
    CHECK(nccl_id_count(1) == 1);
    CHECK(nccl_id_count(128) == 1);
    CHECK(nccl_id_count(129) == 2);
    CHECK(nccl_id_count(10'000) == 79);
}

TEST_CASE("makers are the first ranks of NCCL's own blocks, whatever the size of the world") {
    for (int world = 1; world <= 2000; ++world) {
        const int count = nccl_id_count(world);
        // ncclCommInitRankScalable serves rank r by id r/(q+1) in the first world%count blocks of
        // q+1 ranks, then by blocks of q.
        const int q = world / count;
        const int larger = world % count;
        int next = 0;
        for (int rank = 0; rank < world; ++rank) {
            const int served_by =
                rank < larger * (q + 1) ? rank / (q + 1) : (rank - larger * (q + 1)) / q + larger;
            const bool first = rank == 0 || served_by == next;
            REQUIRE(nccl_id_made_by(world, rank) ==
                    (first ? std::optional(served_by) : std::nullopt));
            if (first) REQUIRE(nccl_id_maker(world, next++) == rank);
        }
        REQUIRE(next == count);
    }
}

TEST_CASE("a published id comes back whole; anything else is refused") {
    const PublishedNcclId id{22809, std::string(nccl_id_bytes, '\0')};
    CHECK(decode_nccl_id(encode_nccl_id(id)) == id);
    for (const std::string& bytes : {std::string(), std::string("22809"), std::string("22809 "),
                                     "x " + id.id, encode_nccl_id(id) + "x"})
        CHECK_FALSE(decode_nccl_id(bytes));
}

TEST_CASE("versions are said as people say them") {
    CHECK(nccl_version_words(22809) == "2.28.9");
    CHECK(nccl_version_words(21003) == "2.10.3");
    CHECK(nccl_version_words(2804) == "2.8.4");
}

TEST_CASE("an objection names both ranks and both versions") {
    const std::vector<PublishedNcclId> published = {{22809, {}}, {22703, {}}};
    CHECK(nccl_objection(200, 7, 22809, {published.front()}).empty());
    CHECK(nccl_objection(200, 7, 22809, published)
              .find("rank 7 has NCCL 2.28.9, rank 100 has 2.27.3") == 0);
}
