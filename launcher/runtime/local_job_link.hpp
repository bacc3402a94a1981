#pragma once

#include "launcher/runtime/job_link.hpp"
#include "rendezvous/core/coordinator.hpp"
#include "rendezvous/core/key_value_store.hpp"

#include <optional>
#include <string>

namespace ddrun::launcher {

// A job of one node: coordinator and store by function call, without any socket.
class LocalJobLink final : public JobLink {
  public:
    LocalJobLink(const rendezvous::JobRules& rules, Ears ears);

    void say(const rendezvous::ToCoordinator& message) override;
    void begin_round(const rendezvous::RoundGranted& grant) override;
    void end_round(int round) override;
    void ask(int round, int rank, rendezvous::FromWorker request) override;
    void forget(int round, int rank) override;
    void abort_waits(int round, const std::string& words) override;
    void advance_to(TimePoint now) override;
    [[nodiscard]] std::optional<TimePoint> next_deadline() const override;
    void close(bool processes_left) override;
    [[nodiscard]] std::string describe() const override;

  private:
    void perform(const rendezvous::Coordinator::Actions& answers);
    void perform(const rendezvous::KeyValueStore::Actions& replies);

    rendezvous::Coordinator coordinator_;
    std::optional<rendezvous::KeyValueStore> store_;  // of the current round
    int round_ = 0;
    Ears ears_;
};

}  // namespace ddrun::launcher
