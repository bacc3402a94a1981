#include "worker_sdk/core/agent_link.hpp"

#include "tests/support/catch.hpp"

#include <sstream>

using namespace ddrun;
using namespace ddrun::detail;
using namespace ddrun::rendezvous;
using namespace std::chrono_literals;

namespace {

std::string text_of(const FromWorker& message) {
    if (std::holds_alternative<WorkerHello>(message)) return "hello";
    if (const auto* get = std::get_if<StoreGet>(&message)) return "get " + std::to_string(get->id);
    if (const auto* progress = std::get_if<Progress>(&message))
        return "progress " + std::to_string(progress->step);
    if (const auto* aborted = std::get_if<AbortedBecause>(&message))
        return "because of " + std::to_string(aborted->rank);
    if (std::holds_alternative<NeverRetry>(message)) return "never retry";
    return "other";
}

std::string text_of(const AgentLink::Action& action) {
    if (const auto* send = std::get_if<AgentLink::Send>(&action))
        return "send " + text_of(send->message);
    if (const auto* stop = std::get_if<AgentLink::RaiseStop>(&action))
        return "stop " + std::to_string(stop->signal);
    if (const auto* end = std::get_if<AgentLink::EndWaits>(&action))
        return "end waits, rank " + std::to_string(end->failure.rank);
    if (std::holds_alternative<AgentLink::Close>(action)) return "close";
    const auto& answer = std::get<AgentLink::Answer>(action);
    std::string text = "answer " + std::to_string(answer.id);
    if (const auto* failure = std::get_if<Failure>(&answer.outcome))
        return text + " failed(" + std::to_string(static_cast<int>(failure->kind)) + ", " +
               std::to_string(failure->rank) + "): " + failure->words;
    return text;
}

std::string failed(std::uint64_t id, ErrorKind kind, int rank, const std::string& words) {
    return "answer " + std::to_string(id) + " failed(" + std::to_string(static_cast<int>(kind)) +
           ", " + std::to_string(rank) + "): " + words;
}

// Feeds events at a clock that the test turns, and shows the actions as lines.
class Script {
  public:
    std::string feed(const AgentLink::Event& event) { return lines(link_.step(event, now_)); }
    std::string ask(std::uint64_t id, Duration timeout = 10s) {
        return feed(AgentLink::Asked{id, StoreGet{id, "k", 0}, now_ + timeout, "get 'k'"});
    }
    std::string hear(const ToWorker& message) { return feed(AgentLink::Received{message}); }
    std::string pass(Duration time) {
        now_ += time;
        return lines(link_.advance_to(now_));
    }
    std::optional<Duration> next() const {
        const auto deadline = link_.next_deadline();
        return deadline ? std::optional(*deadline - now_) : std::nullopt;
    }
    void join() {
        feed(AgentLink::Asked{AgentLink::hello_id, WorkerHello{}, now_ + 10s, "joining"});
        hear(Welcome{});
    }
    [[nodiscard]] bool quiet() const { return link_.quiet(); }

  private:
    static std::string lines(const AgentLink::Actions& actions) {
        std::string text;
        for (const auto& action : actions) text += (text.empty() ? "" : " | ") + text_of(action);
        return text;
    }
    AgentLink link_;
    TimePoint now_{1h};
};

}  // namespace

TEST_CASE("hello, then requests answered in any order") {
    Script link;
    CHECK(link.feed(AgentLink::Asked{AgentLink::hello_id, WorkerHello{}, TimePoint(2h),
                                     "joining"}) == "send hello");
    CHECK(link.hear(Welcome{}) == "answer 0");
    CHECK(link.ask(1) == "send get 1");
    CHECK(link.ask(2) == "send get 2");
    CHECK(link.hear(StoreValue{2, "b"}) == "answer 2");
    CHECK(link.hear(StoreValue{1, "a"}) == "answer 1");
    CHECK(link.hear(StoreValue{1, "a"}).empty());
    CHECK_FALSE(link.next());
}

TEST_CASE("an agent of another version, or one that refuses, fails the hello and closes") {
    Script other;
    other.feed(AgentLink::Asked{AgentLink::hello_id, WorkerHello{}, TimePoint(2h), "joining"});
    const auto words = other.hear(Welcome{worker_protocol_version + 1});
    CHECK(words.find("end waits, rank -1 | answer 0 failed") == 0);
    CHECK(words.find("build it against the SDK of the installed ddrun | close") !=
          std::string::npos);

    Script refused;
    refused.feed(AgentLink::Asked{AgentLink::hello_id, WorkerHello{}, TimePoint(2h), "joining"});
    CHECK(refused.hear(Refused{"round 1 is over"}) ==
          "end waits, rank -1 | " +
              failed(0, ErrorKind::refused, -1,
                     "joining: the agent refused this worker: round 1 is over") +
              " | close");
    CHECK(refused.ask(1) == failed(1, ErrorKind::refused, -1,
                                   "get 'k': the agent refused this worker: round 1 is over"));
}

TEST_CASE(
    "a request the agent does not answer fails at its deadline, and a late reply is nobody's") {
    Script link;
    link.join();
    link.ask(1, 10s);
    link.ask(2, 20s);
    CHECK(link.next() == std::optional<Duration>(10s));
    CHECK(link.pass(9s).empty());
    CHECK(link.pass(1s) == failed(1, ErrorKind::agent_lost, -1,
                                  "get 'k': the agent of this node has not answered in time"));
    CHECK(link.hear(StoreValue{1, ""}).empty());
    CHECK(link.hear(StoreValue{2, ""}) == "answer 2");
}

