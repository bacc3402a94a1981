#include "rendezvous/core/key_value_store.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::rendezvous {
namespace {

std::string quoted(const std::string& key) {
    constexpr std::size_t shown = 80;
    if (key.size() <= shown) return "'" + key + "'";
    return "'" + key.substr(0, shown) + "...'";
}

std::string_view reason(StoreError error) {
    switch (error) {
        case StoreError::none:
            return "";
        case StoreError::timed_out:
            return "timed out";
        case StoreError::not_a_number:
            return "the value is not a number, or the sum does not fit";
        case StoreError::too_large:
            return "key, value or answer over its limit";
        case StoreError::full:
            return "the store is full";
        case StoreError::aborted:
            return "aborted";
        case StoreError::mismatch:
            return "ranks disagree";
    }
    return "";
}

// What an answer with these values takes in a frame, roughly and never less.
std::size_t answer_bytes(std::size_t items, std::size_t bytes) {
    constexpr std::size_t type_id_and_count = 32;
    return type_id_and_count + 4 * items + bytes;
}

TimePoint after(TimePoint now, std::uint32_t timeout_ms) {
    return now + std::chrono::milliseconds(timeout_ms);
}

}  // namespace

KeyValueStore::KeyValueStore(int world_size) : world_size_(world_size) {}

KeyValueStore::Actions KeyValueStore::step(const StoreRequest& event, TimePoint now) {
    std::visit([&](const auto& request) { on({event.client, now}, request); }, event.request);
    return std::exchange(replies_, {});
}

KeyValueStore::Actions KeyValueStore::advance_to(TimePoint now) {
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
        time_out(waits_.find(deadlines_.begin()->second));
    }
    return std::exchange(replies_, {});
}

std::optional<TimePoint> KeyValueStore::next_deadline() const {
    if (deadlines_.empty()) return std::nullopt;
    return deadlines_.begin()->first;
}

void KeyValueStore::forget(int client) {
    for (auto wait = waits_.begin(); wait != waits_.end();) {
        const auto next = std::next(wait);
        if (wait->second.client == client) close_wait(wait);
        wait = next;
    }
}

KeyValueStore::Actions KeyValueStore::abort(const std::string& words) {
    aborted_ = words;
    while (!waits_.empty()) fail_wait(waits_.begin(), StoreError::aborted, words);
    return std::exchange(replies_, {});
}

// --- keys ---------------------------------------------------------------------------------------

void KeyValueStore::on(Asker asker, const StoreSet& request) {
    const StoreError error = table_.set(request.key, request.value);
    reply_stored(asker.client, request.id, error, StoreDone{request.id});
    if (error == StoreError::none) key_changed(request.key);
}

void KeyValueStore::on(Asker asker, const StoreGet& request) {
    // What set() took fits into an answer.
    if (const Bytes* present = table_.find(request.key)) {
        return reply(asker.client, StoreValue{request.id, *present});
    }
    wait_for_keys({asker.client, request.id, after(asker.now, request.timeout_ms),
                   KeyWait{{request.key}, 0, false}},
                  asker.now);
}

void KeyValueStore::on(Asker asker, const StoreMultiGet& request) {
    wait_for_keys({asker.client, request.id, after(asker.now, request.timeout_ms),
                   KeyWait{request.keys, 0, true}},
                  asker.now);
}

void KeyValueStore::on(Asker asker, const StoreAdd& request) {
    const KeyTable::Sum sum = table_.add(request.key, request.delta);
    reply_stored(asker.client, request.id, sum.error, StoreNumber{request.id, sum.value});
    if (sum.error == StoreError::none) key_changed(request.key);
}

void KeyValueStore::on(Asker asker, const StoreCompareSet& request) {
    const Bytes* present = table_.find(request.key);
    const Bytes now_there = present == nullptr ? Bytes{} : *present;
    if (now_there != request.expected) {
        return reply(asker.client, StoreValue{request.id, now_there});
    }
    const StoreError error = table_.set(request.key, request.desired);
    reply_stored(asker.client, request.id, error, StoreValue{request.id, request.desired});
    if (error == StoreError::none) key_changed(request.key);
}

void KeyValueStore::on(Asker asker, const StoreDelete& request) {
    const bool was_there = table_.erase(request.key);
    reply(asker.client, StoreNumber{request.id, was_there ? 1 : 0});
}

// --- waiting for keys ---------------------------------------------------------------------------

bool KeyValueStore::look_again(KeyWait& wait) const {
    const auto missing_from = [&](std::size_t first) {
        while (first < wait.keys.size() && table_.find(wait.keys[first]) != nullptr) ++first;
        return first;
    };
    wait.found = missing_from(wait.found);
    // Keys seen earlier may have been deleted since.
    if (wait.found == wait.keys.size()) wait.found = missing_from(0);
    return wait.found == wait.keys.size();
}

