// Group C, second half: nodes that die, leave, fall silent, come back.
#include "tests/support/catch.hpp"
#include "tests/support/cluster.hpp"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>

using namespace ddrun::test;

namespace {

// Short leases, so that a test of silence takes seconds.
constexpr auto lease = 3s;
const std::vector<std::string> quick = {"--heartbeat=200ms", "--lease=3s", "--last-call=500ms",
                                        "--shutdown-timeout=2s", "--restart-backoff=0"};

std::vector<std::string> with(std::vector<std::string> more) {
    more.insert(more.end(), quick.begin(), quick.end());
    return more;
}

const std::string work =
    "echo round $TORCHELASTIC_RESTART_COUNT rank $RANK of $WORLD_SIZE; exec sleep 60";
// Ends well in the second round.
const std::string work_once =
    "echo round $TORCHELASTIC_RESTART_COUNT rank $RANK of $WORLD_SIZE; "
    "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; exec sleep 60";

void start_all(Cluster& cluster, const std::string& script) {
    for (std::size_t host = 0; host < cluster.jobs.size(); ++host) {
        cluster.start(static_cast<int>(host), script);
    }
    for (auto& job : cluster.jobs) REQUIRE(job->wait_for_output("round 0", 8s));
}

pid_t keeper_of(const Program& job) {
    for (const pid_t pid : job.descendants()) {
        if (has(read_file("/proc/" + std::to_string(pid) + "/comm"), "keeper")) return pid;
    }
    return -1;
}

}  // namespace

TEST_CASE("RDZV-7a: a killed agent is lost within a second and ends the job with 75") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=3"});
    start_all(cluster, work);
    cluster.on(1).send_signal(SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    CHECK(cluster.on(0).wait_for_output("n1", 1s));
    CHECK(cluster.on(2).wait_for_output("n1", 1s));
    CHECK(cluster.code(0, 6s) == 75);
    CHECK(cluster.code(2, 6s) == 75);
    CHECK(std::chrono::steady_clock::now() - killed < 5s);
    INFO(cluster.said());
    CHECK(has(cluster.on(0).errors(), "node n1 was lost"));
    CHECK(has(cluster.on(2).errors(), "node n1 was lost"));
    CHECK(cluster.on(1).leaves_nothing(1s));
}

TEST_CASE("RDZV-7a: with a restart left, a replacement takes the dead node's rank") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=3", "--max-restarts=1"});
    start_all(cluster, work_once);
    const auto dead = std::move(cluster.jobs[1]);
    dead->send_signal(SIGKILL);
    REQUIRE(cluster.on(0).wait_for_output("was lost", 3s));
    cluster.start(1, work_once);
    CHECK(cluster.all_end_with(0, 12s));
    INFO(cluster.said());
    CHECK(has(cluster.on(1).output(), "round 1 rank 1 of 3"));
    CHECK(has(cluster.on(2).output(), "round 1 rank 2 of 3"));
    CHECK(dead->leaves_nothing(1s));
}

TEST_CASE("a spare replaces a lost node at once and renumbers nobody") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(4);
    cluster.flags = with({"--nnodes=3", "--spares=1", "--max-restarts=1"});
    for (int host = 0; host < 3; ++host) cluster.start(host, work_once);
    for (int host = 0; host < 3; ++host) REQUIRE(cluster.on(host).wait_for_output("round 0", 8s));
    cluster.start(3, work_once);
    REQUIRE(cluster.on(3).wait_for_output("spare", 5s));
    cluster.on(1).send_signal(SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    REQUIRE(cluster.on(3).wait_for_output("round 1 rank 1 of 3", 6s));
    CHECK(std::chrono::steady_clock::now() - killed < 5s);
    for (const int host : {0, 2, 3}) CHECK(cluster.code(host, 6s) == 0);
    INFO(cluster.said());
    CHECK(has(cluster.on(2).output(), "round 1 rank 2 of 3"));
}

