#pragma once

#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/server/guest_list.hpp"
#include "rendezvous/server/jobs.hpp"
#include "rendezvous/transport/address.hpp"
#include "rendezvous/transport/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ddrun::rendezvous {

struct ServerSettings {
    JobsSettings jobs;
    Security security;
    // One line for people: who was turned away, what is exhausted.
    std::function<void(const std::string& words)> say;

    Duration handshake_timeout = std::chrono::seconds(5);
    std::size_t most_strangers = 1024;  // connections that have not proved who they are, at once
    // A peer that takes nothing is dropped at so much.
    std::size_t most_unsent_bytes = std::size_t{128} << 20;
};

// The shell of the jobs: listens, lets peers prove themselves, carries messages, owns one timer.
// Belongs to the thread of its io_context; never blocks.
class Server {
  public:
    Server(boost::asio::io_context& io, ServerSettings settings);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Listens on exactly this address; port 0: any free one. Throws boost::system::system_error.
    // May be called for several addresses. Returns what it listens on.
    boost::asio::ip::tcp::endpoint listen(const boost::asio::ip::tcp::endpoint& endpoint);

    // Every job is over and its nodes have heard so.
    [[nodiscard]] bool all_told() const { return jobs_.all_told(); }
    // Called whenever that may have become true.
    void on_told(std::function<void()> told) { told_ = std::move(told); }

    [[nodiscard]] std::vector<JobStatus> status() const;
    [[nodiscard]] std::size_t connections() const { return peers_.size(); }
    [[nodiscard]] std::size_t turned_away() const { return guests_.total(); }

    // Takes no further connection and drops all.
    void close();

  private:
    struct Peer {
        ConnectionId id = 0;
        std::unique_ptr<Stream> stream;
        FrameReader frames{max_hello_frame_bytes};
        std::string outgoing;
        bool writing = false;
        bool closing = false;  // when everything is written
        bool greeted = false;  // its hello was well-formed
    };
    using PeerPtr = std::shared_ptr<Peer>;
    struct Stranger {
        boost::asio::ip::tcp::endpoint from;
    };

    boost::asio::awaitable<void> accept(std::shared_ptr<boost::asio::ip::tcp::acceptor> acceptor);
    boost::asio::awaitable<void> welcome(boost::asio::ip::tcp::socket socket);
    boost::asio::awaitable<void> serve(PeerPtr peer);
    boost::asio::awaitable<void> write(PeerPtr peer);
    [[nodiscard]] bool take_frames(const PeerPtr& peer, std::string_view bytes);
    void turn_away(const boost::asio::ip::tcp::endpoint& from, const std::string& reason);
    void read_obituary(const std::string& frame);

    void happen(const ServiceEvent& event);
    void perform(const Jobs::Actions& actions);
    void act(const SendToPeer& action);
    void act(const ClosePeer& action);
    void drop(Peer& peer);
    void set_timer();
    void beat();

    boost::asio::io_context& io_;
    ServerSettings settings_;
    Jobs jobs_;
    GuestList guests_;
    std::vector<std::shared_ptr<boost::asio::ip::tcp::acceptor>> acceptors_;
    std::unordered_map<ConnectionId, PeerPtr> peers_;
    ConnectionId last_id_ = 0;
    std::size_t strangers_ = 0;
    boost::asio::steady_timer timer_;
    std::optional<TimePoint> timer_set_for_;
    boost::asio::steady_timer pulse_;  // measures how late this thread is
    TimePoint pulse_due_{};
    std::vector<char> buffer_;
    std::function<void()> told_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddrun::rendezvous
