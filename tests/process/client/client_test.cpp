#include "rendezvous/client/client.hpp"

#include "rendezvous/platform/clock.hpp"
#include "tests/process/client/fake_server.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// The agent's end of a real connection, with a server that does as told.
using namespace ddrun;
using namespace ddrun::rendezvous;
using namespace ddrun::test;
using namespace std::chrono_literals;

namespace {

Security with_secret(char letter) {
    Security security;
    security.key.fill(static_cast<unsigned char>(letter));
    return security;
}

Security insecure() {
    Security security;
    security.mode = Security::Mode::plain;
    return security;
}

// Welcomes, acknowledges, and sends every store request its answer.
class Polite {
  public:
    FakeServer::Answers operator()(const FromNode& message) {
        FakeServer::Answers answers;
        if (const auto* hello = std::get_if<NodeHello>(&message)) {
            NodeWelcome welcome;
            welcome.job_incarnation = "run";
            welcome.heard = heard_;
            answers.push_back(welcome);
            sent_ = std::min(sent_, hello->heard);
        }
        if (const auto* beat = std::get_if<Heartbeat>(&message)) {
            HeartbeatSeen seen;
            seen.number = beat->number;
            seen.heard = heard_;
            answers.push_back(seen);
        }
        if (const auto* payload = std::get_if<FromNodePayload>(&message)) {
            if (payload->sequence == heard_ + 1) ++heard_;
            if (const auto* asked = std::get_if<StoreAsked>(&payload->payload)) {
                FromServerPayload answer;
                answer.sequence = ++sent_;
                answer.heard = heard_;
                answer.payload = answer_to(*asked);
                answers.push_back(answer);
            }
        }
        return answers;
    }

  private:
    static StoreAnswered answer_to(const StoreAsked& asked) {
        StoreAnswered answer;
        answer.round = asked.round;
        answer.rank = asked.rank;
        StoreValue value;
        value.id = std::get<StoreGet>(asked.request).id;
        value.value = "v";
        answer.reply = value;
        return answer;
    }
    std::uint64_t heard_ = 0;
    std::uint64_t sent_ = 0;
};

struct Node {
    Node(boost::asio::io_context& io_context, unsigned short port, Security security,
         std::string host = "127.0.0.1")
        : io(io_context) {
        NodeLinkRules rules;
        rules.terms.job_id = "job";
        rules.terms.min_nodes = rules.terms.max_nodes = 2;
        rules.terms.lease = 2s;
        rules.terms.heartbeat = 100ms;
        rules.terms.join_timeout = 5s;
        rules.offer.node_name = "n0";
        rules.node_incarnation = "incarnation";
        rules.endpoint = host + ":" + std::to_string(port);
        ClientSettings settings;
        settings.host = std::move(host);
        settings.port = port;
        settings.security = security;
        Client::Ears ears;
        ears.deliver = [this](FromJob message) {
            if (std::holds_alternative<StoreAnswered>(message)) ++answers;
            if (const auto* said = std::get_if<FromCoordinator>(&message)) {
                if (const auto* over = std::get_if<Verdict>(said)) verdict = *over;
                if (const auto* notice = std::get_if<Notice>(said)) notices += notice->words + "\n";
            }
        };
        ears.fence = [](const Fence&) {};
        ears.lease_until = [this](TimePoint until) { lease = until; };
        ears.arm_obituary = [this](const std::string& address) { obituary_goes_to = address; };
        ears.resolved = [this](Endpoints endpoints) -> boost::asio::awaitable<void> {
            resolved += endpoints.size();
            co_return;
        };
        ears.finished = [this] { finished = true; };
        client = std::make_unique<Client>(io, std::move(rules), std::move(settings), ears);
        client->start();
    }
    // A round has to be granted before the store knows this node.
    void ask(std::uint64_t id) {
        StoreAsked asked;
        asked.round = 0;
        StoreGet get;
        get.id = id;
        get.key = "k";
        asked.request = get;
        client->submit(asked);
    }
    bool run_until(const std::function<bool()>& condition, Duration limit = 10s) {
        const TimePoint end = detail::now() + limit;
        while (!condition() && detail::now() < end) io.run_one_for(10ms);
        return condition();
    }

    boost::asio::io_context& io;
    std::unique_ptr<Client> client;
    std::size_t answers = 0;
    std::size_t resolved = 0;
    std::optional<Verdict> verdict;
    std::string notices;
    TimePoint lease{};
    std::string obituary_goes_to;
    bool finished = false;
};

bool is_goodbye(const FromNode& message) {
    return std::holds_alternative<Goodbye>(message);
}

}  // namespace

TEST_CASE("a client joins, keeps its lease, and leaves with a goodbye that arrives") {
    for (const Security& security : {insecure(), with_secret('k')}) {
        boost::asio::io_context io;
        FakeServer server(io, security, Polite());
        Node node(io, server.port(), security);
        REQUIRE(node.run_until([&] { return node.lease != TimePoint{}; }));
        CHECK(node.obituary_goes_to == "127.0.0.1:" + std::to_string(server.port()));
        CHECK(node.resolved == 1);
        node.client->finish(false);
        REQUIRE(node.run_until([&] { return node.finished; }));
        CHECK(node.run_until(
            [&] { return std::any_of(server.heard.begin(), server.heard.end(), is_goodbye); }));
        server.close();
        node.client.reset();
        io.run();  // nothing is left to wait for
    }
}

