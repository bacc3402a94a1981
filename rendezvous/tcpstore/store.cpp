#include "rendezvous/tcpstore/store.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ddrun::rendezvous::tcpstore {
namespace {

constexpr char stop_waiting = 0;
constexpr char wait_cancelled = 1;
constexpr char all_there = 0;
constexpr char not_all_there = 1;
constexpr char watching = 3;

template <typename Number>
void put_number(std::string& bytes, Number value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& bytes, std::string_view text) {
    put_number(bytes, static_cast<std::uint64_t>(text.size()));
    bytes.append(text);
}

bool read_decimal(std::string_view text, std::int64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Store::Outcome Store::handle(Client client, bool is_legacy, const Request& request,
                             std::string& answer) {
    Outcome outcome;
    // An older client that asks again has given up what it waited for.
    if (is_legacy) forget(client);
    const auto key = [&](std::size_t place = 0) { return Key(request.texts[place]); };
    std::int64_t sum = 0;
    switch (request.operation) {
        case Operation::validate:
            break;
        case Operation::ping:
            put_number(answer, static_cast<std::uint32_t>(request.number));
            break;
        case Operation::watch_key:  // nobody uses it; a quiet watch is a legal one
            answer.push_back(watching);
            break;
        case Operation::set:
            put(key(), std::string(request.texts[1]));
            written(key(), outcome.woken);
            break;
        case Operation::append: {
            const auto found = values_.find(key());
            const std::string before = found == values_.end() ? std::string() : found->second;
            put(key(), before + std::string(request.texts[1]));
            written(key(), outcome.woken);
            break;
        }
        case Operation::multi_set:
            for (std::size_t i = 0; i < request.texts.size(); i += 2) {
                put(key(i), std::string(request.texts[i + 1]));
                written(key(i), outcome.woken);
            }
            break;
        case Operation::compare_set:
            compare_set(request, answer, outcome);
            break;
        case Operation::get:
        case Operation::multi_get:
            for (const auto text : request.texts) {
                const auto found = values_.find(Key(text));
                put_text(answer, found == values_.end() ? std::string_view() : found->second);
            }
            break;
        case Operation::add:
            outcome.close = !add(key(), request.number, sum);
            if (outcome.close) break;
            put_number(answer, sum);
            written(key(), outcome.woken);
            break;
        case Operation::check: {
            const bool there = std::all_of(request.texts.begin(), request.texts.end(),
                                           [&](auto text) { return is_there(Key(text)); });
            answer.push_back(there ? all_there : not_all_there);
            break;
        }
        case Operation::wait:
            begin_wait(client, request, answer);
            break;
        case Operation::cancel_wait:
            forget(client);
            answer.push_back(wait_cancelled);
            break;
        case Operation::barrier:
            pass_barrier(client, request, outcome);
            break;
        case Operation::get_num_keys:
            put_number(answer, static_cast<std::int64_t>(values_.size()));
            break;
        case Operation::list_keys:
            put_number(answer, static_cast<std::int64_t>(values_.size()));
            for (const auto& [name, value] : values_) put_text(answer, name);
            break;
        case Operation::delete_key: {
            const auto found = values_.find(key());
            put_number(answer, static_cast<std::int64_t>(found == values_.end() ? 0 : 1));
            if (found == values_.end()) break;
            kept_bytes_ -= found->first.size() + found->second.size();
            values_.erase(found);
            break;
        }
        case Operation::queue_push:
            kept_bytes_ += request.texts[1].size();
            queues_[key()].emplace_back(request.texts[1]);
            wake_one(key(), outcome.woken);
            break;
        case Operation::queue_pop:
            pop(key(), answer);
            break;
        case Operation::queue_length: {
            const auto found = queues_.find(key());
            put_number(answer, static_cast<std::int64_t>(
                                   found == queues_.end() ? 0 : found->second.size()));
            break;
        }
    }
    if (kept_bytes_ > max_kept_bytes) outcome.close = true;
    return outcome;
}

void Store::put(const Key& key, std::string value) {
    const auto [place, made] = values_.try_emplace(key);
    kept_bytes_ += value.size() + (made ? key.size() : 0);
    kept_bytes_ -= place->second.size();
    place->second = std::move(value);
}

bool Store::is_there(const Key& key) const {
    if (values_.contains(key)) return true;
    const auto queue = queues_.find(key);
    return queue != queues_.end() && !queue->second.empty();
}

// A key that is written once counts, also where it is deleted again before the others are.
void Store::written(const Key& key, std::vector<Client>& woken) {
    const auto found = waiters_.find(key);
    if (found == waiters_.end()) return;
    const auto clients = std::move(found->second);
    waiters_.erase(found);
    for (const Client client : clients) (void)tick_off(client, key, woken);
}

// The one that has waited longest; who waits for other keys too goes on waiting for those.
void Store::wake_one(const Key& key, std::vector<Client>& woken) {
    const auto found = waiters_.find(key);
    if (found == waiters_.end()) return;
    const Client first = found->second.front();
    found->second.erase(found->second.begin());
    if (found->second.empty()) waiters_.erase(found);
    (void)tick_off(first, key, woken);
}

bool Store::tick_off(Client client, const Key& key, std::vector<Client>& woken) {
    const auto found = waiting_.find(client);
    if (found == waiting_.end()) return false;
    found->second.missing.erase(key);
    if (!found->second.missing.empty()) return false;
    waiting_.erase(found);
    woken.push_back(client);
    return true;
}

void Store::begin_wait(Client client, const Request& request, std::string& answer) {
    forget(client);
    Waiting wait;
    for (const auto text : request.texts)
        if (Key key(text); !is_there(key)) wait.missing.insert(std::move(key));
    if (wait.missing.empty()) {
        answer.push_back(stop_waiting);
        return;
    }
    for (const Key& key : wait.missing) waiters_[key].push_back(client);
    waiting_.emplace(client, std::move(wait));
}

void Store::forget(Client client) {
    const auto found = waiting_.find(client);
    if (found == waiting_.end()) return;
    const auto leave = [&](auto& lists, const Key& key) {
        const auto list = lists.find(key);
        if (list == lists.end()) return;
        std::erase(list->second, client);
        if (list->second.empty()) lists.erase(list);
    };
    for (const Key& key : found->second.missing) leave(waiters_, key);
    if (!found->second.barrier.empty()) leave(in_barrier_, found->second.barrier);
    waiting_.erase(found);
}

// Kept as decimal text, as PyTorch does. False: the value is not a number, or the sum does not fit.
bool Store::add(const Key& key, std::int64_t delta, std::int64_t& sum) {
    const auto found = values_.find(key);
    std::int64_t before = 0;
    if (found != values_.end() && !read_decimal(found->second, before)) return false;
    if (__builtin_add_overflow(before, delta, &sum)) return false;
    put(key, std::to_string(sum));
    return true;
}

void Store::compare_set(const Request& request, std::string& answer, Outcome& outcome) {
    const Key key(request.texts[0]);
    const auto expected = request.texts[1];
    const auto desired = request.texts[2];
    const auto found = values_.find(key);
    if (found == values_.end() ? !expected.empty() : found->second != expected)
        return put_text(answer, found == values_.end() ? expected : found->second);
    put(key, std::string(desired));
    put_text(answer, desired);
    written(key, outcome.woken);
}

// The counter is an ordinary key; who comes after the barrier was full passes at once.
void Store::pass_barrier(Client client, const Request& request, Outcome& outcome) {
    const Key key(request.texts[0]);
    std::int64_t count = 0;
    outcome.close = !add(key, 1, count);
    if (outcome.close) return;
    written(key, outcome.woken);
    if (count < request.number) {
        forget(client);
        Waiting wait;
        wait.barrier = key;
        waiting_.emplace(client, std::move(wait));
        in_barrier_[key].push_back(client);
        return;
    }
    const auto found = in_barrier_.find(key);
    if (found != in_barrier_.end()) {
        for (const Client waiter : found->second) {
            waiting_.erase(waiter);
            outcome.woken.push_back(waiter);
        }
        in_barrier_.erase(found);
    }
    outcome.woken.push_back(client);
}

void Store::pop(const Key& key, std::string& answer) {
    const auto found = queues_.find(key);
    const std::size_t length = found == queues_.end() ? 0 : found->second.size();
    put_number(answer, static_cast<std::int64_t>(length));
    if (length == 0) return;
    put_text(answer, found->second.front());
    kept_bytes_ -= found->second.front().size();
    found->second.pop_front();
    if (found->second.empty()) queues_.erase(found);
}

}  // namespace ddrun::rendezvous::tcpstore
