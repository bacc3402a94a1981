#include "tests/process/server/peers.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/platform/random.hpp"
#include "rendezvous/protocol/preface.hpp"

#include <boost/asio/ip/address.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace ddrun::test {

using namespace rendezvous;
namespace asio = boost::asio;

RawClient::RawClient(int port, std::string_view bytes)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
        throw std::runtime_error("no connection");
    }
    send(bytes);
}

void RawClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent =
            ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) return;  // the server has closed, or takes no more
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

void RawClient::greet(const NodeHello& hello) {
    send(bytes_of(hello));
}

void RawClient::reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket_.reset();
}

bool RawClient::listen() {
    std::array<char, 65536> buffer;
    while (open_) {
        const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) break;
        open_ = got > 0;
        if (!open_) break;
        bytes_.append(buffer.data(), static_cast<std::size_t>(got));
        frames_.append({buffer.data(), static_cast<std::size_t>(got)});
        while (const auto frame = frames_.next()) {
            if (auto message = decode_from_server(*frame)) messages_.push_back(std::move(*message));
        }
    }
    return open_;
}

NodeHello hello_of(int node, int nodes, const std::string& job) {
    NodeHello hello;
    hello.build = "0.1.0";
    hello.terms.job_id = job;
    hello.terms.min_nodes = nodes;
    hello.terms.max_nodes = nodes;
    hello.offer.node_name = "n" + std::to_string(node);
    hello.offer.address = "10.9.0." + std::to_string(node + 1);
    hello.offer.port = 40000;
    const std::string digits = std::to_string(node);
    hello.node_incarnation = std::string(32 - digits.size(), 'a') + digits;
    hello.obituary_token = std::string(32 - digits.size(), 'b') + digits;
    return hello;
}

std::string bytes_of(const NodeHello& hello) {
    return preface(PrefaceKind::node) + encode(FromNode(hello));
}

namespace {

ServerSettings test_settings(std::vector<std::string>& said,
                             const std::function<void(ServerSettings&)>& change) {
    ServerSettings settings;
    settings.security.mode = Security::Mode::plain;
    settings.jobs.build = "0.1.0";
    settings.jobs.fresh_incarnation = ddrun::detail::random_hex_128;
    settings.jobs.fresh_seed = ddrun::detail::random_bits;
    settings.say = [&said](const std::string& words) { said.push_back(words); };
    change(settings);
    return settings;
}

}  // namespace

TestServer::TestServer(const std::function<void(ServerSettings&)>& change)
    : server(io, test_settings(said, change)) {
    port = server.listen({asio::ip::address_v4::loopback(), 0}).port();
}

bool TestServer::await(const std::function<bool()>& done) {
    const TimePoint limit = ddrun::detail::now() + 10s;
    while (!done() && ddrun::detail::now() < limit) io.run_one_for(10ms);
    return done();
}

bool TestServer::has_said(const std::string& words) const {
    return all_said().find(words) != std::string::npos;
}

std::string TestServer::all_said() const {
    std::string all;
    for (const std::string& line : said) all += line + "\n";
    return all;
}

long resident_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("VmRSS:", 0) == 0) return std::atol(line.c_str() + 6);
    }
    return 0;
}

}  // namespace ddrun::test
