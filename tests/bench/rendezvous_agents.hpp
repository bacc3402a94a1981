#pragma once

#include "rendezvous/core/node_link.hpp"
#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/transport/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Thousands of agents in one process: each is a NodeLink with its own connection.
namespace ddrun::bench {

constexpr int most_opening = 500;  // connections being made at once

struct Crowd {
    boost::asio::io_context io{1};
    boost::asio::ip::tcp::endpoint server;
    rendezvous::Security security;
    std::vector<char> buffer = std::vector<char>(std::size_t{256} << 10);

    int opening = 0;                                               // connections being made
    std::deque<std::shared_ptr<boost::asio::steady_timer>> queue;  // who waits to make one
    int granted = 0;      // agents that were granted round 1
    int welcomed = 0;     // welcomes so far
    int lost = 0;         // connections that ended
    int stopped = 0;      // StopRound or Verdict, or told to kill: somebody was expelled
    std::string trouble;  // the first of it in words
    TimePoint first_connection{};
    TimePoint last_grant{};
};

class CrowdAgent {
  public:
    CrowdAgent(Crowd& crowd, int number, int of);
    void start();
    void drop_connection();  // as if the network had

  private:
    struct Connection {
        std::unique_ptr<rendezvous::Stream> stream;
        rendezvous::FrameReader frames{rendezvous::max_node_frame_bytes};
        std::string outgoing;
        bool writing = false;
        bool dropped = false;
    };
    using ConnectionPtr = std::shared_ptr<Connection>;

    void happen(rendezvous::NodeLinkEvent event);
    void perform(rendezvous::NodeLink::Actions actions);
    void set_timer();
    void act(const rendezvous::OpenConnection&);
    void act(const rendezvous::CloseConnection&);
    void act(const rendezvous::SendToServer& action);
    void act(const rendezvous::Deliver& action);
    void act(const rendezvous::Fence& action);
    void act(const rendezvous::LeaseUntil&) {}
    void act(const rendezvous::ArmObituary&) { ++crowd_.welcomed; }
    void opened();
    boost::asio::awaitable<void> live(ConnectionPtr connection);
    boost::asio::awaitable<void> write(ConnectionPtr connection);
    void take(const ConnectionPtr& connection, std::string_view bytes);

    Crowd& crowd_;
    rendezvous::NodeLink link_;
    boost::asio::steady_timer timer_;
    std::optional<TimePoint> timer_set_for_;
    ConnectionPtr connection_;
};

}  // namespace ddrun::bench
