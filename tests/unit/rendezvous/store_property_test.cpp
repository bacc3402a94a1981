// The store beside a slow and obvious one: same requests, same answers.

#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"
#include "tests/unit/rendezvous/store_story.hpp"

#include <algorithm>
#include <optional>

using namespace ddrun::testing;

namespace {

// Looks at every open request after every change.
class SlowStore {
  public:
    SlowStore(int world, ddrun::TimePoint start) : world_(world), now_(start) {}

    std::vector<std::string> ask(int client, const FromWorker& request) {
        answers_.clear();
        std::visit([&](const auto& r) { handle(client, r); }, request);
        look_at_all();
        expire();
        return answers_;
    }
    std::vector<std::string> pass(ddrun::Duration time) {
        answers_.clear();
        now_ += time;
        expire();
        return answers_;
    }

  private:
    struct Open {
        int client;
        std::uint64_t id;
        ddrun::TimePoint deadline;
        std::vector<std::string> keys;  // for these, or
        std::string barrier;            // in this
    };

    void handle(int client, const StoreSet& r) {
        keys_[r.key] = r.value;
        answer(client, r.id, "done");
    }
    void handle(int client, const StoreAdd& r) {
        const std::string old = keys_.contains(r.key) ? keys_[r.key] : "0";
        keys_[r.key] = std::to_string(std::stoll(old) + r.delta);
        answer(client, r.id, keys_[r.key]);
    }
    void handle(int client, const StoreCompareSet& r) {
        if ((keys_.contains(r.key) ? keys_[r.key] : "") == r.expected) keys_[r.key] = r.desired;
        answer(client, r.id, keys_.contains(r.key) ? keys_[r.key] : "");
    }
    void handle(int client, const StoreDelete& r) {
        answer(client, r.id, std::to_string(keys_.erase(r.key)));
    }
    void handle(int client, const StoreGet& r) {
        open_.push_back({client, r.id, now_ + 1ms * r.timeout_ms, {r.key}, ""});
    }
    void handle(int client, const StoreMultiGet& r) {
        open_.push_back({client, r.id, now_ + 1ms * r.timeout_ms, r.keys, ""});
    }
    void handle(int client, const StoreBarrier& r) {
        for (const Open& open : open_) {
            if (open.client == client && open.barrier == r.name)
                return answer(client, r.id, "failed");
        }
        open_.push_back({client, r.id, now_ + 1ms * r.timeout_ms, {}, r.name});
    }
    void handle(int, const auto&) {}

    bool ready(const Open& open) const {
        if (!open.barrier.empty()) {
            return std::count_if(open_.begin(), open_.end(), [&](const Open& other) {
                       return other.barrier == open.barrier;
                   }) == world_;
        }
        return std::all_of(open.keys.begin(), open.keys.end(),
                           [&](const std::string& key) { return keys_.contains(key); });
    }

    void look_at_all() {
        std::vector<Open> answered;
        std::copy_if(open_.begin(), open_.end(), std::back_inserter(answered),
                     [&](const Open& open) { return ready(open); });
        for (const Open& open : answered) {
            std::string values = open.barrier.empty() ? "" : "done";
            for (const std::string& key : open.keys) values += keys_[key] + ",";
            answer(open.client, open.id, values);
            std::erase_if(open_, [&](const Open& other) { return other.id == open.id; });
        }
    }

    void expire() {
        for (const Open& open : open_) {
            if (open.deadline <= now_) answer(open.client, open.id, "failed");
        }
        std::erase_if(open_, [&](const Open& open) { return open.deadline <= now_; });
    }

    void answer(int client, std::uint64_t id, const std::string& words) {
        answers_.push_back(std::to_string(client) + "/" + std::to_string(id) + " " + words);
    }

    int world_;
    ddrun::TimePoint now_;
    std::map<std::string, std::string> keys_;
    std::vector<Open> open_;
    std::vector<std::string> answers_;
};

std::string in_words(const StoreDone&) {
    return "done";
}
std::string in_words(const StoreNumber& m) {
    return std::to_string(m.value);
}
std::string in_words(const StoreFailed&) {
    return "failed";
}
std::string in_words(const auto&) {
    return "?";
}

std::vector<std::string> in_words(const KeyValueStore::Actions& replies,
                                  const std::map<std::uint64_t, bool>& is_get) {
    std::vector<std::string> lines;
    for (const StoreReply& reply : replies) {
        const auto line = [&](const auto& m) -> std::string {
            if constexpr (requires { m.id; }) {
                std::string words;
                if constexpr (requires { m.values; }) {
                    for (const auto& value : m.values) words += value + ",";
                } else if constexpr (std::is_same_v<std::decay_t<decltype(m)>, StoreValue>) {
                    words = m.value + (is_get.at(m.id) ? "," : "");
                } else {
                    words = in_words(m);
                }
                return std::to_string(reply.client) + "/" + std::to_string(m.id) + " " + words;
            }
            return "?";
        };
        lines.push_back(std::visit(line, reply.reply));
    }
    return lines;
}

std::vector<std::string> sorted(std::vector<std::string> lines) {
    std::sort(lines.begin(), lines.end());
    return lines;
}

FromWorker random_request(Dice& dice, std::uint64_t id) {
    const auto key = [&] { return std::string(1, static_cast<char>('a' + dice.number(0, 4))); };
    const auto number = [&] { return std::to_string(dice.number(0, 3)); };
    const auto timeout = static_cast<std::uint32_t>(dice.one_in(4) ? 0 : dice.number(1, 50));
    switch (dice.number(0, 6)) {
        case 0:
            return StoreSet{id, key(), number()};
        case 1:
            return StoreAdd{id, key(), dice.number(-3, 3)};
        case 2:
            return StoreCompareSet{id, key(), dice.one_in(2) ? "" : number(), number()};
        case 3:
            return StoreDelete{id, key()};
        case 4:
            return StoreGet{id, key(), timeout};
        case 5:
            return StoreMultiGet{id, {key(), key(), key()}, timeout};
        default:
            return StoreBarrier{id, "barrier " + key(), 0, timeout};
    }
}

}  // namespace

TEST_CASE("the store answers as its slow twin does") {
    const auto seed = GENERATE(range(1u, 1000u));
    INFO("seed " << seed);
    Dice dice(seed);
    const int world = dice.number(1, 4);
    ddrun::TimePoint now{1h};
    KeyValueStore store(world);
    SlowStore twin(world, now);
    std::map<std::uint64_t, bool> is_get;
    for (std::uint64_t id = 1; id <= 150; ++id) {
        const int client = dice.number(0, world - 1);
        const FromWorker request = random_request(dice, id);
        is_get[id] = std::holds_alternative<StoreGet>(request);
        INFO("request " << id);
        REQUIRE(sorted(in_words(store.step({client, request}, now), is_get)) ==
                sorted(twin.ask(client, request)));
        const auto time = std::chrono::milliseconds(dice.number(0, 10));
        now += time;
        REQUIRE(sorted(in_words(store.advance_to(now), is_get)) == sorted(twin.pass(time)));
    }
}
