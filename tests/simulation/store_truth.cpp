#include "tests/simulation/store_truth.hpp"

#include "tests/simulation/broken.hpp"

#include <cstdlib>
#include <utility>
#include <variant>

namespace ddrun::simulation {
namespace {

using namespace rendezvous;

constexpr std::uint32_t patience_ms = 150'000;
constexpr const char* counter = "counter";
constexpr const char* owner = "owner";

std::string key_of(int rank) {
    return "key" + std::to_string(rank);
}

}  // namespace

StoreTruth::StoreTruth(std::string name, int world_size)
    : name_(std::move(name)),
      world_size_(world_size),
      writers_(static_cast<std::size_t>(world_size)),
      askers_(static_cast<std::size_t>(world_size)) {}

void StoreTruth::require(bool holds, const std::string& words) const {
    if (!holds) throw Broken("store of " + name_ + ": " + words);
}

std::string StoreTruth::value(int rank, std::int64_t index) const {
    return name_ + "/" + std::to_string(rank) + "/" + std::to_string(index);
}

FromWorker StoreTruth::ask(int rank, const StoreStep& step) {
    const auto at = static_cast<std::size_t>(rank);
    const std::uint64_t id = step.index + 1;
    const auto index = static_cast<std::int64_t>(step.index);
    switch (step.kind) {
        case StoreStep::Kind::set:
            writers_[at].asked = index;
            return StoreSet{id, key_of(rank), value(rank, index)};
        case StoreStep::Kind::get:
            askers_[at].stored = writers_[static_cast<std::size_t>(neighbour(rank))].stored;
            return StoreGet{id, key_of(neighbour(rank)), patience_ms};
        case StoreStep::Kind::add:
            ++adds_asked_;
            askers_[at].adds = static_cast<int>(sums_.size());
            return StoreAdd{id, counter, 1};
        case StoreStep::Kind::swap:
            return StoreCompareSet{id, owner, "", value(rank, index)};
        case StoreStep::Kind::barrier:
            ++meetings_[step.index].came;
            return StoreBarrier{id, "barrier", 0, patience_ms};
        case StoreStep::Kind::gather:
            ++meetings_[step.index].came;
            return StoreAllGather{id, "gather", 0, value(rank, index), patience_ms};
    }
    std::abort();
}

StoreTruth::Outcome StoreTruth::answered(int rank, const StoreStep& step, const ToWorker& reply) {
    if (const auto* no = std::get_if<StoreFailed>(&reply)) return failed(rank, step, *no);
    const std::string words =
        "rank " + std::to_string(rank) + ", request " + std::to_string(step.index);
    switch (step.kind) {
        case StoreStep::Kind::set:
            require(std::holds_alternative<StoreDone>(reply), words + ": not done");
            writers_[static_cast<std::size_t>(rank)].stored = static_cast<std::int64_t>(step.index);
            break;
        case StoreStep::Kind::get:
            require(std::holds_alternative<StoreValue>(reply), words + ": no value");
            check_read(rank, std::get<StoreValue>(reply).value);
            break;
        case StoreStep::Kind::add:
            require(std::holds_alternative<StoreNumber>(reply), words + ": no number");
            check_sum(rank, std::get<StoreNumber>(reply).value);
            break;
        case StoreStep::Kind::swap:
            require(std::holds_alternative<StoreValue>(reply), words + ": no value");
            check_swap(std::get<StoreValue>(reply).value);
            break;
        case StoreStep::Kind::barrier:
            require(std::holds_alternative<StoreDone>(reply), words + ": not done");
            pass(rank, step);
            break;
        case StoreStep::Kind::gather:
            require(std::holds_alternative<StoreValues>(reply), words + ": no values");
            pass(rank, step);
            check_gathered(step, std::get<StoreValues>(reply).values);
            break;
    }
    return Outcome::go_on;
}

void StoreTruth::check_read(int rank, const std::string& read) {
    const int from = neighbour(rank);
    const Writer& writer = writers_[static_cast<std::size_t>(from)];
    const std::string begin = name_ + "/" + std::to_string(from) + "/";
    require(read.starts_with(begin),
            "rank " + std::to_string(rank) + " read \"" + read + "\", of another round");
    const std::int64_t index = std::atoll(read.c_str() + begin.size());
    require(index >= askers_[static_cast<std::size_t>(rank)].stored && index <= writer.asked,
            "rank " + std::to_string(rank) + " read \"" + read + "\" after " +
                std::to_string(askers_[static_cast<std::size_t>(rank)].stored) +
                " was acknowledged");
}

void StoreTruth::check_sum(int rank, std::int64_t sum) {
    const std::string words =
        "rank " + std::to_string(rank) + " was told the sum " + std::to_string(sum);
    require(sum <= adds_asked_, words + " after " + std::to_string(adds_asked_) + " adds");
    require(sum > askers_[static_cast<std::size_t>(rank)].adds,
            words + " where more were answered before");
    require(sums_.emplace(sum, rank).second, words + ", as another was");
}

void StoreTruth::check_swap(const std::string& now_there) {
    require(now_there.starts_with(name_ + "/"), "compare-set found \"" + now_there + "\"");
    if (!winner_) winner_ = now_there;
    require(*winner_ == now_there, "compare-set found " + now_there + " after " + *winner_);
}

void StoreTruth::check_gathered(const StoreStep& step, const std::vector<std::string>& values) {
    require(values.size() == static_cast<std::size_t>(world_size_), "all-gather: wrong size");
    for (int rank = 0; rank < world_size_; ++rank) {
        const std::string& one = values[static_cast<std::size_t>(rank)];
        require(one == value(rank, static_cast<std::int64_t>(step.index)),
                "all-gather: \"" + one + "\" from rank " + std::to_string(rank));
    }
}

void StoreTruth::pass(int rank, const StoreStep& step) {
    Meeting& meeting = meetings_[step.index];
    const std::string words =
        "request " + std::to_string(step.index) + " let rank " + std::to_string(rank) + " through";
    require(meeting.came == world_size_, words + " when only " + std::to_string(meeting.came) +
                                             " of " + std::to_string(world_size_) + " had come");
    require(!meeting.failed, words + ", but failed for another: " + meeting.failed.value_or(""));
    meeting.passed = true;
}

StoreTruth::Outcome StoreTruth::failed(int rank, const StoreStep& step, const StoreFailed& no) {
    const std::string words = "rank " + std::to_string(rank) + ", request " +
                              std::to_string(step.index) + " failed: " + no.words;
    require(no.error != StoreError::none && !no.words.empty(), words + " (without words)");
    if (no.error == StoreError::aborted) return Outcome::round_is_over;
    require(no.error == StoreError::timed_out || step.kind == StoreStep::Kind::add ||
                step.kind == StoreStep::Kind::swap,
            words);
    switch (step.kind) {
        case StoreStep::Kind::get:
            require(askers_[static_cast<std::size_t>(rank)].stored < 0,
                    words + ", but the key was acknowledged before");
            break;
        case StoreStep::Kind::barrier:
        case StoreStep::Kind::gather: {
            Meeting& meeting = meetings_[step.index];
            require(!meeting.passed, words + ", but another got through");
            meeting.failed = no.words;
            break;
        }
        case StoreStep::Kind::set:
        case StoreStep::Kind::add:
        case StoreStep::Kind::swap:
            break;
    }
    return Outcome::gives_up;
}

}  // namespace ddrun::simulation
