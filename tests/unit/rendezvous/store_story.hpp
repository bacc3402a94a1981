#pragma once

#include "rendezvous/core/key_value_store.hpp"

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

// A store with clients: each request gets the next id; the answer is looked up by it.
namespace ddrun::testing {

using namespace rendezvous;
using namespace std::chrono_literals;

class StoreStory {
  public:
    explicit StoreStory(int world_size = 4) : store_(world_size) {}

    // The id under which the answer will come.
    template <typename Request>
    std::uint64_t asks(int client, Request request) {
        request.id = ++last_id_;
        take(store_.step({client, std::move(request)}, now_));
        return last_id_;
    }
    std::uint64_t set(int client, const std::string& key, const std::string& value) {
        return asks(client, StoreSet{0, key, value});
    }
    std::uint64_t get(int client, const std::string& key, std::uint32_t timeout_ms = 0) {
        return asks(client, StoreGet{0, key, timeout_ms});
    }
    std::uint64_t barrier(int client, const std::string& name, std::uint32_t size = 0,
                          std::uint32_t timeout_ms = 1000) {
        return asks(client, StoreBarrier{0, name, size, timeout_ms});
    }
    std::uint64_t all_gather(int client, const std::string& name, const std::string& value,
                             std::uint32_t timeout_ms = 1000, std::uint32_t size = 0) {
        return asks(client, StoreAllGather{0, name, size, value, timeout_ms});
    }

    void passes(Duration time) {
        const TimePoint end = now_ + time;
        while (store_.next_deadline() && *store_.next_deadline() <= end) {
            now_ = *store_.next_deadline();
            take(store_.advance_to(now_));
        }
        now_ = end;
    }
    void forget(int client) { store_.forget(client); }
    void abort(const std::string& words) { take(store_.abort(words)); }

    [[nodiscard]] bool waits(std::uint64_t id) const { return !answers_.contains(id); }
    template <typename T>
    [[nodiscard]] const T& answer(std::uint64_t id) const {
        return std::get<T>(answers_.at(id));
    }
    [[nodiscard]] const std::string& value(std::uint64_t id) const {
        return answer<StoreValue>(id).value;
    }
    [[nodiscard]] StoreError error(std::uint64_t id) const { return answer<StoreFailed>(id).error; }
    [[nodiscard]] const std::string& words(std::uint64_t id) const {
        return answer<StoreFailed>(id).words;
    }
    [[nodiscard]] bool idle() const { return !store_.next_deadline().has_value(); }

  private:
    void take(KeyValueStore::Actions replies) {
        for (StoreReply& reply : replies) {
            const std::uint64_t id =
                std::visit([](const auto& m) { return id_of(m); }, reply.reply);
            const bool first = answers_.emplace(id, std::move(reply.reply)).second;
            if (!first) throw std::runtime_error("answered twice");
        }
    }
    static std::uint64_t id_of(const auto& message) {
        if constexpr (requires { message.id; }) return message.id;
        throw std::runtime_error("not an answer of the store");
    }

    KeyValueStore store_;
    TimePoint now_{1h};
    std::uint64_t last_id_ = 0;
    std::map<std::uint64_t, ToWorker> answers_;
};

}  // namespace ddrun::testing
