// From a name to a connected socket.
#include "rendezvous/transport/address.hpp"

#include "rendezvous/platform/clock.hpp"
#include "rendezvous/transport/aside.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <netdb.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

namespace ddrun::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;

namespace {

constexpr auto next_address_after = std::chrono::milliseconds(250);
constexpr auto quietly = asio::as_tuple(asio::use_awaitable);

Endpoints endpoints_of(const addrinfo* list, int port) {
    Endpoints found;
    for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
        tcp::endpoint endpoint;
        if (one->ai_addrlen > endpoint.capacity()) continue;
        std::copy_n(reinterpret_cast<const char*>(one->ai_addr), one->ai_addrlen,
                    reinterpret_cast<char*>(endpoint.data()));
        endpoint.resize(one->ai_addrlen);
        endpoint.port(static_cast<unsigned short>(port));
        found.push_back(endpoint);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

// Asio's own resolver would hold up the end of the process as long as a look-up lasts.
Endpoints look_up(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
        throw system_error(error_code(error, asio::error::get_addrinfo_category()));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(list, ::freeaddrinfo);
    return endpoints_of(list, port);
}

}  // namespace

asio::awaitable<Endpoints> resolve(std::string host, int port, TimePoint deadline) {
    error_code not_a_literal;
    const asio::ip::address literal = asio::ip::make_address(host, not_a_literal);
    if (!not_a_literal) {
        co_return Endpoints{{literal, static_cast<unsigned short>(port)}};
    }
    std::function<Endpoints()> call = [host, port] { return look_up(host, port); };
    co_return co_await aside(run_in_own_thread, std::move(call), deadline);
}

namespace {

// Attempts to connect that run side by side.
struct Race {
    explicit Race(const asio::any_io_executor& executor) : timer(executor), winner(executor) {}

    asio::steady_timer timer;  // cancelled when an attempt decides something
    tcp::socket winner;
    std::vector<std::shared_ptr<tcp::socket>> runners;
    error_code last_error = asio::error::timed_out;
    std::size_t running = 0;
    bool over = false;

    void lose(error_code error) {
        if (!over) last_error = error;
        if (--running == 0) timer.cancel();
    }
    void win(tcp::socket& socket) {
        --running;
        if (std::exchange(over, true)) return;
        winner = std::move(socket);
        timer.cancel();
    }
    void stop() {
        over = true;
        error_code ignored;
        for (const auto& socket : runners) socket->close(ignored);
    }
};

struct StopAtEnd {
    std::shared_ptr<Race> race;
    ~StopAtEnd() { race->stop(); }
};

asio::awaitable<void> run(std::shared_ptr<Race> race, std::shared_ptr<tcp::socket> socket,
                          tcp::endpoint to, std::optional<asio::ip::address> from) {
    error_code error;
    socket->open(to.protocol(), error);
    if (!error && from) socket->bind({*from, 0}, error);
    if (!error) std::tie(error) = co_await socket->async_connect(to, quietly);
    error ? race->lose(error) : race->win(*socket);
}

void start(const std::shared_ptr<Race>& race, const tcp::endpoint& to,
           const std::optional<asio::ip::address>& from) {
    const auto executor = race->timer.get_executor();
    race->runners.push_back(std::make_shared<tcp::socket>(executor));
    ++race->running;
    asio::co_spawn(executor, run(race, race->runners.back(), to, from), asio::detached);
}

bool same_family(const tcp::endpoint& endpoint, const std::optional<asio::ip::address>& from) {
    return !from || from->is_v4() == endpoint.address().is_v4();
}

}  // namespace

asio::awaitable<tcp::socket> connect_to_any(Endpoints endpoints,
                                            std::optional<asio::ip::address> from,
                                            TimePoint deadline) {
    std::erase_if(endpoints, [&](const tcp::endpoint& to) { return !same_family(to, from); });
    if (endpoints.empty()) throw system_error(asio::error::address_family_not_supported);
    const auto race = std::make_shared<Race>(co_await asio::this_coro::executor);
    const StopAtEnd stop_at_end{race};
    for (std::size_t i = 0; i < endpoints.size() && !race->over; ++i) {
        start(race, endpoints[i], from);
        const bool is_last = i + 1 == endpoints.size();
        const TimePoint next = detail::now() + next_address_after;
        race->timer.expires_at(is_last ? deadline : std::min(deadline, next));
        if (race->running > 0 && !race->over) (void)co_await race->timer.async_wait(quietly);
        if (detail::now() >= deadline) break;
    }
    if (!race->over) {
        throw system_error(race->running > 0 ? asio::error::timed_out : race->last_error);
    }
    co_return std::move(race->winner);
}

}  // namespace ddrun::rendezvous
