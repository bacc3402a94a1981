#include "worker_sdk/src/control/agent_store.hpp"

#include <ddrun/error.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace ddrun::detail {
namespace {

constexpr std::size_t largest_frame = rendezvous::max_frame_bytes - rendezvous::max_key_bytes - 64;

// Refused here: a frame over the limit would cost the connection.
void check_size(const Subject& what, std::size_t bytes) {
    if (bytes > largest_frame)
        throw Error(ErrorKind::store, what.words() + ": " + std::to_string(bytes) +
                                          " bytes are more than the store takes (" +
                                          std::to_string(largest_frame) + ")");
}

std::uint32_t wire_timeout(Store::Timeout timeout) {
    constexpr auto longest = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(timeout.count(), 0, longest));
}

void value_of(rendezvous::StoreDone&&) {}
std::string value_of(rendezvous::StoreValue&& reply) {
    return std::move(reply.value);
}
std::int64_t value_of(rendezvous::StoreNumber&& reply) {
    return reply.value;
}
std::vector<std::string> value_of(rendezvous::StoreValues&& reply) {
    return reply.values.list();
}

// The answer of kind `Message`, as a T.
template <typename T, typename Message>
class AgentAnswer : public PendingSource<T> {
  public:
    AgentAnswer(ControlLink& link, ControlLink::CallPointer call)
        : link_(link), call_(std::move(call)) {}

    bool is_ready() override { return link_.is_finished(call_); }
    T take() override {
        auto reply = link_.finish(call_);
        auto* expected = std::get_if<Message>(&reply.message);
        if (expected == nullptr)
            throw Error(ErrorKind::store, "the agent answered the store with another kind");
        return static_cast<T>(value_of(std::move(*expected)));
    }

  private:
    ControlLink& link_;
    ControlLink::CallPointer call_;
};

// A get that need not find anything.
class FoundAnswer final : public PendingSource<std::optional<std::string>> {
  public:
    FoundAnswer(ControlLink& link, ControlLink::CallPointer call) : get_(link, std::move(call)) {}

    bool is_ready() override { return get_.is_ready(); }
    std::optional<std::string> take() override {
        try {
            return get_.take();
        } catch (const TimedOut&) {
            return std::nullopt;
        }
    }

  private:
    AgentAnswer<std::string, rendezvous::StoreValue> get_;
};

template <typename T, typename Message>
Pending<T> ask(ControlLink& link, rendezvous::FromWorker request, Subject what,
               Store::Timeout timeout = {}) {
    return Pending<T>(std::make_unique<AgentAnswer<T, Message>>(
        link, link.begin(std::move(request), std::move(what), timeout + Store::answer_timeout)));
}

}  // namespace

Pending<void> AgentStore::async_set(std::string_view key, std::string_view value) {
    Subject what("store set", key);
    check_size(what, key.size() + value.size());
    return ask<void, rendezvous::StoreDone>(
        link_, rendezvous::StoreSet{0, std::string(key), std::string(value)}, std::move(what));
}

Pending<std::string> AgentStore::async_get(std::string_view key, Timeout timeout) {
    Subject what("store get", key);
    check_size(what, key.size());
    return ask<std::string, rendezvous::StoreValue>(
        link_, rendezvous::StoreGet{0, std::string(key), wire_timeout(timeout)}, std::move(what),
        timeout);
}

Pending<std::vector<std::string>> AgentStore::async_get_all(const std::vector<std::string>& keys,
                                                            Timeout timeout) {
    Subject what("store get", keys.empty() ? "" : keys.front(), keys.empty() ? 0 : keys.size() - 1);
    std::size_t bytes = 0;
    for (const auto& key : keys) bytes += key.size() + sizeof(std::uint32_t);
    check_size(what, bytes);
    return ask<std::vector<std::string>, rendezvous::StoreValues>(
        link_, rendezvous::StoreMultiGet{0, keys, wire_timeout(timeout)}, std::move(what), timeout);
}

Pending<std::optional<std::string>> AgentStore::async_find(std::string_view key) {
    Subject what("store find", key);
    check_size(what, key.size());
    return Pending<std::optional<std::string>>(std::make_unique<FoundAnswer>(
        link_, link_.begin(rendezvous::StoreGet{0, std::string(key), 0}, std::move(what),
                           answer_timeout)));
}

Pending<std::int64_t> AgentStore::async_add(std::string_view key, std::int64_t delta) {
    Subject what("store add", key);
    check_size(what, key.size());
    return ask<std::int64_t, rendezvous::StoreNumber>(
        link_, rendezvous::StoreAdd{0, std::string(key), delta}, std::move(what));
}

Pending<std::string> AgentStore::async_compare_set(std::string_view key, std::string_view expected,
                                                   std::string_view desired) {
    Subject what("store compare_set", key);
    check_size(what, key.size() + expected.size() + desired.size());
    return ask<std::string, rendezvous::StoreValue>(
        link_,
        rendezvous::StoreCompareSet{0, std::string(key), std::string(expected),
                                    std::string(desired)},
        std::move(what));
}

Pending<void> AgentStore::async_remove(std::string_view key) {
    Subject what("store remove", key);
    check_size(what, key.size());
    return ask<void, rendezvous::StoreNumber>(link_, rendezvous::StoreDelete{0, std::string(key)},
                                              std::move(what));
}

Pending<void> AgentStore::async_barrier(std::string_view name, Timeout timeout) {
    Subject what("store barrier", name);
    check_size(what, name.size());
    return ask<void, rendezvous::StoreDone>(
        link_, rendezvous::StoreBarrier{0, std::string(name), 0, wire_timeout(timeout)},
        std::move(what), timeout);
}

Pending<std::vector<std::string>> AgentStore::async_all_gather(std::string_view name,
                                                               std::string_view value,
                                                               Timeout timeout) {
    Subject what("store all_gather", name);
    check_size(what, name.size() + value.size());
    return ask<std::vector<std::string>, rendezvous::StoreValues>(
        link_,
        rendezvous::StoreAllGather{0, std::string(name), 0, std::string(value),
                                   wire_timeout(timeout)},
        std::move(what), timeout);
}

}  // namespace ddrun::detail
