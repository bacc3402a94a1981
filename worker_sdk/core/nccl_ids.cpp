#include "worker_sdk/core/nccl_ids.hpp"

#include <charconv>

namespace ddrun::detail {
namespace {

constexpr int ranks_per_id = 128;
constexpr char separator = ' ';

}  // namespace

int nccl_id_count(int world) {
    return (world + ranks_per_id - 1) / ranks_per_id;
}

int nccl_id_maker(int world, int index) {
    const int count = nccl_id_count(world);
    const int smaller = world / count;
    const int larger_blocks = world % count;
    return index * smaller + (index < larger_blocks ? index : larger_blocks);
}

std::optional<int> nccl_id_made_by(int world, int rank) {
    for (int index = 0; index < nccl_id_count(world); ++index)
        if (nccl_id_maker(world, index) == rank) return index;
    return std::nullopt;
}

std::string nccl_id_key(std::string_view name, int call, int index) {
    return "ddrun.nccl/" + std::string(name) + "/" + std::to_string(call) + "/" +
           std::to_string(index);
}

std::string encode_nccl_id(const PublishedNcclId& published) {
    return std::to_string(published.version) + separator + published.id;
}

std::optional<PublishedNcclId> decode_nccl_id(std::string_view bytes) {
    PublishedNcclId published;
    const char* end = bytes.data() + bytes.size();
    const auto [rest, error] = std::from_chars(bytes.data(), end, published.version);
    if (error != std::errc() || rest == end || *rest != separator) return std::nullopt;
    published.id.assign(rest + 1, end);
    if (published.id.size() != nccl_id_bytes) return std::nullopt;
    return published;
}

// Two digits each since 2.9 (20900); before it 2.8.4 was 2804.
std::string nccl_version_words(int version) {
    const int major = version < 10000 ? version / 1000 : version / 10000;
    const int minor = version < 10000 ? version / 100 % 10 : version / 100 % 100;
    return std::to_string(major) + "." + std::to_string(minor) + "." +
           std::to_string(version % 100);
}

std::string nccl_objection(int world, int rank, int version,
                           const std::vector<PublishedNcclId>& published) {
    for (std::size_t index = 0; index < published.size(); ++index) {
        if (published[index].version == version) continue;
        return "rank " + std::to_string(rank) + " has NCCL " + nccl_version_words(version) +
               ", rank " + std::to_string(nccl_id_maker(world, static_cast<int>(index))) + " has " +
               nccl_version_words(published[index].version) +
               ": NCCL joins equal versions only; use one image or one LD_LIBRARY_PATH on all "
               "nodes";
    }
    return {};
}

}  // namespace ddrun::detail
