#include "rendezvous/core/round_store.hpp"

#include "rendezvous/core/store_memory.hpp"

#include <algorithm>

namespace ddrun::rendezvous {
namespace {

constexpr int nobody = -1;  // the client that puts presented keys back
constexpr std::size_t most_waiting = 100'000;

template <typename... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::uint64_t id_of(const ToWorker& reply) {
    return std::visit(
        [](const auto& one) -> std::uint64_t {
            if constexpr (requires { one.id; }) {
                return one.id;
            } else {
                return 0;
            }
        },
        reply);
}

bool did_write(const ToWorker& reply, const Bytes& desired) {
    return std::visit(
        Overloaded{[](const StoreDone&) { return true; }, [](const StoreNumber&) { return true; },
                   [&](const StoreValue& value) { return value.value == desired; },
                   [](const auto&) { return false; }},
        reply);
}

constexpr auto lost_words =
    "the rendezvous server was lost; it is not known whether this write had been made";

}  // namespace

void RoundStore::begin(int round, int world_size) {
    round_ = round;
    store_.emplace(world_size);
    writes_.clear();
    open_.clear();
    recovering_ = false;
    lost_.reset();
    presented_.clear();
    passed_.clear();
    waiting_.clear();
}

void RoundStore::recover(int round, int world_size) {
    begin(round, world_size);
    recovering_ = true;
}

void RoundStore::present(const PresentKeys& keys) {
    if (!recovering_ || keys.round != round_) return;
    for (const KnownKey& known : keys.keys) {
        Presented& presented = presented_[known.key];
        presented.known += known.own_writes;
        if (known.writes < presented.writes) continue;
        presented.writes = known.writes;
        presented.value = known.deleted ? std::nullopt : std::optional(known.value);
    }
    for (const PassedGathering& gathering : keys.passed) {
        Passed& passed = passed_[{gathering.all_gather, gathering.name}];
        passed.times[gathering.rank] = gathering.times;
        if (gathering.times < passed.most) continue;
        passed.most = gathering.times;
        if (!gathering.values.empty()) passed.values = gathering.values;
    }
}

RoundStore::Actions RoundStore::end_recovery(TimePoint now) {
    if (!std::exchange(recovering_, false)) return {};
    for (const auto& [key, presented] : presented_) {
        writes_[key] = presented.writes;
        if (presented.value) (void)store_->step({nobody, StoreSet{0, key, *presented.value}}, now);
    }
    Actions answers;
    for (Waiting& waiting : std::exchange(waiting_, {})) {
        if (auto reply = answered_before(waiting.asked)) {
            answers.push_back(
                {waiting.node,
                 {waiting.asked.round, waiting.asked.rank, 0, false, std::move(*reply)}});
            continue;
        }
        Actions more = ask(waiting.node, waiting.asked, now);
        std::move(more.begin(), more.end(), std::back_inserter(answers));
    }
    presented_.clear();
    passed_.clear();
    return answers;
}

std::optional<ToWorker> RoundStore::answered_before(const StoreAsked& asked) const {
    const auto unanswered = [&](const std::string& key) {
        const auto found = presented_.find(key);
        return found != presented_.end() && found->second.some_unanswered();
    };
    const auto not_known = [](std::uint64_t id) {
        return ToWorker(StoreFailed{id, StoreError::aborted, lost_words});
    };
    return std::visit(
        Overloaded{[&](const StoreSet& set) -> std::optional<ToWorker> {
                       return unanswered(set.key) ? std::optional(ToWorker(StoreDone{set.id}))
                                                  : std::nullopt;
                   },
                   [&](const StoreAdd& add) -> std::optional<ToWorker> {
                       return unanswered(add.key) ? std::optional(not_known(add.id)) : std::nullopt;
                   },
                   [&](const StoreCompareSet& set) -> std::optional<ToWorker> {
                       return unanswered(set.key) ? std::optional(not_known(set.id)) : std::nullopt;
                   },
                   [&](const StoreDelete& gone) -> std::optional<ToWorker> {
                       return unanswered(gone.key)
                                  ? std::optional(ToWorker(StoreNumber{gone.id, 1}))
                                  : std::nullopt;
                   },
                   [&](const StoreBarrier& barrier) {
                       return passed_before(false, barrier.name, asked.rank, barrier.id);
                   },
                   [&](const StoreAllGather& gather) {
                       return passed_before(true, gather.name, asked.rank, gather.id);
                   },
                   [](const auto&) -> std::optional<ToWorker> { return std::nullopt; }},
        asked.request);
}

std::optional<ToWorker> RoundStore::passed_before(bool all_gather, const std::string& name,
                                                  int rank, std::uint64_t id) const {
    const auto found = passed_.find({all_gather, name});
    if (found == passed_.end()) return std::nullopt;
    const auto own = found->second.times.find(rank);
    const std::uint64_t times = own == found->second.times.end() ? 0 : own->second;
    if (times >= found->second.most) return std::nullopt;
    if (!all_gather) return StoreDone{id};
    if (!found->second.values.empty()) return StoreValues{id, found->second.values};
    return StoreFailed{id, StoreError::aborted,
                       "the rendezvous server was lost with the values of " + name};
}

RoundStore::Actions RoundStore::ask(int node, const StoreAsked& asked, TimePoint now) {
    if (!store_ || asked.round != round_) {
        return {refuse(node, asked, StoreError::aborted,
                       "round " + std::to_string(asked.round) + " is over")};
    }
    const auto id = request_id(asked.request);
    if (!id) return {};
    if (lost_) return {refuse(node, asked, StoreError::aborted, *lost_)};
    if (recovering_) {
        if (waiting_.size() >= most_waiting) {
            return {refuse(node, asked, StoreError::full, "the server is being rebuilt")};
        }
        waiting_.push_back({node, asked});
        return {};
    }
    Open open{node, {}, false, {}};
    std::visit(Overloaded{[&](const StoreSet& one) {
                              open = {node, one.key, true, {}};
                          },
                          [&](const StoreAdd& one) {
                              open = {node, one.key, true, {}};
                          },
                          [&](const StoreDelete& one) {
                              open = {node, one.key, true, {}};
                          },
                          [&](const StoreCompareSet& one) {
                              open = {node, one.key, true, one.desired};
                          },
                          [&](const StoreGet& one) {
                              open = {node, one.key, false, {}};
                          },
                          [](const auto&) {}},
               asked.request);
    open_[{asked.rank, *id}] = std::move(open);
    KeyValueStore::Actions replies = store_->step({asked.rank, asked.request}, now);
    // A write is counted before the gets that it lets go on are answered.
    std::stable_partition(replies.begin(), replies.end(), [&](const StoreReply& reply) {
        return reply.client == asked.rank && id_of(reply.reply) == *id;
    });
    return translate(std::move(replies));
}

RoundStore::Actions RoundStore::translate(KeyValueStore::Actions replies) {
    Actions answers;
    answers.reserve(replies.size());
    for (StoreReply& reply : replies) {
        if (reply.client == nobody) continue;
        const auto found = open_.find({reply.client, id_of(reply.reply)});
        if (found == open_.end()) continue;
        const Open& open = found->second;
        Answer answer{open.node, {round_, reply.client, 0, false, std::move(reply.reply)}};
        if (!open.key.empty()) {
            answer.answered.wrote = open.writes && did_write(answer.answered.reply, open.desired);
            std::uint64_t& writes = writes_[open.key];
            writes += answer.answered.wrote ? 1 : 0;
            answer.answered.writes = writes;
        }
        answers.push_back(std::move(answer));
        open_.erase(found);
    }
    return answers;
}

void RoundStore::forget(int round, int rank) {
    if (!store_ || round != round_) return;
    store_->forget(rank);
    std::erase_if(waiting_, [&](const Waiting& one) { return one.asked.rank == rank; });
    open_.erase(open_.lower_bound({rank, 0}), open_.lower_bound({rank + 1, 0}));
}

RoundStore::Actions RoundStore::abort(const std::string& words) {
    if (!store_) return {};
    Actions answers;
    for (Waiting& waiting : std::exchange(waiting_, {})) {
        answers.push_back(refuse(waiting.node, waiting.asked, StoreError::aborted, words));
    }
    // What was not presented yet is not there: an empty store must not answer for it.
    if (std::exchange(recovering_, false)) lost_ = words;
    Actions more = translate(store_->abort(words));
    std::move(more.begin(), more.end(), std::back_inserter(answers));
    return answers;
}

RoundStore::Actions RoundStore::lose(const std::string& words) {
    Actions answers = abort(words);
    lost_ = words;
    return answers;
}

RoundStore::Actions RoundStore::advance_to(TimePoint now) {
    return store_ ? translate(store_->advance_to(now)) : Actions{};
}

std::optional<TimePoint> RoundStore::next_deadline() const {
    return store_ ? store_->next_deadline() : std::nullopt;
}

RoundStore::Answer RoundStore::refuse(int node, const StoreAsked& asked, StoreError error,
                                      std::string words) const {
    const std::uint64_t id = request_id(asked.request).value_or(0);
    return {node, {asked.round, asked.rank, 0, false, StoreFailed{id, error, std::move(words)}}};
}

}  // namespace ddrun::rendezvous
