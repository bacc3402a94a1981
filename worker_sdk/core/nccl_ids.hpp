#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddrun::detail {

constexpr std::size_t nccl_id_bytes = 128;  // of an ncclUniqueId, in every version of NCCL

// How many unique ids a communicator of `world` ranks starts with: one for each 128 ranks begun, so
// that no single listener has to greet thousands.
[[nodiscard]] int nccl_id_count(int world);
// The rank that makes id `index`: the first of its block. The blocks are those of NCCL's
// ncclCommInitRankScalable: as even as can be, larger ones first.
[[nodiscard]] int nccl_id_maker(int world, int index);
// The id that `rank` makes; nullopt: none.
[[nodiscard]] std::optional<int> nccl_id_made_by(int world, int rank);

// Where id `index` of the `call`-th exchange under `name` is published.
[[nodiscard]] std::string nccl_id_key(std::string_view name, int call, int index);

// What is published: the maker's NCCL version and its id.
struct PublishedNcclId {
    int version = 0;  // as ncclGetVersion: 22809 is 2.28.9
    std::string id;   // nccl_id_bytes
    bool operator==(const PublishedNcclId&) const = default;
};
[[nodiscard]] std::string encode_nccl_id(const PublishedNcclId& published);
[[nodiscard]] std::optional<PublishedNcclId> decode_nccl_id(std::string_view bytes);

// "2.28.9".
[[nodiscard]] std::string nccl_version_words(int version);
// Why this rank cannot join the makers' communicator; empty: it can.
[[nodiscard]] std::string nccl_objection(int world, int rank, int version,
                                         const std::vector<PublishedNcclId>& published);

}  // namespace ddrun::detail
