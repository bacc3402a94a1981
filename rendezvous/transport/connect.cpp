// From a name to a connected socket.
#include "rendezvous/transport/address.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <netdb.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace ddrun::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;

namespace {

constexpr auto next_address_after = std::chrono::milliseconds(250);
constexpr auto quietly = asio::as_tuple(asio::use_awaitable);

// getaddrinfo cannot be interrupted, and Asio's resolver waits for it at the end of the process. So
// it runs in a thread that nobody waits for, which tells us as long as we listen.
struct LookUp {
    std::mutex mutex;
    bool given_up = false;                             // from here on the waiter is gone
    std::function<void(int error, Endpoints)> answer;  // called with the mutex held
};

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

void look_up(const std::string& host, int port, const std::shared_ptr<LookUp>& look_up) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
    Endpoints found;
    if (error == 0) {
        found = endpoints_of(list, port);
        ::freeaddrinfo(list);
    }
    const std::lock_guard lock(look_up->mutex);
    if (!look_up->given_up) look_up->answer(error, std::move(found));
}

struct GiveUp {
    std::shared_ptr<LookUp> look_up;
    ~GiveUp() {
        const std::lock_guard lock(look_up->mutex);
        look_up->given_up = true;
    }
};

error_code error_of_look_up(int error) {
    return {error, asio::error::get_addrinfo_category()};
}

}  // namespace

asio::awaitable<Endpoints> resolve(std::string host, int port, TimePoint deadline) {
    error_code not_a_literal;
    const asio::ip::address literal = asio::ip::make_address(host, not_a_literal);
    if (!not_a_literal) {
        co_return Endpoints{{literal, static_cast<unsigned short>(port)}};
    }
    const auto executor = co_await asio::this_coro::executor;
    struct Result {
        Result(const asio::any_io_executor& where, TimePoint until) : timer(where, until) {}
        asio::steady_timer timer;
        int error = EAI_AGAIN;
        Endpoints endpoints;
        bool here = false;
    };
    const auto result = std::make_shared<Result>(executor, deadline);
    const auto search = std::make_shared<LookUp>();
    search->answer = [executor, weak = std::weak_ptr(result)](int error, Endpoints endpoints) {
        asio::post(executor, [weak, error, endpoints = std::move(endpoints)]() mutable {
            const auto waiting = weak.lock();
            if (!waiting) return;
            waiting->error = error;
            waiting->endpoints = std::move(endpoints);
            waiting->here = true;
            waiting->timer.cancel();
        });
    };
    const GiveUp give_up{search};
    std::thread(look_up, host, port, search).detach();
    // The answer may come before the wait begins: then its cancel has nothing to cancel yet.
    if (!result->here) (void)co_await result->timer.async_wait(quietly);
    if (!result->here) throw system_error(asio::error::timed_out, "look-up of " + host);
    if (result->error != 0) throw system_error(error_of_look_up(result->error));
    co_return std::move(result->endpoints);
}

namespace {

struct Race {
    explicit Race(const asio::any_io_executor& executor) : timer(executor), winner(executor) {}

    asio::steady_timer timer;  // cancelled when it is decided
    tcp::socket winner;
    std::vector<std::shared_ptr<tcp::socket>> runners;
    error_code last_error = asio::error::timed_out;
    std::size_t running = 0;
    bool decided = false;

    void lose(error_code error) {
        last_error = error;
        if (--running == 0) timer.cancel();
    }
    void win(tcp::socket& socket) {
        --running;
        if (std::exchange(decided, true)) return;
        winner = std::move(socket);
        timer.cancel();
    }
};

asio::awaitable<void> run(std::shared_ptr<Race> race, std::shared_ptr<tcp::socket> socket,
                          tcp::endpoint to, std::optional<asio::ip::address> from, Duration wait) {
    if (wait > Duration::zero()) {
        asio::steady_timer start(socket->get_executor(), wait);
        (void)co_await start.async_wait(quietly);
    }
    if (race->decided) co_return race->lose(asio::error::operation_aborted);
    error_code error;
    socket->open(to.protocol(), error);
    if (!error && from) socket->bind({*from, 0}, error);
    if (!error) std::tie(error) = co_await socket->async_connect(to, quietly);
    error ? race->lose(error) : race->win(*socket);
}

bool same_family(const tcp::endpoint& endpoint, const std::optional<asio::ip::address>& from) {
    return !from || from->is_v4() == endpoint.address().is_v4();
}

}  // namespace

asio::awaitable<tcp::socket> connect_to_any(Endpoints endpoints,
                                            std::optional<asio::ip::address> from,
                                            TimePoint deadline) {
    const auto executor = co_await asio::this_coro::executor;
    std::erase_if(endpoints, [&](const tcp::endpoint& to) { return !same_family(to, from); });
    if (endpoints.empty()) throw system_error(asio::error::address_family_not_supported);
    const auto race = std::make_shared<Race>(executor);
    race->timer.expires_at(deadline);
    race->running = endpoints.size();
    Duration wait{};
    for (const tcp::endpoint& to : endpoints) {
        race->runners.push_back(std::make_shared<tcp::socket>(executor));
        asio::co_spawn(executor, run(race, race->runners.back(), to, from, wait), asio::detached);
        wait += next_address_after;
    }
    if (race->running > 0 && !race->decided) (void)co_await race->timer.async_wait(quietly);
    const bool won = std::exchange(race->decided, true);
    for (const auto& socket : race->runners) {
        error_code ignored;
        socket->close(ignored);
    }
    if (!won) throw system_error(race->last_error);
    co_return std::move(race->winner);
}

}  // namespace ddrun::rendezvous
