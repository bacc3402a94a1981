#pragma once

#include "rendezvous/protocol/time.hpp"
#include "rendezvous/protocol/worker_messages.hpp"
#include "worker_sdk/core/subject.hpp"

#include <ddrun/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace ddrun::detail {

// Why something that was waited for cannot come; thrown to the user as the exception of its kind.
struct Failure {
    ErrorKind kind = ErrorKind::system;
    int rank = -1;  // of a lost peer; -1: not known
    std::string words;
    std::vector<int> missing = {};  // timed_out: ranks that did not arrive, where known
    bool operator==(const Failure&) const = default;
};

// This worker's side of the conversation with its agent: which requests are open, what the agent's
// words mean for them, when to give up, and when a progress notice is due. Thread-unsafe.
//
//   greeting ── Welcome ──► open ── RoundAborted ──► aborted
//       │                    │                          │
//       └── Refused, Closed ─┴────────── Closed ────────┴──► closed
//
// Every request is answered exactly once, whatever happens: by the agent's reply, by a failure when
// its deadline passes, when the round is aborted, or when the link closes. In `aborted` and
// `closed` a new request fails at once.
class AgentLink {
  public:
    // --- events ---------------------------------------------------------------------------------
    struct Asked {  // a thread waits for the answer to `request`, whose id is `id`
        std::uint64_t id = 0;
        rendezvous::FromWorker request;
        TimePoint deadline;
        Subject what;  // for error words
    };
    struct Told {  // a notice: no answer
        rendezvous::FromWorker notice;
    };
    struct Stepped {  // the training loop has finished a step
        std::int64_t step = 0;
    };
    struct Blamed {  // this worker is about to fail because of `rank`
        int rank = -1;
        std::string words;
    };
    struct Received {
        rendezvous::ToWorker message;
    };
    struct Closed {  // the connection is gone, or what came makes no sense
        std::string words;
    };
    struct Ending {};  // the Worker is being destroyed: send what is due
    using Event = std::variant<Asked, Told, Stepped, Blamed, Received, Closed, Ending>;

    // --- actions --------------------------------------------------------------------------------
    struct Send {
        rendezvous::FromWorker message;
    };
    using Outcome = std::variant<rendezvous::ToWorker, Failure>;
    struct Answer {  // wake the thread that asked
        std::uint64_t id = 0;
        Outcome outcome;
    };
    struct RaiseStop {
        int signal = 0;
        std::optional<TimePoint> deadline;  // when this process will be killed
    };
    struct EndWaits {  // nothing that needs a peer can finish any more
        Failure failure;
    };
    struct Close {};
    using Action = std::variant<Send, Answer, RaiseStop, EndWaits, Close>;
    using Actions = std::vector<Action>;

    static constexpr std::uint64_t hello_id = 0;  // the hello is asked under it
    static constexpr Duration progress_interval = std::chrono::milliseconds(50);
    // The store may report an abort before the notice that names the rank arrives.
    static constexpr Duration cause_patience = std::chrono::milliseconds(100);

    [[nodiscard]] Actions step(Event event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    // Not later than the next deadline; earlier where the request it belonged to is answered.
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;

    // A progress notice went out less than `progress_interval` ago: a step told now would wait.
    // Ends at next_deadline() at the latest.
    [[nodiscard]] bool quiet() const { return quiet_; }

  private:
    enum class State { greeting, open, aborted, closed };
    struct Open {
        TimePoint deadline;
        Subject what;
        std::string abort_words;  // not empty: ended by an abort whose cause is still on its way
    };

    void on(Asked& event, TimePoint now);
    void on(Told& event, TimePoint now);
    void on(const Stepped& event, TimePoint now);
    void on(const Blamed& event, TimePoint now);
    void on(Received& event, TimePoint now);
    void on(const Closed& event, TimePoint now);
    void on(const Ending& event, TimePoint now);

    void hear(rendezvous::Welcome& message, TimePoint now);
    void hear(rendezvous::Refused& message, TimePoint now);
    void hear(rendezvous::StoreFailed& message, TimePoint now);
    void hear(rendezvous::StopRequested& message, TimePoint now);
    void hear(rendezvous::RoundAborted& message, TimePoint now);
    template <typename Reply>
    void hear(Reply& reply, TimePoint now);

    void answer(std::uint64_t id, Outcome outcome);
    void fail(std::uint64_t id, const Failure& failure);
    void fail_all();
    void close(const Failure& why);
    void send_progress(TimePoint now);
    void end_late_requests(TimePoint now);
    void expect_before(TimePoint deadline);
    [[nodiscard]] Actions take();

    State state_ = State::greeting;
    std::unordered_map<std::uint64_t, Open> open_;
    std::optional<TimePoint> earliest_;  // no open request's deadline is before it
    Failure end_;                        // in `aborted` and `closed`: why
    bool blamed_ = false;
    std::optional<std::int64_t> unsent_step_;
    TimePoint quiet_until_{};
    bool quiet_ = false;
    Actions actions_;
};

}  // namespace ddrun::detail
