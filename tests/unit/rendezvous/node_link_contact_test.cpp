// From a grant on: lost contact, lease, fence, grace.

#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/link_story.hpp"

using namespace ddrun;
using namespace ddrun::testing;

TEST_CASE("RDZV-10: a server that restarts within the lease costs two lines, no worker notices") {
    LinkStory story;
    story.in_round_one();
    CHECK(story.happens(ConnectionLost{"connection reset"}).lines() ==
          Lines{"warning: lost contact with the rendezvous at 10.9.0.1:29400: connection reset; "
                "workers keep running; trying again for 60 s"});
    CHECK(story.passes(100ms).refused().passes(200ms).lines() == Lines{"open", "open"});
    CHECK(story.opened().welcomed().seen(2, 1).lines() ==
          Lines{"hello again to job1, heard 1", "obituary to 10.9.0.1:29400",
                "heartbeat 2, heard 1", "lease until 12300 ms",
                "note: contact with the rendezvous at 10.9.0.1:29400 is back after 0.3 s"});
}

TEST_CASE("RDZV-7: workers freeze before the lease ends and thaw when the round is confirmed") {
    LinkStory story;
    story.in_round_one().happens(ConnectionLost{"connection reset"});
    (void)story.passes(100ms).lines();  // it opens, and no answer comes
    CHECK(story.passes(11s + 899ms).lines("freeze").empty());
    CHECK(story.passes(1ms).lines("freeze") == Lines{"freeze"});
    CHECK(story.passes(20s).lines("freeze").empty());

    // A welcome is not enough: it does not name the round.
    CHECK(story.opened().welcomed().lines("thaw").empty());
    CHECK(story.seen(2, 1).lines() ==
          Lines{"lease until 44000 ms",
                "note: contact with the rendezvous at 10.9.0.1:29400 is back after 32 s", "thaw"});
    // And so again.
    (void)story.happens(ConnectionLost{"connection reset"}).lines();
    CHECK(story.passes(12s).lines("freeze") == Lines{"freeze"});
}

TEST_CASE("a server that still recovers the job thaws nobody: others may have gone on") {
    LinkStory story;
    story.in_round_one().happens(ConnectionLost{"connection reset"}).passes(30s).opened();
    (void)story.welcomed(0, true).lines();
    CHECK(story.seen(2, round_not_known).lines("thaw").empty());
    (void)story.passes(1s).lines();
    SECTION("nobody did") {
        CHECK(story.seen(3, 1).lines("thaw") == Lines{"thaw"});
    }
    SECTION("somebody did") {
        CHECK(story.seen(3, 2).lines("kill") == Lines{"kill"});
    }
}

TEST_CASE("RDZV-7: a silent server is left after 4 s and tried again, before it gives us up") {
    LinkStory story;
    story.in_round_one();
    const Lines lines = story.passes(4s).lines();
    REQUIRE(lines.size() == 5);
    CHECK(lines[2] == "heartbeat 4, heard 1");
    CHECK(lines[3] == "close");
    CHECK(lines[4] ==
          "warning: lost contact with the rendezvous at 10.9.0.1:29400: no answer for 4.0 s; "
          "workers keep running; trying again for 60 s");
    CHECK(story.passes(100ms).lines() == Lines{"open"});
}

TEST_CASE("a silent server is left before the workers freeze, whatever the lease") {
    NodeLinkRules rules = two_nodes();
    const auto [lease, heartbeat] =
        GENERATE(std::pair<Duration, Duration>{3s, 1s}, std::pair<Duration, Duration>{2s, 200ms},
                 std::pair<Duration, Duration>{15s, 1s}, std::pair<Duration, Duration>{10min, 5s});
    rules.terms.lease = lease;
    rules.terms.heartbeat = heartbeat;
    rules.rendezvous_grace = 1h;
    LinkStory story(rules);
    story.in_round_one();
    const Duration freezes = lease - lease_margin(lease);
    CHECK(story.passes(freezes - 1ns).lines("close").size() == 1);
    CHECK(story.passes(1ns).lines("freeze").size() == 1);
}

TEST_CASE("a large message on its way is no silence, and no lease either") {
    LinkStory story;
    story.in_round_one();
    for (int second = 0; second < 11; ++second) {
        story.passes(1s).happens(ConnectionMoved{});
    }
    CHECK(story.lines("close").empty());
    CHECK(story.passes(1s).lines("freeze") == Lines{"freeze"});
}