TEST_CASE("what the store refuses becomes an error of its kind") {
    const auto kind_of = [](StoreError error) {
        Script link;
        link.join();
        link.ask(1);
        return link.hear(StoreFailed{1, error, "why"});
    };
    CHECK(kind_of(StoreError::timed_out) == failed(1, ErrorKind::timed_out, -1, "get 'k': why"));
    CHECK(kind_of(StoreError::not_a_number) == failed(1, ErrorKind::store, -1, "get 'k': why"));
    CHECK(kind_of(StoreError::too_large) == failed(1, ErrorKind::store, -1, "get 'k': why"));
    CHECK(kind_of(StoreError::full) == failed(1, ErrorKind::store, -1, "get 'k': why"));
    CHECK(kind_of(StoreError::mismatch) ==
          failed(1, ErrorKind::desynchronised, -1, "get 'k': why"));
}

TEST_CASE("an aborted round ends all requests, open and new; the agent hears of the culprit once") {
    Script link;
    link.join();
    link.ask(1);
    link.ask(2);
    CHECK(link.hear(RoundAborted{3, "rank 3 died"}) ==
          "end waits, rank 3 | send because of 3 | " +
              failed(1, ErrorKind::peer_lost, 3, "get 'k': rank 3 died") + " | " +
              failed(2, ErrorKind::peer_lost, 3, "get 'k': rank 3 died"));
    CHECK(link.ask(4) == failed(4, ErrorKind::peer_lost, 3, "get 'k': rank 3 died"));
    CHECK(link.feed(AgentLink::Blamed{3, "all_reduce"}).empty());
    CHECK(link.hear(RoundAborted{5, "rank 5 died too"}).empty());
    CHECK(link.hear(StopRequested{15, 0}) == "stop 15");
    CHECK(link.feed(AgentLink::Told{NeverRetry{"x"}}) == "send never retry");
}

TEST_CASE("an abort reported by the store waits a moment for the notice that names the rank") {
    Script named;
    named.join();
    named.ask(1);
    CHECK(named.hear(StoreFailed{1, StoreError::aborted, "aborted"}).empty());
    CHECK(named.next() == std::optional<Duration>(AgentLink::cause_patience));
    CHECK(named.hear(RoundAborted{2, "rank 2 died"}) ==
          "end waits, rank 2 | send because of 2 | " +
              failed(1, ErrorKind::peer_lost, 2, "get 'k': rank 2 died"));

    Script unnamed;
    unnamed.join();
    unnamed.ask(1);
    unnamed.hear(StoreFailed{1, StoreError::aborted, "the round ends"});
    CHECK(unnamed.pass(AgentLink::cause_patience) ==
          "send because of -1 | " + failed(1, ErrorKind::peer_lost, -1, "get 'k': the round ends"));
}

TEST_CASE("a closed link ends everything; after an abort the abort stays the explanation") {
    Script lost;
    lost.join();
    lost.ask(1);
    CHECK(lost.feed(AgentLink::Closed{"gone"}) ==
          "end waits, rank -1 | " + failed(1, ErrorKind::agent_lost, -1, "get 'k': gone") +
              " | close");
    CHECK(lost.feed(AgentLink::Closed{"again"}).empty());
    CHECK(lost.feed(AgentLink::Told{NeverRetry{"x"}}).empty());
    CHECK(lost.feed(AgentLink::Stepped{1}).empty());
    CHECK(lost.hear(StopRequested{15, 0}).empty());

    Script aborted;
    aborted.join();
    aborted.hear(RoundAborted{1, "rank 1 died"});
    CHECK(aborted.feed(AgentLink::Closed{"gone"}) == "close");
    CHECK(aborted.ask(1) == failed(1, ErrorKind::peer_lost, 1, "get 'k': rank 1 died"));
}

TEST_CASE("a second welcome is not understood and closes the link") {
    Script link;
    link.join();
    CHECK(link.hear(Welcome{}) == "end waits, rank -1 | close");
}

TEST_CASE("an abort before the welcome fails the hello") {
    Script link;
    link.feed(AgentLink::Asked{AgentLink::hello_id, WorkerHello{}, TimePoint(2h), "joining"});
    CHECK(link.hear(RoundAborted{1, "rank 1 died"}).find("end waits, rank 1 | answer 0 failed") ==
          0);
}

TEST_CASE("steps go out at once, then one in each interval, the newest; the end sends the rest") {
    Script link;
    link.join();
    CHECK(link.feed(AgentLink::Stepped{1}) == "send progress 1");
    CHECK(link.quiet());
    CHECK(link.feed(AgentLink::Stepped{2}).empty());
    CHECK(link.feed(AgentLink::Stepped{3}).empty());
    CHECK(link.next() == std::optional<Duration>(AgentLink::progress_interval));
    CHECK(link.pass(AgentLink::progress_interval) == "send progress 3");
    CHECK(link.pass(AgentLink::progress_interval).empty());
    CHECK_FALSE(link.quiet());
    CHECK_FALSE(link.next());
    link.feed(AgentLink::Stepped{4});
    link.feed(AgentLink::Stepped{5});
    CHECK(link.feed(AgentLink::Ending{}) == "send progress 5");
    CHECK(link.feed(AgentLink::Ending{}).empty());
}
