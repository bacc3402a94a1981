#pragma once

#include "rendezvous/protocol/worker_messages.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ddrun::rendezvous {

// One barrier or all-gather that is filling up: who came, with what, and who gave up.
class Gathering {
  public:
    // `ranks_known`: it is for all ranks below `size`, so the missing ones have names.
    Gathering(int size, bool ranks_known) : size_(size), ranks_known_(ranks_known) {}

    [[nodiscard]] int size() const { return size_; }
    [[nodiscard]] bool has(int client) const { return arrived_.contains(client); }
    [[nodiscard]] bool complete() const { return static_cast<int>(arrived_.size()) == size_; }
    [[nodiscard]] bool empty() const { return arrived_.empty(); }

    void arrive(int client, std::uint64_t wait, Bytes value);
    // It no longer waits here; `wait` numbers stay unique, so a second arrival is fine.
    void give_up(int client);

    // Wait numbers and values, by client.
    [[nodiscard]] std::vector<std::uint64_t> waits() const;
    [[nodiscard]] std::vector<Bytes> take_values();
    [[nodiscard]] std::size_t value_bytes() const { return value_bytes_; }

    // "3 of 4 came; missing: rank 2".
    [[nodiscard]] std::string who_is_missing() const;

  private:
    struct Arrival {
        std::uint64_t wait = 0;
        Bytes value;
    };
    int size_;
    bool ranks_known_;
    std::map<int, Arrival> arrived_;
    std::set<int> gave_up_;
    std::size_t value_bytes_ = 0;
};

}  // namespace ddrun::rendezvous