TEST_CASE("RDZV-7: the lease counts from when the acknowledged heartbeat was sent") {
    LinkStory story;
    story.in_round_one();
    // Heartbeats 2 to 5, at 1 s to 4 s; all the while something large is on its way.
    (void)story.passes(2s).happens(ConnectionMoved{}).passes(2s).lines();
    CHECK(story.seen(3, 1).lines() == Lines{"lease until 14000 ms"});
    CHECK(story.seen(3, 1).seen(2, 1).lines().empty());  // said before
    CHECK(story.seen(5, 1).lines() == Lines{"lease until 16000 ms"});
}

TEST_CASE("RDZV-7: an agent that was stopped freezes first and then learns its fate") {
    LinkStory story;
    story.in_round_one();
    (void)story.passes(1s).lines();  // heartbeat 2
    // Its answer lay in the socket while the agent was stopped: the lease it gives is over.
    CHECK(story.stalls(60s).seen(2, 1).lines() ==
          Lines{"freeze", "heartbeat 3, heard 1", "lease until 13000 ms"});
    SECTION("the round goes on") {
        CHECK(story.seen(3, 1).lines() == Lines{"lease until 73000 ms", "thaw"});
    }
    SECTION("it went on without this node") {
        CHECK(story.seen(3, 2).lines() == Lines{"lease until 73000 ms", "kill"});
        CHECK(story.passes(1s).seen(4, 2).lines("kill").empty());
    }
    SECTION("the server closed the connection and expels it") {
        story.happens(ConnectionLost{"closed"}).passes(100ms).opened();
        (void)story.lines();
        story.happens(FromServer(NodeRefused{75, false, "node n1 was lost 40 s ago"}));
        CHECK(story.lines() == Lines{"kill", "close", "verdict 75: node n1 was lost 40 s ago"});
    }
}

TEST_CASE("RDZV-10: a server that does not come back within the grace ends this node with 75") {
    LinkStory story;
    story.in_round_one().happens(ConnectionLost{"connection reset"});
    (void)story.lines();
    Lines lines;
    while (lines.empty() || !lines.back().starts_with("verdict")) {
        for (const std::string& line : story.passes(100ms).lines()) {
            if (line == "open") {
                story.refused();
            } else {
                lines.push_back(line);
            }
        }
    }
    CHECK(lines == Lines{"freeze",
                         "warning: still no contact with the rendezvous at 10.9.0.1:29400: "
                         "Connection refused (14 tries in 20 s)",
                         "warning: still no contact with the rendezvous at 10.9.0.1:29400: "
                         "Connection refused (24 tries in 40 s)",
                         "kill",
                         "verdict 75: rendezvous host 10.9.0.1:29400 lost for 60 s: Connection "
                         "refused"});
    CHECK(story.passes(100s).lines().empty());
}

TEST_CASE("RDZV-10: the grace counts from the loss, even if a server comes and goes") {
    LinkStory story;
    story.in_round_one().happens(ConnectionLost{"reset"});
    Lines verdicts;
    for (int tries = 0; tries < 100 && verdicts.empty(); ++tries) {
        (void)story.lines();
        verdicts =
            story.passes(2s).opened().welcomed().happens(ConnectionLost{"reset"}).lines("verdict");
    }
    CHECK(verdicts == Lines{"verdict 75: rendezvous host 10.9.0.1:29400 lost for 60 s: reset"});
}

TEST_CASE("RDZV-10: a server of another run of the job is no server of this node") {
    LinkStory story;
    story.in_round_one().happens(ConnectionLost{"reset"}).passes(100ms).opened();
    (void)story.lines();
    story.happens(FromServer(NodeWelcome{1, "job2", 0, false}));
    CHECK(story.lines() ==
          Lines{"kill", "close",
                "verdict 75: the rendezvous at 10.9.0.1:29400 serves another run of this job"});
}

TEST_CASE("before its first round a node may be welcomed to the run that its server met later") {
    LinkStory story;
    story.passes(0s).opened().welcomed().happens(ConnectionLost{"closed"}).passes(100ms).opened();
    (void)story.lines();
    story.happens(FromServer(NodeWelcome{1, "job2", 0, false}));
    CHECK(story.lines("verdict").empty());
    story.happens(ConnectionLost{"closed"}).passes(1s).opened();
    CHECK(story.lines("hello") == Lines{"hello again to job2, heard 0"});
}