void KeyValueStore::wait_for_keys(Wait wait, TimePoint now) {
    auto& keys = std::get<KeyWait>(wait.what);
    if (look_again(keys)) return answer_keys(wait);
    if (wait.deadline <= now) {
        return reply(wait.client, StoreFailed{wait.id, StoreError::timed_out,
                                              "timed out: " + missing_in_words(wait)});
    }
    if (auto refusal = wait_refusal(wait.id)) return reply(wait.client, std::move(*refusal));
    if (const StoreError error = key_wait_problem(keys); error != StoreError::none) {
        return reply_stored(wait.client, wait.id, error, {});
    }
    waiting_bytes_ += keys.bytes();
    const std::string missing = keys.keys[keys.found];
    waits_by_key_[missing].insert(open_wait(std::move(wait)));
}

// What cannot be stored is not waited for.
StoreError KeyValueStore::key_wait_problem(const KeyWait& wait) const {
    for (const std::string& key : wait.keys) {
        if (key.size() > max_key_bytes) return StoreError::too_large;
    }
    return table_.has_room(waiting_bytes_ + wait.bytes()) ? StoreError::none : StoreError::full;
}

std::size_t KeyValueStore::KeyWait::bytes() const {
    std::size_t sum = 0;
    for (const std::string& key : keys) sum += key.size();
    return sum;
}

void KeyValueStore::answer_keys(const Wait& wait) {
    const auto& keys = std::get<KeyWait>(wait.what);
    std::size_t bytes = 0;
    for (const std::string& key : keys.keys) bytes += table_.find(key)->size();
    if (answer_bytes(keys.keys.size(), bytes) > max_frame_bytes) {
        return reply_stored(wait.client, wait.id, StoreError::too_large, {});
    }
    if (!keys.many) return reply(wait.client, StoreValue{wait.id, *table_.find(keys.keys[0])});
    std::vector<Bytes> values;
    for (const std::string& key : keys.keys) values.push_back(*table_.find(key));
    reply(wait.client, StoreValues{wait.id, std::move(values)});
}

void KeyValueStore::key_changed(const std::string& key) {
    if (waits_by_key_.empty()) return;
    const auto found = waits_by_key_.find(key);
    if (found == waits_by_key_.end()) return;
    const std::set<WaitNumber> woken = std::exchange(found->second, {});
    waits_by_key_.erase(found);
    for (const WaitNumber number : woken) {
        const auto wait = waits_.find(number);
        auto& keys = std::get<KeyWait>(wait->second.what);
        if (look_again(keys)) {
            answer_keys(wait->second);
            close_wait(wait);
        } else {
            waits_by_key_[keys.keys[keys.found]].insert(number);
        }
    }
}

// --- barriers and all-gathers -------------------------------------------------------------------

void KeyValueStore::on(Asker asker, const StoreBarrier& request) {
    arrive(
        asker,
        {GatheringKind::barrier, request.id, request.name, request.size, {}, request.timeout_ms});
}

void KeyValueStore::on(Asker asker, const StoreAllGather& request) {
    arrive(asker, {GatheringKind::all_gather, request.id, request.name, request.size, request.value,
                   request.timeout_ms});
}

void KeyValueStore::arrive(Asker asker, Arrival arrival) {
    if (auto refusal = arrival_refusal(asker.client, arrival)) {
        return reply(asker.client, std::move(*refusal));
    }
    const int size = size_of(arrival);
    const GatheringName name{arrival.kind, std::move(arrival.name)};
    Gathering& gathering = gatherings_.try_emplace(name, size, size == world_size_).first->second;
    const TimePoint deadline = after(asker.now, arrival.timeout_ms);
    const WaitNumber number = open_wait({asker.client, arrival.id, deadline, name});
    waiting_bytes_ += arrival.value.size();
    gathering.arrive(asker.client, number, std::move(arrival.value));
    if (gathering.complete()) return complete(name);
    if (arrival.timeout_ms == 0) time_out(waits_.find(number));
}

int KeyValueStore::size_of(const Arrival& arrival) const {
    return arrival.size == 0 ? world_size_ : static_cast<int>(arrival.size);
}

std::optional<StoreFailed> KeyValueStore::arrival_refusal(int client,
                                                          const Arrival& arrival) const {
    const auto refuse = [&](StoreError error, const std::string& words) {
        return StoreFailed{arrival.id, error,
                           words_of({arrival.kind, arrival.name}) + ": " + words};
    };
    if (auto refusal = wait_refusal(arrival.id)) return refusal;
    if (arrival.name.size() > max_key_bytes) {
        return refuse(StoreError::too_large, "the name is too long");
    }
    if (!table_.has_room(waiting_bytes_ + arrival.value.size())) {
        return refuse(StoreError::full, "no room for this value");
    }
    if (arrival.size > static_cast<std::uint32_t>(world_size_)) {
        return refuse(StoreError::mismatch, std::to_string(arrival.size) +
                                                " ranks asked for in a world of " +
                                                std::to_string(world_size_));
    }
    const auto found = gatherings_.find({arrival.kind, arrival.name});
    if (found == gatherings_.end()) return std::nullopt;
    if (found->second.has(client)) {
        return refuse(StoreError::mismatch,
                      "rank " + std::to_string(client) + " is already waiting there");
    }
    if (found->second.size() != size_of(arrival)) {
        return refuse(StoreError::mismatch, "rank " + std::to_string(client) + " came for " +
                                                std::to_string(size_of(arrival)) +
                                                " ranks, others for " +
                                                std::to_string(found->second.size()));
    }
    return std::nullopt;
}

