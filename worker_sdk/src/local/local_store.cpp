#include "worker_sdk/src/local/local_store.hpp"

#include "rendezvous/protocol/worker_messages.hpp"

#include <ddrun/error.hpp>

#include <charconv>

namespace ddrun::detail {
namespace {

void check_sizes(std::string_view key, std::string_view value) {
    if (key.size() > rendezvous::max_key_bytes)
        throw Error(ErrorKind::store, "store key of " + std::to_string(key.size()) +
                                          " bytes: the limit is " +
                                          std::to_string(rendezvous::max_key_bytes));
    if (value.size() > rendezvous::max_frame_bytes - rendezvous::max_key_bytes - 64)
        throw Error(ErrorKind::store, "store set '" + std::string(key) + "': a value of " +
                                          std::to_string(value.size()) + " bytes is too large");
}

std::int64_t number_in(std::string_view key, std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        throw Error(ErrorKind::store, "store add '" + std::string(key) + "': '" +
                                          std::string(text) + "' is not a whole number");
    return value;
}

}  // namespace

void LocalStore::set(std::string_view key, std::string_view value) {
    check_sizes(key, value);
    const std::lock_guard lock(mutex_);
    values_.insert_or_assign(std::string(key), std::string(value));
    changed_.notify_all();
}

std::string LocalStore::get(std::string_view key, Timeout timeout) {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return values_.find(key) != values_.end(); };
    if (!changed_.wait_for(lock, timeout, there))
        throw TimedOut({}, "store get '" + std::string(key) + "': nobody has set it in " +
                               std::to_string(timeout.count()) + " ms");
    return values_.find(key)->second;
}

std::vector<std::string> LocalStore::get_all(const std::vector<std::string>& keys,
                                             Timeout timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::vector<std::string> values;
    for (const auto& key : keys)
        values.push_back(
            get(key, std::max(Timeout(0), std::chrono::ceil<Timeout>(
                                              deadline - std::chrono::steady_clock::now()))));
    return values;
}

std::optional<std::string> LocalStore::find(std::string_view key) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    return found->second;
}

std::int64_t LocalStore::add(std::string_view key, std::int64_t delta) {
    check_sizes(key, {});
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    std::int64_t sum = 0;
    if (__builtin_add_overflow(found == values_.end() ? 0 : number_in(key, found->second), delta,
                               &sum))
        throw Error(ErrorKind::store, "store add '" + std::string(key) + "': the sum does not fit");
    values_.insert_or_assign(std::string(key), std::to_string(sum));
    changed_.notify_all();
    return sum;
}

std::string LocalStore::compare_set(std::string_view key, std::string_view expected,
                                    std::string_view desired) {
    check_sizes(key, desired);
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    const std::string now = found == values_.end() ? std::string() : found->second;
    if (now != expected) return now;
    values_.insert_or_assign(std::string(key), std::string(desired));
    changed_.notify_all();
    return std::string(desired);
}

void LocalStore::remove(std::string_view key) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found != values_.end()) values_.erase(found);
}

std::vector<std::string> LocalStore::all_gather(std::string_view, std::string_view value, Timeout) {
    return {std::string(value)};
}

}  // namespace ddrun::detail
