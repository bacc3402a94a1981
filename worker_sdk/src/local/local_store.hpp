#pragma once

#include <ddrun/store.hpp>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace ddrun::detail {

// The store of a worker started alone: the same answers and limits, from this process's memory.
class LocalStore final : public Store {
  public:
    void set(std::string_view key, std::string_view value) override;
    std::string get(std::string_view key, Timeout timeout) override;
    std::vector<std::string> get_all(const std::vector<std::string>& keys,
                                     Timeout timeout) override;
    std::optional<std::string> find(std::string_view key) override;
    std::int64_t add(std::string_view key, std::int64_t delta) override;
    std::string compare_set(std::string_view key, std::string_view expected,
                            std::string_view desired) override;
    void remove(std::string_view key) override;
    void barrier(std::string_view, Timeout) override {}
    std::vector<std::string> all_gather(std::string_view name, std::string_view value,
                                        Timeout timeout) override;

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace ddrun::detail
