#pragma once

#include "worker_sdk/src/control/control_link.hpp"

#include <ddrun/store.hpp>

namespace ddrun::detail {

// The store of the round, over the agent.
class AgentStore final : public Store {
  public:
    explicit AgentStore(ControlLink& link) : link_(link) {}

    void set(std::string_view key, std::string_view value) override;
    std::string get(std::string_view key, Timeout timeout) override;
    std::vector<std::string> get_all(const std::vector<std::string>& keys,
                                     Timeout timeout) override;
    std::optional<std::string> find(std::string_view key) override;
    std::int64_t add(std::string_view key, std::int64_t delta) override;
    std::string compare_set(std::string_view key, std::string_view expected,
                            std::string_view desired) override;
    void remove(std::string_view key) override;
    void barrier(std::string_view name, Timeout timeout) override;
    std::vector<std::string> all_gather(std::string_view name, std::string_view value,
                                        Timeout timeout) override;

  private:
    ControlLink& link_;
};

}  // namespace ddrun::detail