TEST_CASE("RDZV-7a: MIN:MAX goes on with whoever is left") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=2:3", "--max-restarts=1"});
    start_all(cluster, work_once);
    cluster.on(2).send_signal(SIGKILL);
    for (const int host : {0, 1}) CHECK(cluster.code(host, 8s) == 0);
    INFO(cluster.said());
    CHECK(has(cluster.on(1).output(), "round 1 rank 1 of 2"));
}

TEST_CASE("RDZV-7b: an announced leave that cannot be absorbed ends all nodes with 143") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=3"});
    start_all(cluster, work);
    cluster.on(1).send_signal(SIGTERM);
    CHECK(cluster.all_end_with(143, 6s));
    INFO(cluster.said());
    CHECK(has(cluster.on(2).errors(), "n1"));
}

TEST_CASE("RDZV-7b: an announced leave with enough nodes left costs no restart") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=2:3"});
    start_all(cluster, work_once);
    cluster.on(2).send_signal(SIGTERM);
    CHECK(cluster.code(2, 6s) == 143);
    for (const int host : {0, 1}) CHECK(cluster.code(host, 8s) == 0);
    INFO(cluster.said());
    CHECK(has(cluster.on(1).output(), "round 1 rank 1 of 2"));
}

TEST_CASE("a scheduler that signals every node gets 143 from all") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(4);
    cluster.flags = with({"--nnodes=2:4", "--max-restarts=3"});
    start_all(cluster, work);
    for (int host = 0; host < 4; ++host) cluster.on(host).send_signal(SIGTERM);
    CHECK(cluster.all_end_with(143, 6s));
    INFO(cluster.said());
}

TEST_CASE("RDZV-7c: a pulled cable: frozen before the lease ends, lost after it, never beside") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=1:2", "--max-restarts=1", "--rendezvous-grace=20s"});
    const TemporaryDirectory beats;
    // Each worker writes the time again and again; the old one must be silent once the new round
    // beats.
    const std::string script = "f=" + beats.path() +
                               "/$TORCHELASTIC_RESTART_COUNT.$RANK; echo round "
                               "$TORCHELASTIC_RESTART_COUNT; while :; do date +%s.%N > $f; "
                               "sleep 0.02; done";
    for (int host = 0; host < 2; ++host) cluster.start(host, script);
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("round 0", 8s));
    cluster.hosts.cut(1);
    REQUIRE(cluster.on(0).wait_for_output("round 1", lease + 5s));
    const auto beat = [&](const std::string& name) {
        return std::filesystem::last_write_time(beats.file(name));
    };
    const auto last_of_old = beat("0.1");
    CHECK(std::filesystem::file_time_type::clock::now() - last_of_old > 300ms);
    cluster.hosts.heal(1);
    CHECK(cluster.code(1, 15s) == 75);
    INFO(cluster.said());
    CHECK(beat("0.1") == last_of_old);
    CHECK(cluster.on(1).leaves_nothing(1s));
    cluster.on(0).send_signal(SIGTERM);
    CHECK(cluster.code(0, 5s) == 143);
}

TEST_CASE("a short cut costs nothing: no restart, no line lost") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2"});
    for (int host = 0; host < 2; ++host) {
        cluster.start(host, "echo up; sleep 4; echo down $TORCHELASTIC_RESTART_COUNT");
    }
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 8s));
    cluster.hosts.cut(1);
    CHECK_FALSE(cluster.on(1).wait(1200ms));
    cluster.hosts.heal(1);
    CHECK(cluster.all_end_with(0, 12s));
    INFO(cluster.said());
    CHECK(has(cluster.on(1).output(), "down 0"));
}

TEST_CASE("RDZV-7d: a stopped agent's workers are frozen by their keeper and die when it wakes") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=1:2", "--max-restarts=1", "--rendezvous-grace=20s"});
    start_all(cluster, work);
    cluster.on(1).send_signal(SIGSTOP);
    REQUIRE(cluster.on(0).wait_for_output("round 1 rank 0 of 1", lease + 6s));
    bool runs = false;
    for (const pid_t pid : cluster.on(1).descendants()) {
        const bool is_worker = has(read_file("/proc/" + std::to_string(pid) + "/comm"), "sleep");
        runs = runs || (is_worker && process_state(pid) != 'T');
    }
    CHECK_FALSE(runs);
    cluster.on(1).send_signal(SIGCONT);
    CHECK(cluster.code(1, 10s) == 75);
    INFO(cluster.said());
    CHECK(cluster.on(1).leaves_nothing(1s));
    cluster.on(0).send_signal(SIGTERM);
    CHECK(cluster.code(0, 5s) == 143);
}

