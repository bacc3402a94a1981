// Group K: ddrun as a pod's entrypoint. A pod is emulated: process 1 of its own PID namespace, with
// a /dev of its own that has the kubelet's termination log; several pods also have a network each.
#include "tests/support/catch.hpp"
#include "tests/support/cluster.hpp"
#include "tests/support/program.hpp"

#include <signal.h>

#include <string>
#include <vector>

using namespace ddrun::test;

namespace {

#define DDRUN_NEEDS_PODS()                                                                \
    if (run(Invocation{{"unshare", "--pid", "--mount", "--fork", "--mount-proc", "true"}, \
                       {},                                                                \
                       {},                                                                \
                       "",                                                                \
                       false,                                                             \
                       false,                                                             \
                       {}})                                                               \
            .code != 0) {                                                                 \
        WARN("skipped: this machine does not allow PID and mount namespaces");            \
        return;                                                                           \
    }

// The kubelet's part. ddrun is exec'd, so it is process 1.
class Pod {
  public:
    Pod() { write_file(log(), ""); }

    [[nodiscard]] Invocation invocation(std::vector<std::string> arguments) const {
        Invocation pod = ddrun_with(std::move(arguments));
        const std::string set_up = "for d in null zero urandom tty; do : > " + files_.file("$d") +
                                   "; mount --bind /dev/$d " + files_.file("$d") +
                                   "; done; mkdir -p " + files_.file("shm") + " " +
                                   files_.file("pts") + "; mount --rbind " + files_.path() +
                                   " /dev && exec \"$@\"";
        pod.argv.insert(pod.argv.begin(), {"unshare", "--pid", "--mount", "--fork", "--kill-child",
                                           "--mount-proc", "sh", "-c", set_up, "sh"});
        pod.env["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
        pod.unset = {"SLURM_JOB_ID"};
        return pod;
    }
    [[nodiscard]] std::string log() const { return files_.file("termination-log"); }
    [[nodiscard]] std::string message() const { return read_file(log()); }

  private:
    TemporaryDirectory files_;
};

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

// Process 1 of the pod, which is not ours to signal by its own number.
pid_t process_one(const Program& pod) {
    const std::string own = std::to_string(pod.pid());
    return std::atoi(read_file("/proc/" + own + "/task/" + own + "/children").c_str());
}

}  // namespace

TEST_CASE("K8S-1: a thousand orphans of a pod are reaped, and the code is the worker's") {
    DDRUN_NEEDS_PODS();
    const Pod pod;
    const Finished end = run(
        pod.invocation({"--nproc-per-node=1", "sh", "-c",
                        "i=0; while [ $i -lt 1000 ]; do (sleep 0 &); i=$((i+1)); done; sleep 1; "
                        "echo zombies: $(grep -l 'State:.Z' /proc/[0-9]*/status | wc -l), "
                        "init: $(cat /proc/1/comm); exit 9"}),
        30s);
    INFO(end.errors);
    CHECK(end.code == 9);
    CHECK(has(end.output, "zombies: 0, init: ddrun"));
    CHECK(end.left_nothing);
}

TEST_CASE("K8S: what ended a pod is its termination message, one line of cause first") {
    DDRUN_NEEDS_PODS();
    const Pod pod;
    SECTION("a worker") {
        const Finished end = run(pod.invocation(
            {"--nproc-per-node=2", "sh", "-c",
             "[ $RANK = 1 ] || sleep 60; i=0; while [ $i -lt 60 ]; do printf '%0500d\\n' $i >&2; "
             "i=$((i+1)); done; exit 3"}));
        CHECK(end.code == 3);
        CHECK(has(first_line(pod.message()), "failed: rank 1 ended with exit code 3"));
        CHECK(has(pod.message(), "\nexit code 3\n"));
        CHECK(pod.message().size() <= 4096);
    }
    SECTION("a wrong flag") {
        CHECK(run(pod.invocation({"--nproc-per-nod=2", "true"})).code == 2);
        CHECK(has(first_line(pod.message()), "nproc-per-nod"));
    }
    SECTION("a program that is not there") {
        CHECK(run(pod.invocation({"./nosuch"})).code == 127);
        CHECK(has(first_line(pod.message()), "./nosuch"));
    }
    SECTION("success leaves it as it was") {
        write_file(pod.log(), "before");
        CHECK(run(pod.invocation({"true"})).code == 0);
        CHECK(pod.message() == "before");
    }
    SECTION("outside a pod it is left alone") {
        auto elsewhere = pod.invocation({"false"});
        elsewhere.env.erase("KUBERNETES_SERVICE_HOST");
        elsewhere.unset.push_back("KUBERNETES_SERVICE_HOST");
        CHECK(run(elsewhere).code == 1);
        CHECK(pod.message().empty());
    }
}

TEST_CASE("K8S-4: TERM ends a pod within its grace with 143, whatever its workers ignore") {
    DDRUN_NEEDS_PODS();
    const Pod pod;
    Program job(pod.invocation({"--nproc-per-node=2", "--shutdown-timeout=1", "sh", "-c",
                                "trap '' TERM; echo ready; while :; do sleep 1; done"}));
    REQUIRE(job.wait_until([&] { return count_of(job.output(), "ready") == 2; }, 10s));
    const pid_t init = process_one(job);
    REQUIRE(init > 0);
    ::kill(init, SIGTERM);
    CHECK(job.wait(4s) == 143);
    INFO(pod.message());
    CHECK(has(first_line(pod.message()), "SIGTERM"));
    CHECK(has(pod.message(), "exit code 143"));
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE("K8S-4: a pod that is killed at the end of its grace leaves nothing") {
    DDRUN_NEEDS_PODS();
    const Pod pod;
    Program job(pod.invocation({"--nproc-per-node=2", "sh", "-c",
                                "trap '' TERM; (setsid sleep 999 &); echo ready; sleep 999"}));
    REQUIRE(job.wait_until([&] { return count_of(job.output(), "ready") == 2; }, 10s));
    ::kill(process_one(job), SIGKILL);
    CHECK(job.wait(4s).value_or(0) != 0);  // what unshare makes of it
    CHECK(job.leaves_nothing(1s));
}

TEST_CASE("K8S: two pods of one index at once: never two workers of one rank") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = {"--nnodes=2", "--max-restarts=1"};
    const auto start = [&](int host, const char* index, const std::string& script) -> Program& {
        auto pod = cluster.invocation({}, {"sh", "-c", script});
        pod.env["JOB_COMPLETION_INDEX"] = index;
        return cluster.start(host, pod);
    };
    start(0, "0", "echo rank $RANK up; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || sleep 999");
    start(1, "1", "echo rank $RANK up; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || sleep 999");
    REQUIRE(cluster.on(1).wait_for_output("rank 1 up", 10s));
    start(2, "1", "echo rank $RANK up");
    CHECK(cluster.code(2, 10s) == 75);
    CHECK_FALSE(has(cluster.on(2).output(), "up"));
    CHECK_FALSE(cluster.on(1).wait(0ms));

    // The older one is dead: the newest has its place, in the next round.
    cluster.on(1).send_signal(SIGKILL);
    CHECK(cluster.code(1, 5s) == 137);
    start(2, "1", "echo rank $RANK up");
    CHECK(cluster.code(2, 15s) == 0);
    INFO(cluster.said());
    CHECK(has(cluster.on(2).output(), "rank 1 up"));
    CHECK(cluster.code(0, 10s) == 0);
}

TEST_CASE("K8S-2: a pod that comes back under its name with a new address is found there") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2", "--max-restarts=1", "--rendezvous-grace=20", "--lease=6"};
    cluster.endpoint = "train-0.train:29400";
    const auto resolve = [&](const std::string& address) {
        for (int host = 0; host < 2; ++host)
            cluster.hosts.write_hosts_file(host,
                                           "127.0.0.1 localhost\n" + address + " train-0.train\n");
    };
    const auto start = [&](int host, const std::string& script) {
        auto pod = cluster.invocation({}, {"sh", "-c", script});
        pod.env["JOB_COMPLETION_INDEX"] = std::to_string(host);
        cluster.start(host, pod);
    };
    const std::string script =
        "echo rank $RANK master $MASTER_ADDR; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || sleep 999";
    resolve("10.9.0.1");
    for (int host = 0; host < 2; ++host) start(host, script);
    REQUIRE(cluster.on(1).wait_for_output("master 10.9.0.1", 10s));

