// The stand-alone server and the door it stands at.
#include "tests/support/catch.hpp"
#include "tests/support/cluster.hpp"

#include <signal.h>

#include <string>

using namespace ddrun::test;

namespace {

std::string server_path() {
    return std::string(DDRUN_BUILD_DIR) + "/rendezvous/ddrun-rendezvous";
}

std::unique_ptr<Program> start_server(const Cluster& cluster, int host,
                                      std::vector<std::string> flags = {}) {
    Invocation invocation;
    invocation.argv = {server_path(), "--listen=" + Hosts::address(host) + ":29400"};
    for (std::string& flag : flags) invocation.argv.push_back(std::move(flag));
    invocation.env["DDRUN_SECRET"] = cluster.secret;
    return std::make_unique<Program>(cluster.hosts.on(host, std::move(invocation)));
}

const std::vector<std::string> quick = {"--nnodes=2", "--heartbeat=200ms", "--lease=3s",
                                        "--shutdown-timeout=2s", "--restart-backoff=0"};

// Asks the status page of the machine it runs on; the path follows.
const std::string get =
    "bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080; printf \"GET $0 HTTP/1.0\\r\\n\\r\\n\" >&3; "
    "cat <&3' ";

}  // namespace

TEST_CASE("a job forms at a stand-alone server, run after run") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = quick;
    cluster.endpoint = Hosts::address(2) + ":29400";
    const auto server = start_server(cluster, 2);
    for (int run = 0; run < 3; ++run) {
        for (int host = 0; host < 2; ++host) cluster.start(host, "echo $RANK of $WORLD_SIZE");
        CHECK(cluster.all_end_with(0, 8s));
        INFO(cluster.said());
        CHECK(has(cluster.on(1).output(), "1 of 2"));
    }
    server->send_signal(SIGTERM);
    CHECK(server->wait(2s) == 143);
}

TEST_CASE("RDZV-10: a stand-alone server killed and restarted: no worker restarts") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = quick;
    cluster.endpoint = Hosts::address(2) + ":29400";
    auto server = start_server(cluster, 2);
    for (int host = 0; host < 2; ++host) {
        cluster.start(host, "echo up $$; sleep 7; echo down $TORCHELASTIC_RESTART_COUNT");
    }
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 8s));
    for (int time = 0; time < 5; ++time) {
        server->send_signal(SIGKILL);
        CHECK(server->wait(2s) == 137);
        server = start_server(cluster, 2);
        cluster.on(0).wait_until([] { return false; }, 600ms);
    }
    CHECK(cluster.all_end_with(0, 15s));
    INFO(cluster.said());
    for (int host = 0; host < 2; ++host) {
        CHECK(count_of(cluster.on(host).output(), "up") == 1);
        CHECK(has(cluster.on(host).output(), "down 0"));
    }
}

TEST_CASE("a wrong key is refused in words on both sides, within 5 s") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    cluster.start(0, "true");
    REQUIRE_FALSE(cluster.on(0).wait(500ms));
    Invocation stranger = cluster.invocation({}, {"true"});
    SECTION("another key") {
        stranger.env["DDRUN_SECRET"] = "quite another secret";
    }
    SECTION("no key: --insecure") {
        stranger.env.erase("DDRUN_SECRET");
        stranger.argv.insert(stranger.argv.begin() + 1, "--insecure");
    }
    cluster.start(1, std::move(stranger));
    CHECK(cluster.code(1, 5s) == 77);
    INFO(cluster.said());
    CHECK(has(cluster.on(1).errors(), "secret"));
    CHECK(cluster.on(0).wait_for_output("10.9.0.2", 5s));
    cluster.start(1, "true");
    CHECK(cluster.all_end_with(0, 8s));
}

TEST_CASE("several nodes without a secret are refused with the ways out") {
    Invocation invocation = ddrun_with({"--nnodes=2", "--rdzv-endpoint=127.0.0.1:29400", "true"});
    const TemporaryDirectory home;
    invocation.env["HOME"] = home.path();
    invocation.unset = {"DDRUN_SECRET", "DDRUN_SECRET_FILE", "XDG_CONFIG_HOME"};
    const auto end = run(std::move(invocation), 5s);
    CHECK(end.code == 2);
    CHECK(end.seconds < 1);
    CHECK(has(end.errors, "--make-secret"));
    CHECK(has(end.errors, "--insecure"));
}

