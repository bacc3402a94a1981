#include "worker_sdk/src/control/agent_store.hpp"

#include <ddrun/error.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace ddrun::detail {
namespace {

constexpr std::size_t largest_frame = rendezvous::max_frame_bytes - rendezvous::max_key_bytes - 64;

std::string about(const char* verb, std::string_view key) {
    constexpr std::size_t enough = 80;
    return std::string("store ") + verb + " '" + std::string(key.substr(0, enough)) + "'";
}

// Refused here: a frame over the limit would cost the connection.
void check_size(const std::string& what, std::size_t bytes) {
    if (bytes > largest_frame)
        throw Error(ErrorKind::store, what + ": " + std::to_string(bytes) +
                                          " bytes are more than the store takes (" +
                                          std::to_string(largest_frame) + ")");
}

std::uint32_t wire_timeout(Store::Timeout timeout) {
    constexpr auto longest = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(timeout.count(), 0, longest));
}

template <typename Expected>
Expected ask(ControlLink& link, rendezvous::FromWorker request, const std::string& what,
             Store::Timeout timeout = {}) {
    auto reply = link.ask(std::move(request), what, timeout + Store::answer_timeout);
    if (auto* expected = std::get_if<Expected>(&reply.message)) return std::move(*expected);
    throw Error(ErrorKind::store, what + ": the agent gave an answer of another kind");
}

}  // namespace

void AgentStore::set(std::string_view key, std::string_view value) {
    const std::string what = about("set", key);
    check_size(what, key.size() + value.size());
    (void)ask<rendezvous::StoreDone>(
        link_, rendezvous::StoreSet{0, std::string(key), std::string(value)}, what);
}

std::string AgentStore::get(std::string_view key, Timeout timeout) {
    const std::string what = about("get", key);
    check_size(what, key.size());
    return ask<rendezvous::StoreValue>(
               link_, rendezvous::StoreGet{0, std::string(key), wire_timeout(timeout)}, what,
               timeout)
        .value;
}

std::vector<std::string> AgentStore::get_all(const std::vector<std::string>& keys,
                                             Timeout timeout) {
    if (keys.empty()) return {};
    const std::string what =
        about("get", keys.front()) + " and " + std::to_string(keys.size() - 1) + " more keys";
    std::size_t bytes = 0;
    for (const auto& key : keys) bytes += key.size() + sizeof(std::uint32_t);
    check_size(what, bytes);
    return ask<rendezvous::StoreValues>(
               link_, rendezvous::StoreMultiGet{0, keys, wire_timeout(timeout)}, what, timeout)
        .values.list();
}

std::optional<std::string> AgentStore::find(std::string_view key) {
    try {
        return get(key, Timeout(0));
    } catch (const TimedOut&) {
        return std::nullopt;
    }
}

std::int64_t AgentStore::add(std::string_view key, std::int64_t delta) {
    const std::string what = about("add", key);
    check_size(what, key.size());
    return ask<rendezvous::StoreNumber>(link_, rendezvous::StoreAdd{0, std::string(key), delta},
                                        what)
        .value;
}

std::string AgentStore::compare_set(std::string_view key, std::string_view expected,
                                    std::string_view desired) {
    const std::string what = about("compare_set", key);
    check_size(what, key.size() + expected.size() + desired.size());
    return ask<rendezvous::StoreValue>(
               link_,
               rendezvous::StoreCompareSet{0, std::string(key), std::string(expected),
                                           std::string(desired)},
               what)
        .value;
}

void AgentStore::remove(std::string_view key) {
    const std::string what = about("remove", key);
    check_size(what, key.size());
    (void)ask<rendezvous::StoreNumber>(link_, rendezvous::StoreDelete{0, std::string(key)}, what);
}

void AgentStore::barrier(std::string_view name, Timeout timeout) {
    const std::string what = about("barrier", name);
    check_size(what, name.size());
    (void)ask<rendezvous::StoreDone>(
        link_, rendezvous::StoreBarrier{0, std::string(name), 0, wire_timeout(timeout)}, what,
        timeout);
}

std::vector<std::string> AgentStore::all_gather(std::string_view name, std::string_view value,
                                                Timeout timeout) {
    const std::string what = about("all_gather", name);
    check_size(what, name.size() + value.size());
    return ask<rendezvous::StoreValues>(
               link_,
               rendezvous::StoreAllGather{0, std::string(name), 0, std::string(value),
                                          wire_timeout(timeout)},
               what, timeout)
        .values.list();
}

}  // namespace ddrun::detail