void KeyValueStore::complete(const GatheringName& name) {
    Gathering gathering = std::move(gatherings_.extract(name).mapped());
    waiting_bytes_ -= gathering.value_bytes();
    const std::vector<WaitNumber> waits = gathering.waits();
    const bool fits = answer_bytes(waits.size(), gathering.value_bytes()) <= max_frame_bytes;
    const SharedValues values = gathering.take_values();
    for (const WaitNumber number : waits) {
        const auto wait = waits_.find(number);
        const auto [client, id] = std::pair(wait->second.client, wait->second.id);
        if (name.first == GatheringKind::barrier) {
            reply(client, StoreDone{id});
        } else {
            reply_stored(client, id, fits ? StoreError::none : StoreError::too_large,
                         StoreValues{id, values});
        }
        close_wait(wait);
    }
}

// --- waits --------------------------------------------------------------------------------------

std::optional<StoreFailed> KeyValueStore::wait_refusal(std::uint64_t id) const {
    if (aborted_) return StoreFailed{id, StoreError::aborted, *aborted_};
    if (waits_.size() < max_open_waits) return std::nullopt;
    return StoreFailed{id, StoreError::full, "too many open waits"};
}

KeyValueStore::WaitNumber KeyValueStore::open_wait(Wait wait) {
    const WaitNumber number = ++last_wait_;
    deadlines_.emplace(wait.deadline, number);
    waits_.emplace(number, std::move(wait));
    return number;
}

void KeyValueStore::close_wait(Waits::iterator wait) {
    deadlines_.erase({wait->second.deadline, wait->first});
    if (const auto* keys = std::get_if<KeyWait>(&wait->second.what)) {
        waiting_bytes_ -= keys->bytes();
        unregister(*keys, wait->first);
    } else {
        withdraw(std::get<GatheringName>(wait->second.what), wait->second.client);
    }
    waits_.erase(wait);
}

void KeyValueStore::unregister(const KeyWait& keys, WaitNumber number) {
    if (keys.found == keys.keys.size()) return;  // answered: not registered any more
    const auto found = waits_by_key_.find(keys.keys[keys.found]);
    found->second.erase(number);
    if (found->second.empty()) waits_by_key_.erase(found);
}

void KeyValueStore::withdraw(const GatheringName& name, int client) {
    const auto found = gatherings_.find(name);
    if (found == gatherings_.end()) return;  // complete
    waiting_bytes_ -= found->second.value_bytes();
    found->second.give_up(client);
    waiting_bytes_ += found->second.value_bytes();
    if (found->second.empty()) gatherings_.erase(found);
}

void KeyValueStore::time_out(Waits::iterator wait) {
    const std::string words = "timed out: " + missing_in_words(wait->second);
    fail_wait(wait, StoreError::timed_out, words);
}

void KeyValueStore::fail_wait(Waits::iterator wait, StoreError error, const std::string& words) {
    reply(wait->second.client, StoreFailed{wait->second.id, error, words});
    close_wait(wait);
}

std::string KeyValueStore::missing_in_words(const Wait& wait) const {
    if (const auto* name = std::get_if<GatheringName>(&wait.what)) {
        return words_of(*name) + ": " + gatherings_.find(*name)->second.who_is_missing();
    }
    std::vector<std::string> missing;
    for (const std::string& key : std::get<KeyWait>(wait.what).keys) {
        if (table_.find(key) == nullptr) missing.push_back(key);
    }
    const std::string first = quoted(missing.front());
    if (missing.size() == 1) return "key " + first + " is not there";
    return "key " + first + " and " + std::to_string(missing.size() - 1) + " more are not there";
}

std::string KeyValueStore::words_of(const GatheringName& name) {
    const bool barrier = name.first == GatheringKind::barrier;
    return (barrier ? "barrier " : "all-gather ") + quoted(name.second);
}

// --- answers ------------------------------------------------------------------------------------

void KeyValueStore::reply(int client, ToWorker message) {
    replies_.push_back({client, std::move(message)});
}

void KeyValueStore::reply_stored(int client, std::uint64_t id, StoreError error, ToWorker done) {
    if (error == StoreError::none) return reply(client, std::move(done));
    reply(client, StoreFailed{id, error, std::string(reason(error))});
}

}  // namespace ddrun::rendezvous