TEST_CASE("the secret is in no worker's environment and in no output") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2", "-vv"};
    for (int host = 0; host < 2; ++host) cluster.start(host, "env");
    CHECK(cluster.all_end_with(0, 8s));
    CHECK_FALSE(has(cluster.said(), cluster.secret));
}

TEST_CASE("PORT-5: garbage at the port changes nothing") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = {"--nnodes=2"};
    for (int host = 0; host < 2; ++host) cluster.start(host, "echo up; sleep 6");
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 8s));
    const auto resident = [&] {
        const std::string status =
            read_file("/proc/" + std::to_string(cluster.on(0).pid()) + "/status");
        return std::atol(status.c_str() + status.find("VmRSS:") + 6);
    };
    const long before = resident();
    cluster.hosts.command(2, R"(
        for i in $(seq 60); do
            bash -c 'exec 3<>/dev/tcp/10.9.0.1/29400; printf "GET / HTTP/1.0\r\n\r\n" >&3' &
            bash -c 'exec 3<>/dev/tcp/10.9.0.1/29400; head -c 100000 /dev/urandom >&3' &
            bash -c 'exec 3<>/dev/tcp/10.9.0.1/29400; printf "\377\377\377\377\377\377\377\377" >&3' &
            bash -c 'exec 3<>/dev/tcp/10.9.0.1/29400; printf "\026\003\001\002\000\001" >&3; sleep 0.2' &
            [ $((i % 10)) != 0 ] || wait
        done 2>/dev/null; wait; true)");
    CHECK(resident() - before < 10 * 1024);
    CHECK(cluster.code(0, 10s) == 0);
    CHECK(cluster.code(1, 10s) == 0);
    INFO(cluster.said());
    CHECK(lines_of(cluster.on(0).errors()).size() <= 3);
}

TEST_CASE("the status page tells of the job and only that") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(3);
    cluster.flags = quick;
    cluster.endpoint = Hosts::address(2) + ":29400";
    const auto server = start_server(cluster, 2, {"--status-listen=127.0.0.1:8080"});
    for (int host = 0; host < 2; ++host) cluster.start(host, "echo up; sleep 2");
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 8s));
    cluster.hosts.command(2, get + "/healthz | grep -q '200 OK'");
    cluster.hosts.command(2, get + "/status | grep -q '\"world_size\": *2'");
    cluster.hosts.command(2, get + "/metrics | grep -q '^ddrun_'");
    cluster.hosts.command(2, get + "/nothing | grep -q 404");
    CHECK(cluster.all_end_with(0, 8s));
}

TEST_CASE("the node that serves the rendezvous has the status page, and a taken port is said") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = quick;
    cluster.flags.push_back("--status-listen=127.0.0.1:8080");
    for (int host = 0; host < 2; ++host) cluster.start(host, "echo up; sleep 2");
    for (int host = 0; host < 2; ++host) REQUIRE(cluster.on(host).wait_for_output("up", 8s));
    cluster.hosts.command(0, get + "/status | grep -q '\"world_size\": *2'");
    cluster.hosts.command(1, "! " + get + "/status 2>/dev/null | grep -q world_size");
    // Another job there: its nodes run all the same.
    cluster.endpoint = Hosts::address(0) + ":29401";
    Program other(
        cluster.hosts.on(0, cluster.invocation({"--nnodes=1:2", "--last-call=0", "--rdzv-id=other"},
                                               {"sh", "-c", "true"})));
    CHECK(other.wait(8s) == 0);
    CHECK(has(other.errors(), "no status page at 127.0.0.1:8080: Address already in use"));
    CHECK(cluster.all_end_with(0, 8s));
    CHECK(has(cluster.on(0).errors(), "status page: http://127.0.0.1:8080/status"));
}
