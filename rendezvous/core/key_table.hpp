#pragma once

#include "rendezvous/protocol/worker_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ddrun::rendezvous {

constexpr std::size_t max_store_keys = 1u << 20;
constexpr std::size_t max_store_bytes = std::size_t{256} << 20;  // keys and values together

// Keys and values with their bounds; no waits.
class KeyTable {
  public:
    // Null: no such key. Valid until the next change.
    [[nodiscard]] const Bytes* find(std::string_view key) const;

    // none, too_large or full; nothing changes then.
    [[nodiscard]] StoreError set(std::string_view key, Bytes value);

    // The sum, kept as decimal text; an absent key counts as 0.
    struct Sum {
        StoreError error = StoreError::none;  // not_a_number too
        std::int64_t value = 0;
    };
    [[nodiscard]] Sum add(std::string_view key, std::int64_t delta);

    // Was it there?
    bool erase(std::string_view key);

    // Room for `bytes` more than keys and values take.
    [[nodiscard]] bool has_room(std::size_t bytes) const;

  private:
    struct Hash {  // finds by string_view
        using is_transparent = void;
        std::size_t operator()(std::string_view key) const {
            return std::hash<std::string_view>()(key);
        }
    };
    std::unordered_map<std::string, Bytes, Hash, std::equal_to<>> values_;
    std::size_t bytes_ = 0;
};

}  // namespace ddrun::rendezvous
