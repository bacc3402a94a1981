// Exactly once and in order, whatever breaks.

#include "tests/support/catch.hpp"
#include "tests/support/seeds.hpp"
#include "tests/unit/rendezvous/link_story.hpp"
#include "tests/unit/rendezvous/tiny_server.hpp"

using namespace ddrun;
using namespace ddrun::testing;

TEST_CASE("RDZV-10: what the server did not hear is sent again, with the same numbers") {
    LinkStory story;
    story.in_round_one();
    CHECK(story.says(StepCommitted{1}).says(NodeDone{1}).lines() ==
          Lines{"payload 1", "payload 2"});
    (void)story.happens(ConnectionLost{"reset"}).lines();
    CHECK(story.says(Leave{}).lines().empty());
    CHECK(story.passes(100ms).opened().welcomed(1).lines("payload") ==
          Lines{"payload 2", "payload 3"});
}

TEST_CASE("RDZV-10: a payload of the server that comes twice is delivered once") {
    LinkStory story;
    story.in_round_one();
    const FromServerPayload second{2, 0, FromCoordinator(Notice{"n0 is suspect", true})};
    CHECK(story.happens(FromServer(second)).lines() == Lines{"warning: n0 is suspect"});
    CHECK(story.happens(FromServer(second)).lines().empty());
    CHECK(story.happens(FromServer(FromServerPayload{4, 0, FromCoordinator(Parked{})}))
              .lines()
              .empty());
}

