#pragma once

#include "rendezvous/protocol/time.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

// Calls that block and cannot be interrupted (getaddrinfo, libmunge), away from the control thread.
namespace ddrun::rendezvous {

// A thread for this one call.
void run_in_own_thread(std::function<void()> work);
// One thread for all of them, in order.
void run_in_side_thread(std::function<void()> work);

// What `call` returns or throws. At `deadline`, or when the waiter is cancelled or destroyed, the
// call is left behind: nobody ever waits for it, not even the end of the process. Then
// boost::system::system_error timed_out. `call` must not refer to anything of the waiter.
template <typename Result>
boost::asio::awaitable<Result> aside(void (*run)(std::function<void()>),
                                     std::function<Result()> call, TimePoint deadline) {
    namespace asio = boost::asio;
    struct Answer {
        Answer(const asio::any_io_executor& where, TimePoint until) : timer(where, until) {}
        asio::steady_timer timer;
        std::optional<Result> value;
        std::exception_ptr failure;
        bool here = false;
    };
    struct Line {  // to the waiter, as long as there is one
        std::mutex mutex;
        std::shared_ptr<Answer> answer;
    };
    struct HangUp {
        std::shared_ptr<Line> line;
        ~HangUp() {
            const std::lock_guard lock(line->mutex);
            line->answer.reset();
        }
    };
    const auto line = std::make_shared<Line>();
    const auto answer = std::make_shared<Answer>(co_await asio::this_coro::executor, deadline);
    line->answer = answer;
    const HangUp hang_up{line};
    run([line, call = std::move(call)] {
        std::optional<Result> value;
        std::exception_ptr failure;
        try {
            value.emplace(call());
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(line->mutex);
        if (!line->answer) return;
        asio::post(
            line->answer->timer.get_executor(),
            [weak = std::weak_ptr(line->answer), value = std::move(value), failure]() mutable {
                const auto waiting = weak.lock();
                if (!waiting) return;
                waiting->value = std::move(value);
                waiting->failure = failure;
                waiting->here = true;
                waiting->timer.cancel();
            });
    });
    // The answer cannot have arrived before this wait begins: it comes through this executor.
    (void)co_await answer->timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (!answer->here) throw boost::system::system_error(asio::error::timed_out);
    if (answer->failure) std::rethrow_exception(answer->failure);
    co_return std::move(*answer->value);
}

}  // namespace ddrun::rendezvous
