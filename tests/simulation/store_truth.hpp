#pragma once

#include "rendezvous/protocol/worker_messages.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ddrun::simulation {

// Request `index` of every worker of a round: all ask the same things in the same order, so that
// barriers meet.
struct StoreStep {
    enum class Kind { set, get, add, swap, barrier, gather };
    Kind kind = Kind::set;
    std::uint64_t index = 0;
};

// What the store of one round must have answered. Throws Broken.
//
// - A value that was set and acknowledged is read by everyone until it is overwritten.
// - No value of another round is read.
// - Each add counts once: sums never exceed the requests made, never fall below those answered,
//   and no two are the same.
// - Compare-set on an absent key has one winner, and all are told the same one.
// - A barrier or all-gather passes once all have come; then nobody's fails by itself.
class StoreTruth {
  public:
    // `name`: of this round of this run of the job, in every value that its workers write.
    StoreTruth(std::string name, int world_size);

    [[nodiscard]] rendezvous::FromWorker ask(int rank, const StoreStep& step);
    // True: go on. False: the round is over, or this worker should fail.
    enum class Outcome { go_on, round_is_over, gives_up };
    [[nodiscard]] Outcome answered(int rank, const StoreStep& step,
                                   const rendezvous::ToWorker& reply);

  private:
    struct Writer {
        std::int64_t asked = -1;  // the last value it wanted to write, and had acknowledged
        std::int64_t stored = -1;
    };
    struct Meeting {
        int came = 0;
        bool passed = false;
        std::optional<std::string> failed;
    };
    struct Asker {
        std::int64_t stored = -1;  // what the reader must see at least
        int adds = 0;
    };

    [[nodiscard]] std::string value(int rank, std::int64_t index) const;
    [[nodiscard]] int neighbour(int rank) const { return (rank + 1) % world_size_; }
    void check_read(int rank, const std::string& value);
    void check_sum(int rank, std::int64_t sum);
    void check_swap(const std::string& value);
    void check_gathered(const StoreStep& step, const std::vector<std::string>& values);
    void pass(int rank, const StoreStep& step);
    [[nodiscard]] Outcome failed(int rank, const StoreStep& step,
                                 const rendezvous::StoreFailed& failed);
    void require(bool holds, const std::string& words) const;

    std::string name_;
    int world_size_;
    std::vector<Writer> writers_;
    std::vector<Asker> askers_;
    int adds_asked_ = 0;
    std::map<std::int64_t, int> sums_;  // by sum: who was told so
    std::optional<std::string> winner_;
    std::map<std::uint64_t, Meeting> meetings_;  // by step
};

}  // namespace ddrun::simulation