TEST_CASE("what is submitted in one go leaves in few writes") {
    boost::asio::io_context io;
    FakeServer server(io, insecure(), Polite());
    Node node(io, server.port(), insecure());
    REQUIRE(node.run_until([&] { return node.lease != TimePoint{}; }));
    const int reads = server.reads;
    for (std::uint64_t id = 1; id <= 100; ++id) node.ask(id);
    REQUIRE(node.run_until([&] { return node.answers == 100; }));
    CHECK(server.reads - reads <= 3);  // a heartbeat or two may fall in between
}

TEST_CASE("a lost connection is made again and nothing is asked or answered twice") {
    boost::asio::io_context io;
    FakeServer server(io, insecure(), Polite());
    Node node(io, server.port(), insecure());
    REQUIRE(node.run_until([&] { return node.lease != TimePoint{}; }));
    server.hang_up();
    node.ask(1);
    REQUIRE(node.run_until([&] { return node.answers == 1; }));
    CHECK(server.connections == 2);
    CHECK(node.resolved == 2);  // looked up afresh
}

TEST_CASE("bytes that are no message end the connection, and it is made again") {
    boost::asio::io_context io;
    FakeServer server(io, insecure(), Polite());
    server.raw_answer = std::string("\x01\0\0\0\xff", 5);
    Node node(io, server.port(), insecure());
    REQUIRE(node.run_until([&] { return node.lease != TimePoint{}; }));
    CHECK(server.connections == 2);
}

TEST_CASE("another secret ends a job at once, in words and with 77") {
    boost::asio::io_context io;
    FakeServer server(io, with_secret('s'), Polite());
    Node node(io, server.port(), with_secret('c'));
    REQUIRE(node.run_until([&] { return node.verdict.has_value(); }));
    CHECK(node.verdict->exit_code == 77);
    CHECK(node.verdict->cause.words.find("127.0.0.1 port") != std::string::npos);
    CHECK(node.verdict->cause.words.find("another secret") != std::string::npos);
}

TEST_CASE("a node without a secret reads the refusal of a server that has one") {
    boost::asio::io_context io;
    FakeServer server(io, with_secret('s'), Polite());
    Node node(io, server.port(), insecure());
    REQUIRE(node.run_until([&] { return node.verdict.has_value(); }));
    CHECK(node.verdict->exit_code == 77);
    CHECK(node.verdict->cause.words.find("--insecure") != std::string::npos);
}

TEST_CASE("RDZV-1: nobody there, then somebody: joined soon after") {
    boost::asio::io_context io;
    unsigned short port = 0;
    {
        FakeServer reserved(io, insecure(), Polite());
        port = reserved.port();
        reserved.close();
        io.run();
        io.restart();
    }
    Node node(io, port, insecure());
    REQUIRE(node.run_until([&] { return node.resolved == 3; }));
    FakeServer server(io, insecure(), Polite(), port);
    CHECK(node.run_until([&] { return node.lease != TimePoint{}; }, 3s));
}

TEST_CASE("RDZV-1: a name that does not exist is looked up again until the join time-out") {
    boost::asio::io_context io;
    Node node(io, 29400, insecure(), "no-such-host.invalid");
    REQUIRE(node.run_until([&] { return node.verdict.has_value(); }, 12s));
    CHECK(node.verdict->exit_code == 75);
    CHECK(node.verdict->cause.words.find("tries") != std::string::npos);
    CHECK(node.resolved == 0);
}

TEST_CASE("a client that is destroyed in the middle leaves nothing to wait for") {
    boost::asio::io_context silent_io;  // accepts, never answers: its handlers never run
    FakeServer silent(silent_io, with_secret('k'), Polite());
    for (int steps = 0; steps < 30; ++steps) {
        boost::asio::io_context io;
        FakeServer server(io, with_secret('k'), Polite());
        for (const unsigned short port : {server.port(), silent.port()}) {
            Node node(io, port, with_secret('k'));
            for (int i = 0; i < steps; ++i) io.run_one_for(2ms);
            node.client.reset();
        }
        server.close();
        const TimePoint began = detail::now();
        io.restart();
        io.run();
        CHECK(detail::now() - began < 1s);
    }
}

TEST_CASE("store requests through one connection") {
    constexpr std::uint64_t requests = 100'000;
    constexpr std::uint64_t at_once = 256;
    for (const Security& security : {insecure(), with_secret('k')}) {
        boost::asio::io_context io;
        FakeServer server(io, security, Polite());
        Node node(io, server.port(), security);
        REQUIRE(node.run_until([&] { return node.lease != TimePoint{}; }));
        const TimePoint began = detail::now();
        std::uint64_t asked = 0;
        while (node.answers < requests && detail::now() - began < 60s) {
            while (asked < requests && asked < node.answers + at_once) node.ask(++asked);
            io.run_one_for(10ms);
        }
        CHECK(node.answers == requests);
        const double seconds = std::chrono::duration<double>(detail::now() - began).count();
        WARN((security.mode == Security::Mode::plain ? "plain" : "TLS")
             << ": " << static_cast<int>(static_cast<double>(requests) / seconds)
             << " requests a second with client and server on one thread");
    }
}
