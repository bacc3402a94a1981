#pragma once

#include <ddrun/store.hpp>

#include <memory>

namespace ddrun::detail {

// The store of a worker started alone: the same answers and limits, from this process's memory.
class LocalStore final : public Store {
  public:
    LocalStore();
    ~LocalStore() override;

    Pending<void> async_set(std::string_view key, std::string_view value) override;
    Pending<std::string> async_get(std::string_view key, Timeout timeout) override;
    Pending<std::vector<std::string>> async_get_all(const std::vector<std::string>& keys,
                                                    Timeout timeout) override;
    Pending<std::optional<std::string>> async_find(std::string_view key) override;
    Pending<std::int64_t> async_add(std::string_view key, std::int64_t delta) override;
    Pending<std::string> async_compare_set(std::string_view key, std::string_view expected,
                                           std::string_view desired) override;
    Pending<void> async_remove(std::string_view key) override;
    Pending<void> async_barrier(std::string_view name, Timeout timeout) override;
    Pending<std::vector<std::string>> async_all_gather(std::string_view name,
                                                       std::string_view value,
                                                       Timeout timeout) override;

  private:
    class Table;
    class Wait;
    std::shared_ptr<Table> table_;  // a Pending may outlive the store
};

}  // namespace ddrun::detail