    cluster.on(0).send_signal(SIGKILL);
    REQUIRE(cluster.code(0, 5s) == 137);
    cluster.hosts.command(0, "ip addr del 10.9.0.1/24 dev e0; ip addr add 10.9.0.9/24 dev e0");
    resolve("10.9.0.9");
    start(0, script);
    CHECK(cluster.code(0, 30s) == 0);
    CHECK(cluster.code(1, 10s) == 0);
    INFO(cluster.said());
    CHECK(has(cluster.on(1).output(), "rank 1 master 10.9.0.9"));
}

TEST_CASE("K8S: a proxy that accepts and closes until pod 0 is there is waited out") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    Program proxy(
        cluster.hosts.on(0, Invocation{{"/usr/bin/python3", "-uc",
                                        "import socket\n"
                                        "s = socket.socket()\n"
                                        "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                                        "s.bind(('10.9.0.1', 29400)); s.listen(64); print('up')\n"
                                        "while True: s.accept()[0].close(); print('closed')\n"},
                                       {},
                                       {},
                                       "",
                                       false,
                                       false,
                                       {}}));
    REQUIRE(proxy.wait_for_output("up", 5s));
    auto& early = cluster.start(1, "echo rank $RANK");
    REQUIRE(proxy.wait_until([&] { return count_of(proxy.output(), "closed") >= 3; }, 10s));
    CHECK_FALSE(early.wait(0ms));
    proxy.send_signal(SIGKILL);
    REQUIRE(proxy.wait(5s));
    cluster.start(0, "echo rank $RANK");
    CHECK(cluster.all_end_with(0, 15s));
    INFO(cluster.said());
    CHECK(has(early.output(), "rank 1"));
}
