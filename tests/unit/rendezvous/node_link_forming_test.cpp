// From the first try to the first welcome.

#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/link_story.hpp"

using namespace ddrun;
using namespace ddrun::testing;

TEST_CASE("the first call opens the connection, hello and welcome follow") {
    LinkStory story;
    CHECK(story.passes(0s).lines() == Lines{"open"});
    CHECK(story.opened().lines() == Lines{"hello, heard 0"});
    CHECK(story.welcomed().lines() ==
          Lines{"lease until 12000 ms", "obituary to 10.9.0.1:29400", "heartbeat 1, heard 0"});
    CHECK(story.passes(3s).seen(4, 0).lines() ==
          Lines{"heartbeat 2, heard 0", "heartbeat 3, heard 0", "heartbeat 4, heard 0",
                "lease until 15000 ms"});
}

TEST_CASE("RDZV-1: a node tries until the server is there, with a fresh look-up each time") {
    LinkStory story;
    int opens = 0;
    Lines told;
    for (int tenths = 0; tenths < 400; ++tenths) {
        for (const std::string& line : story.passes(100ms).lines()) {
            if (line != "open") {
                told.push_back(line);
                continue;
            }
            ++opens;
            story.refused();
        }
    }
    CHECK(opens >= 22);  // 0.1 s, 0.2 s, ... 2 s
    CHECK(opens <= 24);
    CHECK(told.size() == 2);  // after 5 s, then every 20 s
    CHECK(
        told.front().starts_with("note: waiting for the rendezvous at 10.9.0.1:29400: Connection "
                                 "refused (6 tries in 5.0 s)"));

    // The server is up: at most the longest backoff later the node is there.
    CHECK(story.passes(2s).lines("open").size() == 1);
    CHECK(story.opened().welcomed().lines("heartbeat") == Lines{"heartbeat 1, heard 0"});
}

TEST_CASE("RDZV-1: backoff goes from 0.1 s to 2 s and is shortened by chance") {
    NodeLinkRules rules = two_nodes();
    rules.jitter_seed = GENERATE(range(1u, 20u));
    LinkStory story(rules);
    (void)story.passes(0s).lines();
    Duration expected = 100ms;
    for (int i = 0; i < 8; ++i) {
        story.refused();
        CHECK(story.passes(expected * 8 / 10 - 1ns).lines("open").empty());
        CHECK(story.passes(expected * 2 / 10 + 1ns).lines("open") == Lines{"open"});
        expected = std::min<Duration>(expected * 2, 2s);
    }
}

TEST_CASE("the join time-out ends the tries with 75 and the last reason") {
    NodeLinkRules rules = two_nodes();
    rules.terms.join_timeout = 8s;
    LinkStory story(rules);
    (void)story.passes(0s).refused().lines();
    (void)story.passes(500ms).lines();
    CHECK(story.passes(10s).lines("verdict") ==
          Lines{"verdict 75: no contact with the rendezvous at 10.9.0.1:29400 within the join "
                "time-out: Connection refused (2 tries in 8.0 s)"});
    CHECK(story.passes(100s).lines().empty());
    CHECK(story.happens(NodeFinished{}).lines().empty());
    CHECK(story.link().finished());
}

TEST_CASE("a connection that is being opened is given up at the join time-out") {
    NodeLinkRules rules = two_nodes();
    rules.terms.join_timeout = 8s;
    LinkStory story(rules);
    const Lines lines = story.passes(8s).lines();
    REQUIRE(lines.size() == 4);
    CHECK(lines[1] ==
          "note: waiting for the rendezvous at 10.9.0.1:29400: no answer (1 try in 5.0 s)");
    CHECK(lines[2] == "close");
}

TEST_CASE("a try that cannot succeed ends at once with its own code") {
    LinkStory story;
    (void)story.passes(0s).lines();
    story.happens(ConnectionFailed{"the server has another secret", true, 77});
    CHECK(story.lines() == Lines{"verdict 77: the server has another secret"});
}

TEST_CASE("a refusal ends the job of this node, with the server's words and code") {
    LinkStory story;
    (void)story.passes(0s).opened().lines();
    story.happens(FromServer(NodeRefused{77, false, "node n1 has nnodes=3, node n0 has nnodes=2"}));
    CHECK(story.lines() ==
          Lines{"close", "verdict 77: node n1 has nnodes=3, node n0 has nnodes=2"});
}

TEST_CASE("a closing previous run is waited for, said once") {
    LinkStory story;
    (void)story.passes(0s).opened().lines();
    const NodeRefused closing{75, true, "the previous run of job j is still closing"};
    CHECK(story.happens(FromServer(closing)).lines() ==
          Lines{"note: the previous run of job j is still closing; trying again", "close"});
    CHECK(story.passes(100ms).lines() == Lines{"open"});
    CHECK(story.opened().happens(FromServer(closing)).lines() == Lines{"hello, heard 0", "close"});
    CHECK(story.passes(200ms).opened().welcomed().lines("heartbeat").size() == 1);
}

