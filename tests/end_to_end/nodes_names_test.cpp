// Group B: names, addresses, interfaces.
#include "tests/support/catch.hpp"
#include "tests/support/cluster.hpp"

#include <string>

using namespace ddrun::test;

namespace {

constexpr auto prompt = 5s;
const std::string tell_master = "echo master $MASTER_ADDR of $WORLD_SIZE";

}  // namespace

TEST_CASE("machines of a test see each other, and a pulled cable parts them") {
    DDRUN_NEEDS_HOSTS();
    const Hosts hosts(2);
    hosts.command(0, "test $(hostname) = n0");
    const std::string reach = "timeout 1 bash -c '</dev/tcp/10.9.0.2/9' 2>&1 | grep -q refused";
    hosts.command(0, reach);
    hosts.cut(1);
    CHECK_THROWS(hosts.command(0, reach));
    hosts.heal(1);
    hosts.command(0, "for i in 1 2 3; do " + reach + " && break; done");
}

TEST_CASE("ADDR-1: a host name that means loopback is not published") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    for (int host = 0; host < 2; ++host) {
        cluster.hosts.write_hosts_file(
            host, "127.0.0.1 localhost\n127.0.1.1 n" + std::to_string(host) + "\n");
        cluster.start(host, tell_master);
    }
    INFO(cluster.said());
    CHECK(cluster.all_end_with(0, prompt));
    for (int host = 0; host < 2; ++host) {
        CHECK(has(cluster.on(host).output(), "master 10.9.0.1 of 2"));
    }
}

TEST_CASE("ADDR-2: no name needs to be known to anybody") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    for (int host = 0; host < 2; ++host) {
        cluster.hosts.write_hosts_file(host, "127.0.0.1 localhost\n");
        cluster.start(host, tell_master);
    }
    CHECK(cluster.all_end_with(0, prompt));
    INFO(cluster.said());
    CHECK(has(cluster.on(1).output(), "master 10.9.0.1 of 2"));
}

TEST_CASE("ADDR-4: the endpoint's host is found by its addresses, never by names") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    SECTION("an alias") {
        cluster.endpoint = "a.grp:29400";
        for (int host = 0; host < 2; ++host) {
            cluster.hosts.write_hosts_file(
                host, "127.0.0.1 localhost\n10.9.0.1 a.grp.default.svc a.grp\n");
        }
    }
    SECTION("a second address of the host") {
        cluster.hosts.command(0, "ip addr add 10.9.0.77/24 dev e0");
        cluster.endpoint = "10.9.0.77:29400";
    }
    SECTION("two hosts of one name") {
        cluster.hosts.rename(1, "n0");
    }
    for (int host = 1; host >= 0; --host) cluster.start(host, tell_master);
    CHECK(cluster.all_end_with(0, prompt));
    INFO(cluster.said());
    CHECK(has(cluster.on(0).output(), "of 2"));
}

TEST_CASE("ADDR-6: IPv6 only, the endpoint with and without a port") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2, Hosts::Addresses::ipv6_only);
    cluster.flags = {"--nnodes=2"};
    cluster.endpoint = GENERATE("[fd00:9::1]:29401", "fd00:9::1");
    for (int host = 0; host < 2; ++host) cluster.start(host, tell_master);
    CHECK(cluster.all_end_with(0, prompt));
    INFO(cluster.said());
    CHECK(has(cluster.on(1).output(), "master fd00:9::1 of 2"));
}

TEST_CASE("ADDR-6: a literal that can be read in two ways is a usage error") {
    const auto end =
        run_ddrun({"--nnodes=2", "--insecure", "--rdzv-endpoint=fd00:9::1:29400", "true"}, 5s);
    CHECK(end.code == 2);
    CHECK(has(end.errors, "["));
    CHECK(end.seconds < 1);
}

TEST_CASE("ADDR-8: a loopback endpoint never makes every node its own world") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.endpoint = "localhost:29400";
    cluster.flags = {"--nnodes=2", "--join-timeout=7s"};
    for (int host = 0; host < 2; ++host) cluster.start(host, tell_master);
    CHECK(cluster.all_end_with(75, 15s));
    INFO(cluster.said());
    for (int host = 0; host < 2; ++host) {
        CHECK(has(cluster.on(host).errors(), "loopback"));
        CHECK(has(cluster.on(host).errors(), "1 of 2"));
        CHECK_FALSE(has(cluster.on(host).output(), "master"));
    }
}

TEST_CASE("ADDR-8: an empty endpoint is a usage error") {
    const std::string endpoint = GENERATE("", ":29400");
    const auto end =
        run_ddrun({"--nnodes=2", "--insecure", "--rdzv-endpoint=" + endpoint, "true"}, 5s);
    CHECK(end.code == 2);
    CHECK(end.seconds < 1);
}

TEST_CASE("ADDR-9: the rendezvous ignores proxies, workers still see them") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    for (int host = 0; host < 2; ++host) {
        Invocation invocation = cluster.invocation({}, {"sh", "-c", "echo $https_proxy"});
        for (const char* name : {"http_proxy", "https_proxy", "ALL_PROXY"}) {
            invocation.env[name] = "http://127.0.0.1:1";
        }
        cluster.start(host, std::move(invocation));
    }
    CHECK(cluster.all_end_with(0, prompt));
    INFO(cluster.said());
    CHECK(has(cluster.on(1).output(), "http://127.0.0.1:1"));
}

TEST_CASE("--local-addr and --interface choose what is published") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(2);
    cluster.flags = {"--nnodes=2"};
    cluster.hosts.command(0, "ip addr add 10.9.0.88/24 dev e0");
    cluster.start(0, tell_master, {"--local-addr=10.9.0.88"});
    cluster.start(1, tell_master, {"--interface=e0"});
    CHECK(cluster.all_end_with(0, prompt));
    INFO(cluster.said());
    CHECK(has(cluster.on(1).output(), "master 10.9.0.88 of 2"));
}

TEST_CASE("an address or interface that is not there is refused with those that are") {
    DDRUN_NEEDS_HOSTS();
    Cluster cluster(1);
    cluster.flags = {"--nnodes=2"};
    const std::string flag = GENERATE("--local-addr=10.9.0.99", "--interface=ib7");
    cluster.start(0, "true", {flag});
    CHECK(cluster.code(0, prompt) == 2);
    INFO(cluster.said());
    CHECK(has(cluster.on(0).errors(), "10.9.0.1"));
}
