// Group C, first half: forming the group.
#include "tests/support/catch.hpp"
#include "tests/support/cluster.hpp"

#include <signal.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>

using namespace ddrun::test;

namespace {

const std::string tell_ranks =
    "echo rank $RANK of $WORLD_SIZE local $LOCAL_RANK of $LOCAL_WORLD_SIZE group $GROUP_RANK";

std::set<std::string> lines_with(const Cluster& cluster, const std::string& part) {
    std::set<std::string> found;
    for (const auto& job : cluster.jobs) {
        if (!job) continue;
        for (const std::string& line : lines_of(job->output())) {
            if (has(line, part)) found.insert(line.substr(line.find(part)));
        }
    }
    return found;
}

}  // namespace

TEST_CASE("4 nodes of 2 workers: ranks are contiguous, master is the endpoint's host") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(4);
    cluster.flags = {"--nnodes=4", "--nproc-per-node=2"};
    for (const int host : {2, 3, 1, 0}) cluster.start(host, tell_ranks + "; echo at $MASTER_ADDR");
    CHECK(cluster.all_end_with(0, 10s));
    INFO(cluster.said());
    std::set<std::string> expected;
    for (int rank = 0; rank < 8; ++rank) {
        expected.insert("rank " + std::to_string(rank) + " of 8 local " + std::to_string(rank % 2) +
                        " of 2 group " + std::to_string(rank / 2));
    }
    CHECK(lines_with(cluster, "rank ") == expected);
    CHECK(lines_with(cluster, "at ") == std::set<std::string>{"at 10.9.0.1"});
    CHECK(has(cluster.on(0).output(), "rank 0 of 8"));  // RDZV-14
}

TEST_CASE("8 nodes form within 5 s and end together") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(8);
    cluster.flags = {"--nnodes=8"};
    for (int host = 7; host >= 0; --host) cluster.start(host, tell_ranks);
    CHECK(cluster.all_end_with(0, 10s));
    INFO(cluster.said());
    CHECK(lines_with(cluster, "rank ").size() == 8);
    CHECK(cluster.on(0).lifetime() < 5s);
}

TEST_CASE("different numbers of workers per node are one world") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    cluster.start(0, tell_ranks, {"--nproc-per-node=2"});
    cluster.start(1, tell_ranks, {"--nproc-per-node=3"});
    CHECK(cluster.all_end_with(0, 10s));
    INFO(cluster.said());
    CHECK(lines_with(cluster, "rank ").count("rank 4 of 5 local 2 of 3 group 1") == 1);
}

TEST_CASE("--node-rank is kept, whoever comes first") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = {"--nnodes=3"};
    for (const int host : {1, 0, 2}) {
        cluster.start(host, tell_ranks, {"--node-rank=" + std::to_string(2 - host)});
    }
    CHECK(cluster.all_end_with(0, 10s));
    INFO(cluster.said());
    CHECK(has(cluster.on(2).output(), "rank 0 of 3"));
    CHECK(has(cluster.on(0).output(), "rank 2 of 3"));
}

TEST_CASE("a static launch: nodes meet at the master's host, MASTER_PORT is the workers'") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    const std::string listen =
        "echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT; sleep 0.2; exec 3<>"
        "/dev/tcp/$MASTER_ADDR/$MASTER_PORT 2>/dev/null && echo somebody listens; true";
    const auto start = [&](int host, int node_rank) {
        Invocation node = ddrun_with({"--nnodes=2", "--node-rank=" + std::to_string(node_rank),
                                      "--master_addr=" + Hosts::address(0), "--master_port=29500",
                                      "bash", "-c", listen});
        node.env["DDRUN_SECRET"] = cluster.secret;
        return Program(cluster.hosts.on(host, std::move(node)));
    };
    for (const int second_host : {1, 0}) {  // also two nodes on one machine, the second one first
        Program second = start(second_host, 1);
        Program first = start(0, 0);
        CHECK(first.wait(8s) == 0);
        CHECK(second.wait(8s) == 0);
        INFO(first.errors() << second.errors());
        CHECK(has(first.output(), "0 of 2 at 10.9.0.1:29500"));
        CHECK(has(second.output(), "1 of 2 at 10.9.0.1:29500"));
        CHECK_FALSE(has(first.output() + second.output(), "somebody listens"));
    }
}

