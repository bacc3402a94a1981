#include "rendezvous/core/store_gathering.hpp"

#include <utility>

namespace ddrun::rendezvous {
namespace {

constexpr std::size_t max_ranks_named = 8;

// "rank 2", "ranks 2, 5 and 7", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 24 more".
std::string ranks_in_words(const std::vector<int>& ranks) {
    std::string words = ranks.size() == 1 ? "rank " : "ranks ";
    const bool cut = ranks.size() > max_ranks_named;
    const std::size_t named = cut ? max_ranks_named : ranks.size();
    for (std::size_t i = 0; i < named; ++i) {
        if (i > 0) words += !cut && i + 1 == named ? " and " : ", ";
        words += std::to_string(ranks[i]);
    }
    if (cut) words += " and " + std::to_string(ranks.size() - named) + " more";
    return words;
}

}  // namespace

void Gathering::arrive(int client, std::uint64_t wait, Bytes value) {
    value_bytes_ += value.size();
    gave_up_.erase(client);
    arrived_.emplace(client, Arrival{wait, std::move(value)});
}

void Gathering::give_up(int client) {
    const auto found = arrived_.find(client);
    if (found == arrived_.end()) return;
    value_bytes_ -= found->second.value.size();
    arrived_.erase(found);
    gave_up_.insert(client);
}

std::vector<std::uint64_t> Gathering::waits() const {
    std::vector<std::uint64_t> waits;
    for (const auto& [client, arrival] : arrived_) waits.push_back(arrival.wait);
    return waits;
}

std::vector<Bytes> Gathering::take_values() {
    std::vector<Bytes> values;
    for (auto& [client, arrival] : arrived_) values.push_back(std::move(arrival.value));
    return values;
}

std::string Gathering::who_is_missing() const {
    std::vector<int> never_came;
    for (int rank = 0; ranks_known_ && rank < size_; ++rank) {
        if (!arrived_.contains(rank) && !gave_up_.contains(rank)) never_came.push_back(rank);
    }
    const std::size_t came = arrived_.size() + gave_up_.size();
    std::string words = std::to_string(came) + " of " + std::to_string(size_) + " came";
    if (!never_came.empty()) words += "; missing: " + ranks_in_words(never_came);
    if (gave_up_.empty()) return words;
    return words + "; came and left again: " +
           ranks_in_words(std::vector<int>(gave_up_.begin(), gave_up_.end()));
}

}  // namespace ddrun::rendezvous
