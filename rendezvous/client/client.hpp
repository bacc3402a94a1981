#pragma once

#include "rendezvous/core/node_link.hpp"
#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/transport/address.hpp"
#include "rendezvous/transport/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ddrun::rendezvous {

struct ClientSettings {
    std::string host;  // of the endpoint: a name or an address
    int port = 0;
    Security security;
    std::optional<boost::asio::ip::address> from;  // --local-addr; nothing: the kernel chooses
    // Of one try; tries go on until NodeLink ends them. An address that never answers is given up
    // soon, since the name may mean another one by now.
    Duration look_up_timeout = std::chrono::seconds(10);
    Duration connect_timeout = std::chrono::seconds(2);
    Duration handshake_timeout = std::chrono::seconds(10);
};

// The shell of NodeLink: performs each action with one call, owns one timer and one connection.
// Belongs to the thread of its io_context; never blocks. What is submitted while the io_context
// runs one handler leaves in one write. Memory is bounded by what NodeLink keeps.
class Client {
  public:
    // Called from the io_context or from inside a call; they may call the client again, but not
    // destroy it, `finished` excepted.
    struct Ears {
        std::function<void(FromJob)> deliver;
        std::function<void(const Fence&)> fence;
        std::function<void(TimePoint)> lease_until;
        std::function<void(const std::string& server_address)> arm_obituary;
        // What the endpoint's name means now, before each connect: the moment to serve it.
        std::function<boost::asio::awaitable<void>(Endpoints)> resolved;
        std::function<void()> finished;  // once, the last: nothing more is to be sent
    };

    Client(boost::asio::io_context& io, NodeLinkRules rules, ClientSettings settings, Ears ears);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void start();
    void submit(ToJob payload);
    void abort_waits(int round, std::string words);
    void finish(bool processes_left);

    [[nodiscard]] std::string describe() const { return link_.describe(); }

  private:
    // One try to connect and what came of it. Its coroutines hold it and end soon after it was
    // dropped, without a word and without a look at the client, which may be gone.
    struct Connection {
        std::unique_ptr<Stream> stream;
        FrameReader frames{max_node_frame_bytes};
        std::string outgoing;
        bool writing = false;
        bool dropped = false;
        boost::asio::cancellation_signal cancel;
    };
    using ConnectionPtr = std::shared_ptr<Connection>;

    void happen(NodeLinkEvent event);
    void advance();
    void handle_all();
    void perform(NodeLink::Actions actions);
    void set_timer();

    void act(const OpenConnection& action);
    void act(const CloseConnection& action);
    void act(const SendToServer& action);
    void act(Deliver& action);
    void act(const Fence& action);
    void act(const LeaseUntil& action);
    void act(const ArmObituary& action);

    boost::asio::awaitable<void> live(ConnectionPtr connection);
    boost::asio::awaitable<void> open(ConnectionPtr connection);
    boost::asio::awaitable<void> read(ConnectionPtr connection);
    static boost::asio::awaitable<void> write(ConnectionPtr connection);
    void opened(const Connection& connection);
    void take_frames(Connection& connection, std::string_view bytes);
    void drop();

    boost::asio::io_context& io_;
    NodeLink link_;
    ClientSettings settings_;
    Ears ears_;
    boost::asio::steady_timer timer_;
    std::optional<TimePoint> timer_set_for_;
    std::deque<NodeLinkEvent> events_;
    bool handling_ = false;
    bool told_finished_ = false;
    ConnectionPtr connection_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for a timer that has run out
};

}  // namespace ddrun::rendezvous