TEST_CASE("RDZV-1: a name that is not there yet, then an endpoint that is not there yet") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    cluster.endpoint = "late.example:29400";
    cluster.hosts.write_hosts_file(0, "10.9.0.1 late.example\n");
    cluster.hosts.write_hosts_file(1, "127.0.0.1 localhost\n");
    cluster.hosts.command(1, "mount --bind /dev/null /etc/resolv.conf");
    auto& early = cluster.start(1, tell_ranks);
    CHECK_FALSE(early.wait(1500ms));
    cluster.hosts.write_hosts_file(1, "10.9.0.1 late.example\n");
    CHECK_FALSE(early.wait(1500ms));
    cluster.start(0, tell_ranks);
    CHECK(cluster.all_end_with(0, 5s));
    INFO(cluster.said());
    CHECK(lines_with(cluster, "rank ").size() == 2);
}

TEST_CASE("RDZV-2: mismatched sizes are refused on all nodes, naming values and nodes") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.start(0, "true", {"--nnodes=2"});
    REQUIRE(cluster.on(0).wait_until([] { return true; }, 1s));
    SECTION("nnodes") {
        cluster.start(1, "true", {"--nnodes=3"});
        CHECK(cluster.all_end_with(77, 8s));
        INFO(cluster.said());
        for (int host = 0; host < 2; ++host) {
            CHECK(has(cluster.on(host).errors(), "nnodes=3"));
            CHECK(has(cluster.on(host).errors(), "nnodes=2"));
            CHECK(has(cluster.on(host).errors(), "n0"));
            CHECK(has(cluster.on(host).errors(), "n1"));
        }
    }
    SECTION("max-restarts") {
        cluster.start(1, "true", {"--nnodes=2", "--max-restarts=3"});
        CHECK(cluster.all_end_with(77, 8s));
        INFO(cluster.said());
        for (int host = 0; host < 2; ++host) {
            CHECK(has(cluster.on(host).errors(), "max-restarts"));
        }
    }
}

TEST_CASE("RDZV-2: another command is worth a warning") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    cluster.start(0, "echo a");
    cluster.start(1, "echo b");
    CHECK(cluster.all_end_with(0, 8s));
    INFO(cluster.said());
    CHECK((has(cluster.on(0).errors(), "command") || has(cluster.on(1).errors(), "command")));
}

TEST_CASE("RDZV-3: the same id again and again, never the old run") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    for (int run = 0; run < 10; ++run) {
        const std::string script = "echo run " + std::to_string(run) + " $WORLD_SIZE";
        for (int host = 0; host < 2; ++host) cluster.start(host, script);
        CHECK(cluster.all_end_with(0, 8s));
        INFO(cluster.said());
        CHECK(lines_with(cluster, "run ").size() == 1);
    }
}

TEST_CASE("RDZV-3: a node of the next run waits for the last one to close") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    Program& last = cluster.start(0, "[ $RANK = 1 ] || sleep 2");
    cluster.start(1, "[ $RANK = 1 ] || sleep 2");
    CHECK_FALSE(last.wait(1s));
    Program next(cluster.hosts.on(1, cluster.invocation({}, {"sh", "-c", tell_ranks})));
    CHECK(cluster.all_end_with(0, 6s));
    Program host(cluster.hosts.on(0, cluster.invocation({}, {"sh", "-c", tell_ranks})));
    CHECK(next.wait(8s) == 0);
    CHECK(host.wait(8s) == 0);
    INFO(next.errors());
    CHECK(has(next.output(), "of 2"));
}

TEST_CASE("RDZV-4: a node rank is held once, and free again when its holder is gone") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = {"--nnodes=2"};
    cluster.start(0, "sleep 3", {"--node-rank=0"});
    REQUIRE_FALSE(cluster.on(0).wait(500ms));
    cluster.start(2, "true", {"--node-rank=0"});
    CHECK(cluster.code(2, 5s) == 75);
    INFO(cluster.said());
    CHECK(has(cluster.on(2).errors(), "node rank 0"));
    CHECK(has(cluster.on(2).errors(), "n0"));
    cluster.start(1, "true", {"--node-rank=1"});
    CHECK(cluster.code(1, 10s) == 0);
    CHECK(cluster.code(0, 10s) == 0);
}

TEST_CASE("RDZV-4: one node too many is told that the group is complete") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = {"--nnodes=2"};
    for (int host = 0; host < 2; ++host) cluster.start(host, "echo up; sleep 3");
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 5s));
    cluster.start(2, "true");
    CHECK(cluster.code(2, 5s) != 0);
    INFO(cluster.said());
    CHECK(has(cluster.on(2).errors(), "complete"));
    CHECK(cluster.code(0, 8s) == 0);
    CHECK(cluster.code(1, 8s) == 0);
}