TEST_CASE("RDZV-10: an empty server is told the store, then all that may be lost, from 1 on") {
    LinkStory story;
    story.in_round_one();
    story.asks(1, 3, StoreAdd{7, "counter", 1});
    story.says(FailureReport{1, {}});
    story.asks(1, 3, StoreGet{8, "never set", 60'000});
    story.job_says(StoreAnswered{1, 3, 1, true, StoreNumber{7, 1}});
    story.seen(1, 1, 3);  // all three were heard
    story.says(StepCommitted{1});
    story.happens(ConnectionLost{"reset"}).passes(20s).opened();
    (void)story.lines();
    CHECK(story.welcomed(0, true).lines() == Lines{"obituary to 10.9.0.1:29400",
                                                   "present 1 keys, last", "payload 1", "payload 2",
                                                   "payload 3", "heartbeat 2, heard 0"});
    const auto& sent = story.actions();
    const auto payload = [&](std::size_t index) {
        return std::get<FromNodePayload>(std::get<SendToServer>(sent[index]).message).payload;
    };
    CHECK(payload(2) == ToJob(ToCoordinator(FailureReport{1, {}})));
    CHECK(payload(3) == ToJob(StoreAsked{1, 3, StoreGet{8, "never set", 40'000}}));
    CHECK(payload(4) == ToJob(ToCoordinator(StepCommitted{1})));

    // The server counts from 1 again too.
    CHECK(story.numbers_start_again().job_says(FromCoordinator(Notice{"hello", false})).lines() ==
          Lines{"note: hello"});
}

TEST_CASE("RDZV-10: what was settled is not told again") {
    LinkStory story;
    story.in_round_one();
    story.says(FailureReport{1, {}}).asks(1, 0, StoreGet{1, "k", 1000}).seen(1, 1, 2);
    StopRound stop;
    stop.round = 1;
    story.job_says(FromCoordinator(stop));
    story.happens(Submit{StoreForgotten{1, 0}}).seen(1, 1, 3);
    story.happens(ConnectionLost{"reset"}).passes(100ms).opened();
    (void)story.lines();
    CHECK(story.welcomed(0, true).lines("payload").empty());
}

TEST_CASE("RDZV-10: the hello says where the node stands") {
    LinkStory story;
    story.in_round_one();
    story.says(StepCommitted{1}).says(NodeDone{1});
    StopRound stop;
    stop.round = 1;
    stop.restarts_used = 2;
    story.job_says(FromCoordinator(stop)).says(RoundGone{1});
    story.happens(ConnectionLost{"reset"}).passes(100ms).opened();
    const auto hello = std::get<NodeHello>(std::get<SendToServer>(story.actions().back()).message);
    CHECK(hello.heard == 2);
    CHECK(hello.standing.grant.round == 1);
    CHECK(hello.standing.done);
    CHECK(hello.standing.gone);
    CHECK(hello.standing.healthy);
    CHECK(hello.standing.restarts_used == 2);
    CHECK(hello.standing.stop == stop);
    CHECK_FALSE(hello.standing.verdict.has_value());
}

TEST_CASE("waits of a round that is stopped here end at once, and later ones too") {
    LinkStory story;
    story.in_round_one();
    story.asks(1, 5, StoreGet{1, "k", 1000}).asks(1, 4, StoreBarrier{1, "b", 0, 1000});
    (void)story.lines();
    CHECK(story.happens(AbortWaits{1, "rank 2 died"}).lines() ==
          Lines{"answer to rank 5 (failed)", "answer to rank 4 (failed)"});
    CHECK(story.asks(1, 4, StoreGet{2, "k", 0}).lines() == Lines{"answer to rank 4 (failed)"});
    // The server's own answers have nobody left who waits.
    CHECK(story.job_says(StoreAnswered{1, 5, 0, false, StoreFailed{1, StoreError::aborted, ""}})
              .lines()
              .empty());
    (void)story.says(RoundGone{1}).granted(2).lines();
    CHECK(story.asks(1, 4, StoreGet{3, "k", 0}).lines() == Lines{"answer to rank 4 (failed)"});
    CHECK(story.asks(2, 4, StoreGet{3, "k", 0}).lines() == Lines{"payload 4"});
}

// --- any cuts, any order ------------------------------------------------------------------------

namespace {

// A NodeLink and a TinyServer with a connection between them that breaks by chance.
class Scene {
  public:
    explicit Scene(std::uint64_t seed) : dice_(seed), link_(patient(seed)), server_(to_node_) {
        take(link_.advance_to(now_));
    }

    void something_happens(bool with_crashes) {
        switch (dice_.number(0, with_crashes ? 14 : 13)) {
            case 0:
                return cut();
            case 1:
                return pass(std::chrono::milliseconds(dice_.number(0, 2000)));
            case 2:
                return node_says(StepCommitted{++steps_said_});
            case 3:
                return server_.tell(FromCoordinator(Notice{std::to_string(++notices_said_), true}));
            case 4:
                return node_adds();
            case 5:
                return server_.work();
            case 14:
                return crash();
            default:
                return dice_.one_in(2) ? to_server() : to_node();
        }
    }
    // No more faults: everything arrives.
    void settle() {
        for (int i = 0; i < 40; ++i) {
            while (can_move()) {
                to_server();
                to_node();
                server_.work();
            }
            pass(500ms);
        }
    }

    [[nodiscard]] int steps_said() const { return steps_said_; }
    [[nodiscard]] int notices_said() const { return notices_said_; }
    [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }
    [[nodiscard]] const std::map<std::uint64_t, int>& answers() const { return answers_; }
    [[nodiscard]] std::uint64_t adds() const { return adds_; }
    [[nodiscard]] const TinyServer& server() const { return server_; }

  private:
    static NodeLinkRules patient(std::uint64_t seed) {
        NodeLinkRules rules = two_nodes();
        rules.terms.lease = 1000h;  // the fence is another story
        rules.terms.join_timeout = 1000h;
        rules.rendezvous_grace = 1000h;
        rules.progress_every = 1000h;
        rules.jitter_seed = seed;
        return rules;
    }

    void node_says(ToCoordinator message) { step(Submit{std::move(message)}); }
    void node_adds() {
        if (round_ == 0) return;
        const std::string key = dice_.one_in(2) ? "a" : "b";
        step(Submit{StoreAsked{round_, 0, StoreAdd{++adds_, key, 1}}});
    }
    void to_server() {
        if (!to_server_.empty()) server_.hear(to_server_.take());
    }
    void to_node() {
        if (!to_node_.empty()) step(to_node_.take());
    }
    [[nodiscard]] bool can_move() const { return !to_server_.empty() || !to_node_.empty(); }
    void pass(Duration time) {
        now_ += time;
        take(link_.advance_to(now_));
    }
    void cut() {
        if (!open_) return;
        hang_up();
        step(ConnectionLost{"cut"});
    }
    void crash() {
        server_.crash();
        granted_ = false;
        cut();
    }
    void hang_up() {
        open_ = false;
        to_server_.cut();
        to_node_.cut();
        server_.connection_ends();
    }
    void connect() {
        if (dice_.one_in(3)) return step(ConnectionFailed{"refused", false, 0});
        open_ = true;
        step(ConnectionOpened{"10.9.0.2", "10.9.0.1:1", false});
    }

    void step(NodeLinkEvent event) { take(link_.step(std::move(event), now_)); }
    void take(NodeLink::Actions actions) {
        bool opens = false;
        for (auto& action : actions) {
            if (std::holds_alternative<OpenConnection>(action)) opens = true;
            if (std::holds_alternative<CloseConnection>(action)) hang_up();
            if (auto* send = std::get_if<SendToServer>(&action)) to_server_.send(send->message);
            if (auto* deliver = std::get_if<Deliver>(&action)) note(deliver->payload);
        }
        if (opens) connect();
        if (round_ == 0 && server_.presented() && !std::exchange(granted_, true))
            server_.tell(FromCoordinator(RoundGranted{}));
    }
    void note(const FromJob& payload) {
        if (payload == FromJob(FromCoordinator(RoundGranted{}))) {
            round_ = 1;
        } else if (const auto* answer = std::get_if<StoreAnswered>(&payload)) {
            if (const auto* sum = std::get_if<StoreNumber>(&answer->reply)) ++answers_[sum->id];
        } else if (const auto* notice = std::get_if<Notice>(&std::get<FromCoordinator>(payload))) {
            if (notice->words.find(' ') == std::string::npos) notices_.push_back(notice->words);
        }
    }

    Dice dice_;
    TimePoint now_ = TimePoint{} + 1h;
    NodeLink link_;
    Pipe<FromNode> to_server_;
    Pipe<FromServer> to_node_;
    TinyServer server_;
    bool open_ = false;
    bool granted_ = false;
    int round_ = 0;  // once the node knows
    int steps_said_ = 0;
    int notices_said_ = 0;
    std::uint64_t adds_ = 0;
    std::vector<std::string> notices_;
    std::map<std::uint64_t, int> answers_;
};

void check_answered_once(const Scene& scene) {
    for (std::uint64_t id = 1; id <= scene.adds(); ++id) {
        INFO("add " << id);
        REQUIRE(scene.answers().contains(id));
        CHECK(scene.answers().at(id) == 1);
    }
}

}  // namespace

TEST_CASE("RDZV-10: every payload arrives once and in order, in both directions, whatever is cut") {
    const auto seed = GENERATE(range(1u, 300u));
    INFO("seed " << seed);
    Scene scene(seed);
    for (int i = 0; i < 300; ++i) scene.something_happens(false);
    scene.settle();

    std::vector<int> steps;
    for (int i = 1; i <= scene.steps_said(); ++i) steps.push_back(i);
    CHECK(scene.server().steps() == steps);
    std::vector<std::string> notices;
    for (int i = 1; i <= scene.notices_said(); ++i) notices.push_back(std::to_string(i));
    CHECK(scene.notices() == notices);
    check_answered_once(scene);
}

TEST_CASE("RDZV-10: a server that loses its memory again and again loses nothing of the store") {
    const auto seed = GENERATE(range(1u, 300u));
    INFO("seed " << seed);
    Scene scene(seed);
    for (int i = 0; i < 300; ++i) scene.something_happens(true);
    scene.settle();

    CHECK(scene.server().presented());
    std::int64_t sum = 0;
    for (const auto& [key, value] : scene.server().counters()) sum += value;
    CHECK(sum == static_cast<std::int64_t>(scene.adds()));
    check_answered_once(scene);
}