TEST_CASE(
    "RDZV-7: a grant that was read after the lease had ended waits until the job is known to "
    "stand") {
    LinkStory story;
    story.in_round_one().says(RoundGone{1}).passes(1s);
    (void)story.lines();
    CHECK(story.stalls(60s).granted(2).lines("round").empty());
    CHECK(story.seen(2, 2).lines("round").empty());  // of before
    SECTION("it still counts on this node") {
        CHECK(story.seen(3, 2).lines("round") == Lines{"round 2"});
    }
    SECTION("it went on without this node") {
        story.happens(ConnectionLost{"closed"}).passes(100ms).opened();
        story.happens(FromServer(NodeRefused{75, false, "node n1 was lost 40 s ago"}));
        CHECK(story.lines("round").empty());
    }
}

TEST_CASE("a node without processes is never fenced") {
    LinkStory story;
    story.in_round_one();
    SECTION("its workers all exited 0") {
        story.says(NodeDone{1});
    }
    SECTION("its round is gone") {
        story.says(RoundGone{1});
    }
    story.happens(ConnectionLost{"reset"});
    CHECK(story.lines("warning") ==
          Lines{"warning: lost contact with the rendezvous at 10.9.0.1:29400: reset; trying again "
                "for 60 s"});
    const Lines lines = story.passes(61s).lines();
    CHECK(lines.back().starts_with("verdict 75: rendezvous host 10.9.0.1:29400 lost for 60 s"));
    for (const std::string& line : lines) CHECK(line != "freeze");
    for (const std::string& line : lines) CHECK(line != "kill");
}

TEST_CASE("RDZV-13: only how much time passed counts, never what the clock shows") {
    NodeLink near(two_nodes());
    NodeLink far(two_nodes());
    const auto story = [](NodeLink& link, TimePoint start) {
        Lines lines;
        const auto take = [&](const NodeLink::Actions& actions) {
            for (const auto& action : actions) lines.push_back(in_words(action, start));
        };
        take(link.advance_to(start));
        take(link.step(ConnectionOpened{"10.9.0.2", "10.9.0.1:1", false}, start));
        take(link.step(FromServer(NodeWelcome{1, "job1", 0, false}), start));
        RoundGranted grant;
        take(link.step(FromServer(FromServerPayload{1, 0, FromCoordinator(grant)}), start));
        for (int second = 1; second < 80; ++second)
            take(link.advance_to(start + std::chrono::seconds(second)));
        return lines;
    };
    CHECK(story(near, TimePoint{} + 1s) == story(far, TimePoint{} + 900000h));
}

// --- the end ------------------------------------------------------------------------------------

TEST_CASE("a verdict is acknowledged at once, and the lease ends with the job") {
    LinkStory story;
    story.in_round_one();
    CHECK(story.job_says(FromCoordinator(Verdict{})).lines() ==
          Lines{"no lease", "verdict 0", "heartbeat 2, heard 2"});
    // The server is gone once all have heard it: that is no loss.
    CHECK(story.happens(ConnectionLost{"closed"}).lines().empty());
    CHECK(story.passes(100s).lines().empty());
    CHECK(story.happens(NodeFinished{}).lines().empty());
    CHECK(story.link().finished());
}

TEST_CASE("frozen workers are not woken by a verdict: the job may have gone on without this node") {
    LinkStory story;
    story.in_round_one().happens(ConnectionLost{"reset"}).passes(13s).opened().welcomed();
    (void)story.lines();
    const auto lines = story.job_says(FromCoordinator(Verdict{})).lines();
    REQUIRE(lines.size() >= 3);
    CHECK(lines[0].find("kill") == 0);
    CHECK(lines[1] == "no lease");
    CHECK(lines[2] == "verdict 0");
}

TEST_CASE("a node that leaves a job that goes on is fenced until its processes are gone") {
    LinkStory story;
    story.in_round_one().says(Leave{});
    (void)story.lines();
    CHECK(story.job_says(FromCoordinator(Verdict{})).lines() ==
          Lines{"verdict 0", "heartbeat 2, heard 2"});
    (void)story.happens(ConnectionLost{"reset"}).lines();
    CHECK(story.passes(12s).lines("freeze") == Lines{"freeze"});
}

TEST_CASE("a node that could not kill its processes closes without a goodbye") {
    LinkStory story;
    story.in_round_one();
    CHECK(story.happens(NodeFinished{true}).lines() == Lines{"heartbeat 2, heard 1"});
    CHECK(story.happens(ConnectionLost{"closed"}).lines().empty());
    CHECK(story.link().finished());
}
