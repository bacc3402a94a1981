#include "rendezvous/core/store_memory.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <variant>

namespace ddrun::rendezvous {
namespace {

constexpr std::size_t part_bytes = std::size_t{1} << 20;
constexpr std::size_t part_items = 4096;
constexpr std::size_t container_bytes = 128;  // what an entry takes beside its text, about

template <typename Request>
concept StoreRequestMessage = requires(const Request& request) {
    request.id;
}
&&!std::is_same_v<Request, ArenaOpen>;

const StoreAsked& asked_in(const Kept& kept) {
    return std::get<StoreAsked>(*kept);
}

std::optional<std::uint64_t> answered_id(const ToWorker& reply) {
    return std::visit(
        [](const auto& one) -> std::optional<std::uint64_t> {
            if constexpr (requires { one.id; }) {
                return one.id;
            } else {
                return std::nullopt;
            }
        },
        reply);
}

std::size_t total_size(const std::vector<std::string>& list) {
    return std::accumulate(
        list.begin(), list.end(), std::size_t{0},
        [](std::size_t sum, const std::string& item) { return sum + item.size(); });
}

// What takes memory in a request.
std::size_t size_of(const FromWorker& request) {
    return container_bytes + std::visit(
                                 [](const auto& one) {
                                     std::size_t bytes = 0;
                                     if constexpr (requires { one.key; }) bytes += one.key.size();
                                     if constexpr (requires { one.name; }) bytes += one.name.size();
                                     if constexpr (requires { one.value; })
                                         bytes += one.value.size();
                                     if constexpr (requires { one.expected; })
                                         bytes += one.expected.size() + one.desired.size();
                                     if constexpr (requires { one.keys; })
                                         bytes += total_size(one.keys);
                                     return bytes;
                                 },
                                 request);
}

// A time-out of 0 stays "at once"; a wait that is due is due in a moment.
void shorten(FromWorker& request, Duration by) {
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(by).count();
    std::visit(
        [&](auto& one) {
            if constexpr (requires { one.timeout_ms; }) {
                const auto left = std::max<std::int64_t>(1, std::int64_t{one.timeout_ms} - passed);
                if (one.timeout_ms > 0) one.timeout_ms = static_cast<std::uint32_t>(left);
            }
        },
        request);
}

// Cuts what is presented into messages that a server takes.
class Parts {
  public:
    void add(KnownKey key) {
        open(key.key.size() + key.value.size());
        parts_.back().keys.push_back(std::move(key));
    }
    void add(PassedGathering gathering) {
        open(gathering.name.size() + total_size(gathering.values));
        parts_.back().passed.push_back(std::move(gathering));
    }
    [[nodiscard]] std::vector<PresentKeys> take(int round) {
        if (parts_.empty()) parts_.emplace_back();
        for (PresentKeys& part : parts_) {
            part.round = round;
            part.last = false;
        }
        parts_.back().last = true;
        return std::move(parts_);
    }

  private:
    void open(std::size_t bytes) {
        if (parts_.empty() || items_ >= part_items || bytes_ + bytes > part_bytes) {
            parts_.emplace_back();
            bytes_ = items_ = 0;
        }
        bytes_ += bytes;
        ++items_;
    }

