#pragma once

#include "launcher/keeper/keeper.hpp"
#include "launcher/keeper/link.hpp"
#include "launcher/keeper/messages.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

// Plays the agent for a real keeper with real workers.
namespace ddrun::launcher::keeper {

using namespace std::chrono_literals;

// Where a worker's streams go; pipes whose read ends the harness keeps, unless said otherwise.
struct SpawnChoices {
    Variables extra = {};
    int round = 1;
    int input = -1;  // -1: /dev/null
    bool owns_stdin = false;
    bool clear_environment = false;
    bool strict_binding = false;
    std::vector<int> cpus = {};
    std::optional<int> memory_node = {};
};

class FakeAgent {
  public:
    explicit FakeAgent(const WorkerDefaults& defaults = {});
    ~FakeAgent();  // ends the keeper, which ends what is left
    FakeAgent(const FakeAgent&) = delete;

    void send(const ToKeeper& message);
    void spawn(int local_rank, std::vector<std::string> argv, const SpawnChoices& choices = {});
    void spawn_shell(int local_rank, const std::string& script, const SpawnChoices& choices = {}) {
        spawn(local_rank, {"/bin/sh", "-c", script}, choices);
    }

    // The next message of that kind, in order of arrival; those of other kinds stay. Throws after
    // the patience.
    template <typename Message>
    Message expect(std::chrono::milliseconds patience = 10s);
    // One arrives within `patience`.
    template <typename Message>
    bool comes(std::chrono::milliseconds patience);
    // pid of the worker once it is executed.
    pid_t started(int local_rank);

    // All the worker and its children wrote until the last of them closed the stream.
    std::string output(int local_rank);
    // Reads until `text` has appeared on the worker's stdout.
    void await_output(int local_rank, const std::string& text);

    [[nodiscard]] pid_t keeper() const { return keeper_.pid; }
    [[nodiscard]] Link& link() { return link_; }
    // In the environment of everything that was started here: FAKE_AGENT_MARK=...
    [[nodiscard]] const std::string& mark() const { return mark_; }
    [[nodiscard]] std::string tag(int round, int local_rank) const;
    // What the other end said last is no longer readable: it is gone.
    [[nodiscard]] bool keeper_gone();

  private:
    void pump(std::chrono::steady_clock::time_point deadline);

    KeeperProcess keeper_;
    Link link_;
    std::string mark_;
    std::deque<FromKeeper> inbox_;
    std::map<int, UniqueFd> outputs_;
    std::map<int, std::string> written_;
    std::map<int, pid_t> pids_;
};

// Living processes (zombies are dead) with that mark.
[[nodiscard]] std::vector<pid_t> living_with_mark(const std::string& mark);
[[nodiscard]] bool is_alive(pid_t pid);
// Polls every millisecond; false when it never held.
[[nodiscard]] bool eventually(const std::function<bool()>& condition,
                              std::chrono::milliseconds patience = 10s);
[[nodiscard]] std::string new_mark();

template <typename Message>
bool FakeAgent::comes(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
        for (const FromKeeper& message : inbox_) {
            if (std::holds_alternative<Message>(message)) return true;
        }
        if (std::chrono::steady_clock::now() >= deadline || link_.closed()) return false;
        pump(deadline);
    }
}

template <typename Message>
Message FakeAgent::expect(std::chrono::milliseconds patience) {
    if (!comes<Message>(patience)) {
        throw std::runtime_error(std::string("no such message: ") + typeid(Message).name());
    }
    for (auto at = inbox_.begin();; ++at) {
        if (auto* found = std::get_if<Message>(&*at)) {
            Message message = std::move(*found);
            inbox_.erase(at);
            return message;
        }
    }
}

}  // namespace ddrun::launcher::keeper