TEST_CASE("agent and keeper killed at once: lost by its lease, nothing of it left") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2"});
    start_all(cluster, work);
    const pid_t keeper = keeper_of(cluster.on(1));
    REQUIRE(keeper > 0);
    ::kill(keeper, SIGKILL);
    cluster.on(1).send_signal(SIGKILL);
    CHECK(cluster.code(0, 15s) == 75);
    INFO(cluster.said());
    CHECK(has(cluster.on(0).errors(), "node n1"));
    CHECK(cluster.on(1).leaves_nothing(2s));
}

TEST_CASE("RDZV-9: the host's workers end first, and it stays until all are done") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2"});
    cluster.start(0, "[ $RANK = 0 ] || sleep 2");
    cluster.start(1, "[ $RANK = 0 ] || sleep 2");
    CHECK(cluster.all_end_with(0, 10s));
    INFO(cluster.said());
    for (int host = 0; host < 2; ++host) CHECK(cluster.on(host).errors().empty());
}

TEST_CASE("RDZV-9: a node that fails after the host was done gives all its code") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2"});
    for (int host = 0; host < 2; ++host) {
        cluster.start(host, "[ $RANK = 0 ] && exit 0; sleep 1; exit 9");
    }
    CHECK(cluster.all_end_with(9, 10s));
    INFO(cluster.said());
}

TEST_CASE("RDZV-9: four nodes of true, many times, without a word") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(4);
    cluster.flags = {"--nnodes=4"};
    for (int run = 0; run < 20; ++run) {
        for (int host = 0; host < 4; ++host) cluster.start(host, "true");
        REQUIRE(cluster.all_end_with(0, 10s));
        INFO(cluster.said());
        for (int host = 0; host < 4; ++host) REQUIRE(cluster.on(host).errors().empty());
    }
}

TEST_CASE("RDZV-10: the endpoint's host dies and comes back: one restart, exit 0") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=3", "--max-restarts=3"});
    start_all(cluster, work_once);
    cluster.on(0).send_signal(SIGKILL);
    REQUIRE(cluster.on(1).wait_for_output("lost contact", 6s));
    cluster.start(0, work_once);
    CHECK(cluster.all_end_with(0, 25s));
    INFO(cluster.said());
    CHECK(has(cluster.on(0).output(), "round 1 rank 0 of 3"));
    CHECK(has(cluster.on(2).output(), "round 1 rank 2 of 3"));
}

TEST_CASE("RDZV-10: an endpoint that stays away ends the others with 75 after the grace") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = with({"--nnodes=3", "--max-restarts=3", "--rendezvous-grace=4s"});
    start_all(cluster, work);
    cluster.on(0).send_signal(SIGKILL);
    for (const int host : {1, 2}) {
        CHECK(cluster.code(host, 12s) == 75);
        CHECK(has(cluster.on(host).errors(), "10.9.0.1:29400"));
        CHECK(cluster.on(host).leaves_nothing(1s));
    }
    INFO(cluster.said());
}

TEST_CASE("RDZV-13: clocks that differ change nothing") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = with({"--nnodes=2"});
    const std::vector<std::string> offset = {
        "unshare", "-T", "--fork", "--kill-child", "--monotonic", GENERATE("100000", "7")};
    for (int host = 0; host < 2; ++host) {
        Invocation invocation = cluster.invocation({}, {"sh", "-c", "echo up; sleep 4"});
        if (host == 1)
            invocation.argv.insert(invocation.argv.begin(), offset.begin(), offset.end());
        cluster.start(host, std::move(invocation));
    }
    CHECK(cluster.all_end_with(0, 12s));
    INFO(cluster.said());
    for (int host = 0; host < 2; ++host) CHECK(cluster.on(host).errors().empty());
}
