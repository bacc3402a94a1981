#pragma once

#include "rendezvous/protocol/time.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>

namespace ddrun::rendezvous {

// Closes a socket when its time is over, which ends what is being waited for there.
class Deadline {
  public:
    Deadline(boost::asio::ip::tcp::socket& socket, TimePoint at)
        : timer_(socket.get_executor(), at) {
        timer_.async_wait([state = state_, &socket](const boost::system::error_code& error) {
            if (error || state->over) return;
            state->passed = true;
            boost::system::error_code ignored;
            socket.close(ignored);
        });
    }
    ~Deadline() { state_->over = true; }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;

    [[nodiscard]] bool passed() const { return state_->passed; }

  private:
    struct State {
        bool over = false;
        bool passed = false;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
    boost::asio::steady_timer timer_;
};

}  // namespace ddrun::rendezvous