TEST_CASE("a server that never answers the hello is left after a lease") {
    LinkStory story;
    (void)story.passes(0s).opened().lines();
    CHECK(story.passes(15s).lines("close") == Lines{"close"});
    CHECK(story.passes(100ms).lines() == Lines{"open"});
}

TEST_CASE("a server of an unknown version is left, naming both") {
    LinkStory story;
    (void)story.passes(0s).opened().lines();
    story.happens(FromServer(NodeWelcome{9, "job1", 0, false}));
    CHECK(story.lines() == Lines{"close",
                                 "verdict 77: the rendezvous at 10.9.0.1:29400 speaks version 9 of "
                                 "the protocol, this ddrun speaks 1"});
}

TEST_CASE("what is submitted before the welcome is sent with it; a join travels in the hello") {
    LinkStory story;
    (void)story.passes(0s).lines();
    CHECK(story.says(Join{}).says(FailureReport{}).lines().empty());
    CHECK(story.opened().welcomed().lines("payload") == Lines{"payload 1"});
}

TEST_CASE("RDZV-6: whoever is told to stop while waiting is closed at once, in every phase") {
    LinkStory story;
    const int phase = GENERATE(0, 1, 2, 3);
    if (phase >= 1) story.passes(0s);
    if (phase == 2) story.refused();
    if (phase == 3) story.opened();
    (void)story.lines();
    CHECK(story.says(Leave{}).happens(NodeFinished{}).lines("close").size() ==
          (phase == 0 || phase == 1 || phase == 3 ? 1 : 0));
    CHECK(story.link().finished());
    CHECK(story.passes(100s).lines().empty());
}

TEST_CASE("RDZV-6: a welcomed node says that it leaves, then goodbye, and closes once heard") {
    LinkStory story;
    (void)story.passes(0s).opened().welcomed().seen(1, 0).lines();
    CHECK(story.says(Leave{}).lines() == Lines{"payload 1"});
    CHECK(story.happens(NodeFinished{}).lines() == Lines{"heartbeat 2, heard 0", "goodbye"});
    CHECK_FALSE(story.link().finished());
    CHECK(story.seen(2, 0).lines() == Lines{"close"});
    CHECK(story.link().finished());
}

TEST_CASE("RDZV-6: a server that does not answer a goodbye holds nobody for longer than 1 s") {
    LinkStory story;
    (void)story.passes(0s).opened().welcomed().happens(NodeFinished{}).lines();
    CHECK(story.passes(1s).lines() == Lines{"close"});
    CHECK(story.link().finished());
}

// --- what is offered ----------------------------------------------------------------------------

namespace {

Join offered(LinkStory& story) {
    return std::get<NodeHello>(std::get<SendToServer>(story.actions().back()).message).offer;
}

}  // namespace

TEST_CASE("ADDR-1: the offered address is that of the connection, unless one was given") {
    NodeLinkRules rules = two_nodes();
    LinkStory story(rules);
    story.passes(0s).opened();
    CHECK(offered(story).address == "10.9.0.2");
    CHECK_FALSE(offered(story).hosts_endpoint);

    rules.offer.address = "192.168.7.7";
    LinkStory given(rules);
    given.passes(0s).happens(ConnectionOpened{"10.9.0.2", "10.9.0.1:29400", true});
    CHECK(offered(given).address == "192.168.7.7");
    CHECK(offered(given).hosts_endpoint);
}

TEST_CASE("ADDR-1: loopback is never offered to a server elsewhere") {
    LinkStory story;
    (void)story.passes(0s).lines();
    story.happens(ConnectionOpened{"127.0.0.1", "10.9.0.1:29400", false});
    const Lines lines = story.lines();
    REQUIRE(lines.size() == 2);
    CHECK(lines[1].starts_with("verdict 75: the only address of this node that reaches"));
    CHECK(lines[1].find("--local-addr") != std::string::npos);
}

TEST_CASE("ADDR-8: a loopback endpoint is named within 10 s while the group does not form") {
    NodeLinkRules rules = two_nodes();
    rules.endpoint = "localhost:29400";
    LinkStory story(rules);
    story.passes(0s).happens(ConnectionOpened{"::1", "[::1]:29400", true}).welcomed();
    (void)story.lines();
    for (std::uint64_t beat = 1; beat < 5; ++beat) story.seen(beat, 0).passes(1s);
    CHECK(story.lines("warning").empty());
    CHECK(story.passes(1s).lines("warning") ==
          Lines{"warning: endpoint localhost:29400 is loopback: this node sees only itself and "
                "others on this machine, and 2 nodes are needed"});
}
