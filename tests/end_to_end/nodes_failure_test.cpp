// Groups D to F on several nodes: one verdict, one cause, one code.
#include "tests/support/catch.hpp"
#include "tests/support/cluster.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <string>

using namespace ddrun::test;

namespace {

const std::vector<std::string> quick = {"--shutdown-timeout=2s", "--restart-backoff=0"};

std::vector<std::string> with(std::vector<std::string> more) {
    more.insert(more.end(), quick.begin(), quick.end());
    return more;
}

}  // namespace

TEST_CASE("EXIT-1: a failing worker's code is the code of every node, with one cause") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=3", "--nproc-per-node=2"});
    for (int host = 0; host < 3; ++host) {
        cluster.start(host,
                      "[ $RANK = 3 ] && { echo broken >&2; sleep 0.5; exit 41; }; "
                      "echo sound >&2; exec sleep 60");
    }
    CHECK(cluster.all_end_with(41, 10s));
    INFO(cluster.said());
    for (int host = 0; host < 3; ++host) {
        CHECK(has(cluster.on(host).errors(), "rank 3"));
        CHECK(has(cluster.on(host).errors(), "n1"));
        // Only its own node has its last lines.
        CHECK(has(cluster.on(host).errors(), "| broken") == (host == 1));
        CHECK_FALSE(has(cluster.on(host).errors(), "| sound"));
    }
}

TEST_CASE(
    "RST-4: a failure on one node stops the others within seconds, and all restart together") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2", "--max-restarts=1"});
    for (int host = 0; host < 2; ++host) {
        cluster.start(host,
                      "echo round $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ] "
                      "&& exit 0; [ $RANK = 1 ] && exit 4; exec sleep 999",
                      {"--node-rank=" + std::to_string(host)});
    }
    CHECK(cluster.all_end_with(0, 12s));
    INFO(cluster.said());
    for (int host = 0; host < 2; ++host) CHECK(has(cluster.on(host).output(), "round 1"));
}

TEST_CASE("RST-3: max-restarts counts for the whole job, whichever node fails") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=3", "--max-restarts=2"});
    for (int host = 0; host < 3; ++host) {
        cluster.start(host,
                      "echo attempt $TORCHELASTIC_RESTART_COUNT; "
                      "[ $RANK = $TORCHELASTIC_RESTART_COUNT ] && exit 1$RANK; exec sleep 99");
    }
    CHECK(cluster.all_end_with(12, 15s));
    INFO(cluster.said());
    for (int host = 0; host < 3; ++host) {
        CHECK(has(cluster.on(host).output(), "attempt 2"));
        CHECK_FALSE(has(cluster.on(host).output(), "attempt 3"));
    }
}

TEST_CASE("RST-3: a node that leaves and comes back again and again does not go on for ever") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=1:2", "--last-call=300ms"});
    cluster.start(0, "exec sleep 60");
    cluster.start(1, "exec sleep 60");
    int code = -1;
    for (int turn = 0; turn < 12 && code < 0; ++turn) {
        cluster.on(1).wait_until([&] { return false; }, 700ms);
        cluster.on(1).send_signal(SIGTERM);
        cluster.on(1).wait(5s);
        code = cluster.code(0, 100ms);
        if (code < 0) cluster.start(1, "exec sleep 60");
    }
    INFO(cluster.said());
    CHECK(code == 75);
}

TEST_CASE("EXIT-5: the first failure is the cause, not those that follow it on other nodes") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=3"});
    for (int host = 0; host < 3; ++host) {
        cluster.start(host, "case $RANK in 2) sleep 0.5; exit 17;; *) sleep 0.56; exit 1;; esac");
    }
    CHECK(cluster.all_end_with(17, 10s));
    INFO(cluster.said());
    for (int host = 0; host < 3; ++host) CHECK(has(cluster.on(host).errors(), "rank 2"));
}

TEST_CASE("EXIT-6: a worker that dies of a signal gives every node 128 + s") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2"});
    for (int host = 0; host < 2; ++host) {
        cluster.start(host, "[ $RANK = 0 ] && kill -SEGV $$; exec sleep 60");
    }
    CHECK(cluster.all_end_with(139, 10s));
}

TEST_CASE("EXIT-6: stopped by SIGTERM on one node: all 143, also where workers answer with 0") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2", "--max-restarts=2"});
    for (int host = 0; host < 2; ++host) {
        cluster.start(host, "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done");
    }
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 8s));
    cluster.on(GENERATE(0, 1)).send_signal(SIGTERM);
    CHECK(cluster.all_end_with(143, 8s));
    INFO(cluster.said());
}

TEST_CASE("EXIT-8: a program that is missing on one node ends all with 127") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2", "--max-restarts=3"});
    const TemporaryDirectory folder;
    write_file(folder.file("train"), "#!/bin/sh\nexec sleep 60\n");
    ::chmod(folder.file("train").c_str(), 0755);
    cluster.start(0, cluster.invocation({}, {folder.file("train")}));
    cluster.start(1, cluster.invocation({}, {folder.file("missing")}));
    CHECK(cluster.code(1, 5s) == 127);
    cluster.on(0).send_signal(SIGTERM);
    CHECK(cluster.code(0, 5s) == 143);  // it had never formed: n1 did not come so far as to join
}

TEST_CASE("LIFE-1: every agent and every worker killed at once leaves nothing") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=3", "--nproc-per-node=2", "--rendezvous-grace=3s"});
    for (int host = 0; host < 3; ++host) {
        cluster.start(host, "echo up; (setsid sleep 60 &); exec sleep 60");
    }
    for (int host = 0; host < 3; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 8s));
    for (int host = 0; host < 3; ++host) cluster.on(host).send_signal(SIGKILL);
    for (int host = 0; host < 3; ++host) CHECK(cluster.on(host).leaves_nothing(3s));
}

TEST_CASE("LIFE-5: a worker that ignores TERM costs one grace on all nodes, not more") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2"});
    for (int host = 0; host < 2; ++host) {
        cluster.start(host,
                      "echo up; [ $RANK = 0 ] && { sleep 0.5; exit 5; }; trap '' TERM; sleep 60 & "
                      "wait; sleep 60");
    }
    CHECK(cluster.all_end_with(5, 12s));
    INFO(cluster.said());
    CHECK(cluster.on(0).lifetime() < 6s);
}

TEST_CASE("a killed keeper ends its node's part, and the others hear of it") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2"});
    for (int host = 0; host < 2; ++host) cluster.start(host, "echo up; exec sleep 60");
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 8s));
    for (const pid_t pid : cluster.on(1).descendants()) {
        if (has(read_file("/proc/" + std::to_string(pid) + "/comm"), "keeper")) {
            ::kill(pid, SIGKILL);
        }
    }
    CHECK(cluster.all_end_with(71, 8s));
    INFO(cluster.said());
    CHECK(has(cluster.on(0).errors(), "keeper"));
}
