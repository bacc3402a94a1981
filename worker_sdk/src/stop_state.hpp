#pragma once

#include "rendezvous/protocol/time.hpp"
#include "worker_sdk/core/agent_link.hpp"

#include <ddrun/worker.hpp>

#include <atomic>
#include <mutex>
#include <optional>

namespace ddrun::detail {

// Everything that may ask this worker to end, and what should_stop() answers. Any thread.
class StopState {
  public:
    void arm();

    void request(int signal, std::optional<TimePoint> deadline);  // by the agent
    void end() noexcept { ended_.store(true); }                   // nothing with peers can finish
    void end_because(const Failure& failure);                     // the same, in the agent's words
    void agree() noexcept { agreed_.store(true); }                // at a collective, on all ranks
    void use_agreement() noexcept {
        by_agreement_.store(true);
    }  // collectives are in use from here

    [[nodiscard]] bool has_ended() const noexcept { return ended_.load(); }
    // This rank's own knowledge.
    [[nodiscard]] bool is_wanted() const noexcept;
    [[nodiscard]] bool should_stop() noexcept;
    [[nodiscard]] StopRequest describe() const;
    // What the agent said when it ended all waits; empty: nothing.
    [[nodiscard]] std::string cause() const;

  private:
    std::atomic<bool> requested_ = false;
    std::atomic<bool> ended_ = false;
    std::atomic<bool> agreed_ = false;
    std::atomic<bool> by_agreement_ = false;
    std::atomic<bool> told_ = false;  // should_stop() has been true

    mutable std::mutex mutex_;  // the rest
    int signal_ = 0;
    std::optional<TimePoint> deadline_;
    std::string cause_;
};

}  // namespace ddrun::detail