    std::vector<PresentKeys> parts_;
    std::size_t bytes_ = 0;  // of the last part
    std::size_t items_ = 0;
};

}  // namespace

std::optional<std::uint64_t> request_id(const FromWorker& request) {
    return std::visit(
        [](const auto& one) -> std::optional<std::uint64_t> {
            if constexpr (StoreRequestMessage<std::decay_t<decltype(one)>>) {
                return one.id;
            } else {
                return std::nullopt;
            }
        },
        request);
}

void StoreMemory::begin_round(int round) {
    *this = {};
    round_ = round;
}

// --- requests on their way ----------------------------------------------------------------------

StoreError StoreMemory::asked(const Kept& asked, Ticket ticket, TimePoint now) {
    const StoreAsked& request = asked_in(asked);
    const auto id = request_id(request.request);
    if (!id) return StoreError::none;
    if (request.round != round_) return StoreError::aborted;
    const std::size_t bytes = size_of(request.request);
    if (open_bytes_ + bytes > max_asked_bytes) return StoreError::full;
    if (!open_.try_emplace({request.rank, *id}, Open{asked, ticket, now}).second)
        return StoreError::mismatch;
    open_bytes_ += bytes;
    return StoreError::none;
}

bool StoreMemory::answered(const StoreAnswered& answer) {
    const auto id = answered_id(answer.reply);
    if (!id || answer.round != round_) return false;
    const auto open = open_.find({answer.rank, *id});
    if (open == open_.end()) return false;
    const Kept payload = open->second.payload;
    close(open);
    learn(asked_in(payload).request, answer);
    return true;
}

void StoreMemory::forget(std::int32_t rank) {
    for (auto open = open_.lower_bound({rank, 0});
         open != open_.end() && open->first.first == rank;)
        close(open++);
}

std::vector<StoreAnswered> StoreMemory::abort(const std::string& words) {
    std::vector<std::pair<Ticket, StoreAnswered>> answers;
    for (const auto& [asker, open] : open_) {
        const StoreFailed failed{asker.second, StoreError::aborted, words};
        answers.push_back({open.ticket, {round_, asker.first, 0, false, failed}});
    }
    open_.clear();
    open_bytes_ = 0;
    std::sort(answers.begin(), answers.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<StoreAnswered> in_order;
    for (auto& [ticket, answer] : answers) in_order.push_back(std::move(answer));
    return in_order;
}

void StoreMemory::close(std::map<Asker, Open>::iterator open) {
    open_bytes_ -= size_of(asked_in(open->second.payload).request);
    open_.erase(open);
}

std::map<Ticket, Kept> StoreMemory::open_requests(TimePoint now) const {
    std::map<Ticket, Kept> requests;
    for (const auto& [asker, open] : open_) {
        StoreAsked again = asked_in(open.payload);
        shorten(again.request, now - open.asked);
        requests.emplace(open.ticket, std::make_shared<const ToJob>(std::move(again)));
    }
    return requests;
}

// --- what answers teach -------------------------------------------------------------------------

void StoreMemory::learn(const FromWorker& request, const StoreAnswered& answer) {
    if (std::holds_alternative<StoreFailed>(answer.reply)) return;
    const auto* value = std::get_if<StoreValue>(&answer.reply);
    const auto* number = std::get_if<StoreNumber>(&answer.reply);
    const auto* values = std::get_if<StoreValues>(&answer.reply);
    if (const auto* set = std::get_if<StoreSet>(&request)) {
        know(set->key, answer, &set->value);
    } else if (const auto* add = std::get_if<StoreAdd>(&request); add && number) {
        const Bytes sum = std::to_string(number->value);
        know(add->key, answer, &sum);
    } else if (const auto* get = std::get_if<StoreGet>(&request); get && value) {
        know(get->key, answer, &value->value);
    } else if (const auto* swap = std::get_if<StoreCompareSet>(&request); swap && value) {
        // An empty answer without a write may mean that there is nothing: it teaches nothing.
        if (answer.wrote || !value->value.empty()) know(swap->key, answer, &value->value);
    } else if (const auto* erase = std::get_if<StoreDelete>(&request)) {
        know(erase->key, answer, nullptr);
    } else if (const auto* many = std::get_if<StoreMultiGet>(&request); many && values) {
        const std::size_t count = std::min(many->keys.size(), values->values.size());
        for (std::size_t i = 0; i < count; ++i) know_unversioned(many->keys[i], values->values[i]);
    } else if (const auto* barrier = std::get_if<StoreBarrier>(&request)) {
        pass({false, barrier->name}, answer.rank, {});
    } else if (const auto* gather = std::get_if<StoreAllGather>(&request); gather && values) {
        pass({true, gather->name}, answer.rank, values->values);
    }
}

void StoreMemory::know(const std::string& key, const StoreAnswered& answer, const Bytes* value) {
    if (answer.writes == 0) return;  // never written
    Known known = take(key);
    if (answer.wrote) ++known.own_writes;
    if (answer.writes >= known.writes) {
        known.writes = answer.writes;
        known.value = value ? std::optional(*value) : std::nullopt;
    }
    put(key, std::move(known));
}

void StoreMemory::know_unversioned(const std::string& key, const Bytes& value) {
    if (!keys_.contains(key)) put(key, Known{value, 0, 0});
}

StoreMemory::Known StoreMemory::take(const std::string& key) {
    const auto place = keys_.find(key);
    if (place == keys_.end()) return {};
    known_bytes_ -= place->second.cost(key);
    Known known = std::move(place->second);
    keys_.erase(place);
    return known;
}

void StoreMemory::put(const std::string& key, Known known) {
    const std::size_t bytes = known.cost(key);
    if (!make_room(bytes)) {
        ++unknown_;
        return;
    }
    known_bytes_ += bytes;
    keys_.insert_or_assign(key, std::move(known));
}

std::size_t StoreMemory::Known::cost(const std::string& key) const {
    return container_bytes + key.size() + (value ? value->size() : 0);
}

void StoreMemory::pass(GatheringName name, std::int32_t rank, const std::vector<Bytes>& values) {
    const bool is_new = gatherings_.find(name) == gatherings_.end();
    if (is_new && gatherings_.size() >= max_known_gatherings) forget_oldest_gathering();
    Passed& passed = gatherings_[name];
    by_use_.erase(passed.last_use);
    known_bytes_ -= total_size(passed.values);
    passed.values.clear();
    ++passed.times[rank];
    // Not in `by_use_` while room is made: it is not to be forgotten now.
    const std::size_t bytes = total_size(values);
    if (make_room(bytes)) {
        passed.values = values;
        known_bytes_ += bytes;
    } else {
        ++unknown_;
    }
    passed.last_use = ++uses_;
    by_use_.emplace(passed.last_use, std::move(name));
}

void StoreMemory::forget_oldest_gathering() {
    const auto oldest = by_use_.begin();
    const auto gathering = gatherings_.find(oldest->second);
    known_bytes_ -= total_size(gathering->second.values);
    gatherings_.erase(gathering);
    by_use_.erase(oldest);
}

bool StoreMemory::make_room(std::size_t bytes) {
    if (bytes > max_known_bytes) return false;
    while (known_bytes_ + bytes > max_known_bytes && !by_use_.empty()) forget_oldest_gathering();
    return known_bytes_ + bytes <= max_known_bytes;
}

// --- presenting ---------------------------------------------------------------------------------

std::vector<PresentKeys> StoreMemory::present() const {
    Parts parts;
    for (const auto& [key, known] : keys_) {
        parts.add(KnownKey{key, known.value.value_or(Bytes()), !known.value, known.writes,
                           known.own_writes});
    }
    for (const auto& [name, passed] : gatherings_) {
        std::vector<Bytes> values = passed.values;
        for (const auto& [rank, times] : passed.times) {
            parts.add(
                PassedGathering{name.first, name.second, rank, times, std::exchange(values, {})});
        }
    }
    return parts.take(round_);
}

}  // namespace ddrun::rendezvous
