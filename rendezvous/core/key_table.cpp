#include "rendezvous/core/key_table.hpp"

#include <charconv>
#include <optional>
#include <utility>

namespace ddrun::rendezvous {
namespace {

std::optional<std::int64_t> parse(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(value) : std::nullopt;
}

}  // namespace

const Bytes* KeyTable::find(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
}

StoreError KeyTable::set(std::string_view key, Bytes value) {
    // A value must fit into one answer.
    constexpr std::size_t answer_overhead = 64;
    if (key.size() > max_key_bytes || value.size() > max_frame_bytes - answer_overhead) {
        return StoreError::too_large;
    }
    const auto found = values_.find(key);
    const bool is_new = found == values_.end();
    const std::size_t before = is_new ? 0 : key.size() + found->second.size();
    const std::size_t after = key.size() + value.size();
    if (is_new && values_.size() >= max_store_keys) return StoreError::full;
    if (after > before && !has_room(after - before)) return StoreError::full;
    bytes_ = bytes_ - before + after;
    if (is_new) {
        values_.emplace(key, std::move(value));
    } else {
        found->second = std::move(value);
    }
    return StoreError::none;
}

KeyTable::Sum KeyTable::add(std::string_view key, std::int64_t delta) {
    const Bytes* present = find(key);
    const std::optional<std::int64_t> before = present == nullptr ? 0 : parse(*present);
    std::int64_t sum = 0;
    if (!before || __builtin_add_overflow(*before, delta, &sum)) {
        return {StoreError::not_a_number, 0};
    }
    return {set(key, std::to_string(sum)), sum};
}

bool KeyTable::erase(std::string_view key) {
    const auto found = values_.find(key);
    if (found == values_.end()) return false;
    bytes_ -= found->first.size() + found->second.size();
    values_.erase(found);
    return true;
}

bool KeyTable::has_room(std::size_t bytes) const {
    return bytes <= max_store_bytes && bytes_ <= max_store_bytes - bytes;
}

}  // namespace ddrun::rendezvous
