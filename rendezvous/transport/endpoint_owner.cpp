#include "rendezvous/transport/endpoint_owner.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/transport/deadline.hpp"
#include "rendezvous/transport/listener.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <utility>

namespace ddrun::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;

constexpr int backlog = 4096;
constexpr auto look_again_after = std::chrono::milliseconds(5);
constexpr auto quietly = asio::as_tuple(asio::use_awaitable);

bool is_of(const std::vector<LocalAddress>& here, const asio::ip::address& address) {
    if (address.is_loopback()) return true;
    return std::any_of(here.begin(), here.end(), [&](const LocalAddress& local) {
        return text_of(local.address) == text_of(address);
    });
}

std::string list(const std::vector<LocalAddress>& here) {
    std::string text;
    for (const LocalAddress& local : here) {
        if (local.address.is_loopback()) continue;
        text += (text.empty() ? "" : ", ") + text_of(local.address);
    }
    return text.empty() ? "no address but loopback" : text;
}

std::string list(const Endpoints& endpoints) {
    std::string text;
    for (const tcp::endpoint& endpoint : endpoints) {
        text += (text.empty() ? "" : ", ") + text_of(endpoint.address());
    }
    return text;
}

// True: the connection from there has come in. Whose end is whose is known by the port that the
// system chose.
bool has_come_in(tcp::acceptor& acceptor, const tcp::endpoint& from) {
    error_code error;
    while (!error) {
        tcp::socket socket(acceptor.get_executor());
        acceptor.accept(socket, error);
        error_code gone;
        if (!error && socket.remote_endpoint(gone) == from) return true;
    }
    return false;
}

asio::awaitable<bool> is_reached(tcp::acceptor& acceptor, const tcp::endpoint& endpoint,
                                 TimePoint deadline) {
    tcp::socket probe(acceptor.get_executor());
    const Deadline limit(probe, deadline);
    const auto [error] = co_await probe.async_connect(endpoint, quietly);
    error_code gone;
    const tcp::endpoint from = probe.local_endpoint(gone);
    asio::steady_timer pause(acceptor.get_executor());
    while (!error && !gone && detail::now() < deadline) {
        if (has_come_in(acceptor, from)) co_return true;
        pause.expires_after(look_again_after);
        (void)co_await pause.async_wait(quietly);
    }
    co_return false;
}

asio::awaitable<std::string> claim(tcp::endpoint endpoint, TimePoint deadline,
                                   std::vector<tcp::acceptor>& listeners) {
    const auto executor = co_await asio::this_coro::executor;
    try {
        tcp::acceptor acceptor = open_listener(executor, endpoint, backlog);
        acceptor.non_blocking(true);
        if (!co_await is_reached(acceptor, endpoint, deadline)) {
            co_return text_of(endpoint) +
                " is an address of this node, but connections to it go elsewhere";
        }
        listeners.push_back(std::move(acceptor));
    } catch (const system_error& error) {
        if (error.code() != asio::error::address_in_use) {
            co_return "cannot listen on " + text_of(endpoint) + ": " + error.code().message();
        }
        co_return text_of(endpoint) + " is in use on this node already";
    }
    co_return std::string();
}

}  // namespace

Candidates candidates(const Endpoints& endpoints, const std::vector<LocalAddress>& here) {
    Candidates result;
    const auto is_here = [&](const tcp::endpoint& one) { return is_of(here, one.address()); };
    if (endpoints.empty()) {
        result.why_not = "the endpoint has no address";
    } else if (is_here(endpoints.front())) {
        std::copy_if(endpoints.begin(), endpoints.end(), std::back_inserter(result.endpoints),
                     is_here);
    } else if (std::any_of(endpoints.begin(), endpoints.end(), is_here)) {
        result.why_not = "of the endpoint's addresses (" + list(endpoints) +
                         ") the lowest serves, which is not of this node";
    } else {
        result.why_not = "the endpoint (" + list(endpoints) + ") is no address of this node (" +
                         list(here) + ")";
    }
    return result;
}

asio::awaitable<Ownership> claim_endpoint(Endpoints endpoints, Duration patience) {
    Candidates wanted = candidates(endpoints, local_addresses());
    Ownership result;
    result.why_not = std::move(wanted.why_not);
    const TimePoint deadline = detail::now() + patience;
    for (const tcp::endpoint& endpoint : wanted.endpoints) {
        std::string why_not = co_await claim(endpoint, deadline, result.listeners);
        if (result.why_not.empty()) result.why_not = std::move(why_not);
    }
    if (!result.listeners.empty()) result.why_not.clear();
    co_return result;
}

asio::awaitable<bool> is_superseded(std::string host, int port, tcp::endpoint served,
                                    TimePoint deadline) {
    try {
        Endpoints lower = co_await resolve(std::move(host), port, deadline);
        std::erase_if(lower, [&](const tcp::endpoint& one) { return one >= served; });
        if (lower.empty()) co_return false;
        (void)co_await connect_to_any(std::move(lower), {}, deadline);
        co_return true;
    } catch (const system_error&) {
        co_return false;
    }
}

}  // namespace ddrun::rendezvous
