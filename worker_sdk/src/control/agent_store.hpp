#pragma once

#include "worker_sdk/src/control/control_link.hpp"

#include <ddrun/store.hpp>

namespace ddrun::detail {

// The store of the round, over the agent.
class AgentStore final : public Store {
  public:
    explicit AgentStore(ControlLink& link) : link_(link) {}

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
    ControlLink& link_;
};

}  // namespace ddrun::detail
