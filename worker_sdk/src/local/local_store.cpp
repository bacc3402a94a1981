#include "worker_sdk/src/local/local_store.hpp"

#include "rendezvous/protocol/worker_messages.hpp"

#include <ddrun/error.hpp>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>

namespace ddrun::detail {
namespace {

using Clock = std::chrono::steady_clock;

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

// What was done when it was asked for: a value, or the error that get() throws.
template <typename T>
class Done final : public PendingSource<T> {
  public:
    explicit Done(std::future<T> result) : result_(std::move(result)) {}
    bool is_ready() override { return true; }
    T take() override { return result_.get(); }

  private:
    std::future<T> result_;
};

template <typename Operation, typename T = std::invoke_result_t<Operation>>
Pending<T> now(Operation operation) {
    std::packaged_task<T()> task(std::move(operation));
    auto result = task.get_future();
    task();
    return Pending<T>(std::make_unique<Done<T>>(std::move(result)));
}

}  // namespace

class LocalStore::Table {
  public:
    void set(std::string_view key, std::string_view value) {
        const std::lock_guard lock(mutex_);
        put(key, std::string(value));
    }
    // False: not before `until`.
    bool wait(std::string_view key, Clock::time_point until) {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(lock, until, [&] { return values_.find(key) != values_.end(); });
    }
    std::optional<std::string> find(std::string_view key) {
        const std::lock_guard lock(mutex_);
        const auto found = values_.find(key);
        if (found == values_.end()) return std::nullopt;
        return found->second;
    }
    std::int64_t add(std::string_view key, std::int64_t delta) {
        const std::lock_guard lock(mutex_);
        const auto found = values_.find(key);
        const std::int64_t before = found == values_.end() ? 0 : number_in(key, found->second);
        std::int64_t sum = 0;
        if (__builtin_add_overflow(before, delta, &sum))
            throw Error(ErrorKind::store,
                        "store add '" + std::string(key) + "': the sum does not fit");
        put(key, std::to_string(sum));
        return sum;
    }
    std::string compare_set(std::string_view key, std::string_view expected,
                            std::string_view desired) {
        const std::lock_guard lock(mutex_);
        const auto found = values_.find(key);
        std::string there = found == values_.end() ? std::string() : found->second;
        if (there != expected) return there;
        put(key, std::string(desired));
        return std::string(desired);
    }
    void remove(std::string_view key) {
        const std::lock_guard lock(mutex_);
        const auto found = values_.find(key);
        if (found != values_.end()) values_.erase(found);
    }

  private:
    void put(std::string_view key, std::string value) {
        values_.insert_or_assign(std::string(key), std::move(value));
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string, std::less<>> values_;
};

// Keys that another thread of this process may still set.
class LocalStore::Wait {
  public:
    Wait(std::shared_ptr<Table> table, std::vector<std::string> keys, Timeout timeout)
        : table_(std::move(table)),
          keys_(std::move(keys)),
          timeout_(timeout),
          deadline_(Clock::now() + timeout) {}

    [[nodiscard]] bool is_over() const {
        const auto there = [&](const auto& key) { return table_->find(key).has_value(); };
        return Clock::now() >= deadline_ || std::all_of(keys_.begin(), keys_.end(), there);
    }
    [[nodiscard]] std::vector<std::string> values() const {
        std::vector<std::string> values;
        for (const auto& key : keys_) {
            if (!table_->wait(key, deadline_))
                throw TimedOut({}, "store get '" + key + "': nobody has set it in " +
                                       std::to_string(timeout_.count()) + " ms");
            values.push_back(table_->find(key).value_or(""));
        }
        return values;
    }

    struct One;
    struct All;

  private:
    std::shared_ptr<Table> table_;
    std::vector<std::string> keys_;
    Timeout timeout_;
    Clock::time_point deadline_;
};

struct LocalStore::Wait::One final : PendingSource<std::string> {
    explicit One(Wait wait) : wait_(std::move(wait)) {}
    bool is_ready() override { return wait_.is_over(); }
    std::string take() override { return std::move(wait_.values().front()); }
    Wait wait_;
};

struct LocalStore::Wait::All final : PendingSource<std::vector<std::string>> {
    explicit All(Wait wait) : wait_(std::move(wait)) {}
    bool is_ready() override { return wait_.is_over(); }
    std::vector<std::string> take() override { return wait_.values(); }
    Wait wait_;
};

LocalStore::LocalStore() : table_(std::make_shared<Table>()) {}
LocalStore::~LocalStore() = default;

Pending<void> LocalStore::async_set(std::string_view key, std::string_view value) {
    check_sizes(key, value);
    return now([&] { table_->set(key, value); });
}

Pending<std::string> LocalStore::async_get(std::string_view key, Timeout timeout) {
    return Pending<std::string>(
        std::make_unique<Wait::One>(Wait(table_, {std::string(key)}, timeout)));
}

Pending<std::vector<std::string>> LocalStore::async_get_all(const std::vector<std::string>& keys,
                                                            Timeout timeout) {
    return Pending<std::vector<std::string>>(
        std::make_unique<Wait::All>(Wait(table_, keys, timeout)));
}

Pending<std::optional<std::string>> LocalStore::async_find(std::string_view key) {
    return now([&] { return table_->find(key); });
}

Pending<std::int64_t> LocalStore::async_add(std::string_view key, std::int64_t delta) {
    check_sizes(key, {});
    return now([&] { return table_->add(key, delta); });
}

Pending<std::string> LocalStore::async_compare_set(std::string_view key, std::string_view expected,
                                                   std::string_view desired) {
    check_sizes(key, desired);
    return now([&] { return table_->compare_set(key, expected, desired); });
}

Pending<void> LocalStore::async_remove(std::string_view key) {
    return now([&] { table_->remove(key); });
}

Pending<void> LocalStore::async_barrier(std::string_view, Timeout) {
    return now([] {});
}

Pending<std::vector<std::string>> LocalStore::async_all_gather(std::string_view,
                                                               std::string_view value, Timeout) {
    return now([&] { return std::vector<std::string>{std::string(value)}; });
}

}  // namespace ddrun::detail