TEST_CASE("RDZV-5: MIN:MAX starts at the last call, latecomers join by a new round") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = {"--nnodes=2:3", "--last-call=1s"};
    const std::string script =
        "echo round $TORCHELASTIC_RESTART_COUNT of $WORLD_SIZE; [ $WORLD_SIZE = 3 ] || sleep 30";
    for (int host = 0; host < 2; ++host) cluster.start(host, script);
    REQUIRE(cluster.on(0).wait_for_output("round 0 of 2", 6s));
    cluster.start(2, script);
    CHECK(cluster.all_end_with(0, 15s));
    INFO(cluster.said());
    for (int host = 0; host < 3; ++host) {
        CHECK(has(cluster.on(host).output(), "round 1 of 3"));
    }
}

TEST_CASE("RDZV-5: a fixed size waits, says who is missing, and gives up at the join time-out") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=3", "--join-timeout=3s"};
    for (int host = 0; host < 2; ++host) cluster.start(host, "true");
    CHECK(cluster.all_end_with(75, 10s));
    INFO(cluster.said());
    CHECK(has(cluster.on(1).errors(), "2 of 3"));
}

TEST_CASE("RDZV-6: a signal while waiting ends at once, others keep waiting") {
    DDRUN_NEEDS_HOSTS();
    const int signal = GENERATE(SIGINT, SIGTERM);
    Cluster cluster(2);
    cluster.flags = {"--nnodes=3"};
    const auto ends_at_once = [&](int host) {
        const auto told = std::chrono::steady_clock::now();
        cluster.on(host).send_signal(signal);
        CHECK(cluster.code(host, 3s) == 128 + signal);
        CHECK(std::chrono::steady_clock::now() - told < 1s);
        INFO(cluster.said());
    };
    SECTION("as the host") {
        cluster.start(0, "true");
        CHECK_FALSE(cluster.on(0).wait(700ms));
        ends_at_once(0);
    }
    SECTION("as a client of an address that never answers") {
        cluster.endpoint = "10.9.0.200:29400";
        cluster.start(0, "true");
        CHECK_FALSE(cluster.on(0).wait(700ms));
        ends_at_once(0);
    }
    SECTION("while a name is looked up at a name server that is dead") {
        cluster.endpoint = "nowhere.example:29400";
        cluster.hosts.command(0,
                              "echo nameserver 10.9.0.200 > /run/dead; "
                              "mount --bind /run/dead /etc/resolv.conf; rm -f /run/dead");
        cluster.start(0, "true");
        CHECK_FALSE(cluster.on(0).wait(700ms));
        ends_at_once(0);
    }
    SECTION("as a member, and the other one is told") {
        cluster.start(0, "true");
        cluster.start(1, "true");
        REQUIRE_FALSE(cluster.on(0).wait(1s));
        ends_at_once(1);
        CHECK(cluster.on(0).wait_for_output("left", 3s));
        CHECK_FALSE(cluster.on(0).wait(500ms));
        ends_at_once(0);
    }
}

TEST_CASE("RDZV-14: rank 0 is always at the endpoint's host") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = {"--nnodes=3"};
    cluster.endpoint = Hosts::address(1) + ":29400";
    std::vector<int> order = {0, 1, 2};
    do {
        for (const int host : order) cluster.start(host, tell_ranks + "; echo at $MASTER_ADDR");
        CHECK(cluster.all_end_with(0, 8s));
        INFO(cluster.said());
        CHECK(has(cluster.on(1).output(), "rank 0 of 3"));
        CHECK(lines_with(cluster, "at ") == std::set<std::string>{"at 10.9.0.2"});
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("PORT-2: another job at the same endpoint is refused in words, the first untouched") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = {"--nnodes=2"};
    for (int host = 0; host < 2; ++host) cluster.start(host, "echo up; sleep 3", {"--rdzv-id=one"});
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 5s));
    cluster.start(2, "true", {"--rdzv-id=two"});
    CHECK(cluster.code(2, 5s) == 77);
    INFO(cluster.said());
    CHECK(has(cluster.on(2).errors(), "one"));
    CHECK(has(cluster.on(2).errors(), "two"));
    CHECK(cluster.code(0, 8s) == 0);
    CHECK(cluster.code(1, 8s) == 0);
}
