#pragma once

#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/server/guest_list.hpp"
#include "rendezvous/server/jobs.hpp"
#include "rendezvous/server/server_status.hpp"
#include "rendezvous/transport/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ddrun::rendezvous {

struct ServerSettings {
    JobsSettings jobs;
    Security security;
    // One line for people: who was turned away, what is exhausted.
    std::function<void(const std::string& words)> say;

    // A connection that says nothing at all is closed after the first time, one that has not said
    // a whole hello after the second.
    Duration silence_timeout = std::chrono::seconds(1);
    Duration hello_timeout = std::chrono::seconds(5);
    // Connections that have not said their hello, at once; more wait in the kernel's queue.
    std::size_t most_strangers = 512;
    // A peer with so much to take is not read from until it took some, and dropped at the second.
    std::size_t unsent_to_pause = std::size_t{16} << 20;
    std::size_t unsent_to_drop = std::size_t{256} << 20;
};

// The shell of the jobs: listens, lets peers prove themselves, carries messages, owns one timer.
// Belongs to the thread of its io_context; never blocks.
class Server {
  public:
    Server(boost::asio::io_context& io, ServerSettings settings);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Listens on exactly this address, where [::] is every address of both kinds; port 0: any free
    // one. Throws boost::system::system_error. May be called for several addresses. Returns what it
    // listens on.
    boost::asio::ip::tcp::endpoint listen(const boost::asio::ip::tcp::endpoint& endpoint);
    // The same with one that listens already (endpoint_owner.hpp).
    boost::asio::ip::tcp::endpoint listen(boost::asio::ip::tcp::acceptor acceptor);

    // Every job is over and its nodes have heard so.
    [[nodiscard]] bool all_told() const { return jobs_.all_told(); }
    // Called from the io_context whenever that may have become true; may destroy the server.
    void on_told(std::function<void()> told) { told_ = std::move(told); }

    [[nodiscard]] ServerStatus status() const;

    // Takes no further connection and drops all.
    void close();

  private:
    struct Peer {
        ConnectionId id = 0;
        std::unique_ptr<Stream> stream;
        FrameReader frames{max_hello_frame_bytes};
        std::string outgoing;
        std::size_t unheard_bytes = 0;  // of a hello that is not complete
        bool greeted = false;           // its hello was well-formed
        bool queued = false;            // in to_write_
        bool writing = false;
        bool parting = false;  // what was said still goes out; nothing is heard any more
    };
    using PeerPtr = std::shared_ptr<Peer>;
    using AcceptorPtr = std::shared_ptr<boost::asio::ip::tcp::acceptor>;

    boost::asio::awaitable<void> accept(AcceptorPtr acceptor);
    boost::asio::awaitable<void> meet(boost::asio::ip::tcp::socket socket);
    void admit(std::unique_ptr<Stream> stream);
    void stranger_left();
    void turn_away(const boost::asio::ip::tcp::endpoint& from, const std::string& why);
    void read_obituary(const std::string& frame);

    boost::asio::awaitable<void> serve(PeerPtr peer);
    boost::asio::awaitable<void> read(PeerPtr peer);
    boost::asio::awaitable<void> write(PeerPtr peer);
    boost::asio::awaitable<void> until_it_took_some(PeerPtr peer);
    [[nodiscard]] bool take_frames(const PeerPtr& peer, std::string_view bytes);
    [[nodiscard]] bool may_hold(Peer& peer, std::size_t more);
    void greeted(Peer& peer);
    void part_with(const PeerPtr& peer);

    void happen(const ServiceEvent& event);
    void perform(const Jobs::Actions& actions);
    void act(const SendToPeer& action);
    void act(const ClosePeer& action);
    [[nodiscard]] TimePoint look_at_clock();
    void end_turn_soon();
    void end_turn();
    void write_some();
    void set_timer();
    void beat();
    void close_overdue(TimePoint now);

    boost::asio::io_context& io_;
    ServerSettings settings_;
    std::shared_ptr<const Security> security_;  // for handshakes that outlive the server
    Jobs jobs_;
    GuestList guests_;
    std::vector<AcceptorPtr> acceptors_;
    std::unordered_map<ConnectionId, PeerPtr> peers_;
    std::multimap<TimePoint, std::weak_ptr<Peer>> closings_;  // without a hello, or parting
    std::deque<PeerPtr> to_write_;
    ConnectionId last_id_ = 0;

    std::size_t strangers_ = 0;
    std::size_t unheard_bytes_ = 0;
    std::size_t greetings_ = 0;      // since the last beat
    boost::asio::steady_timer room_;  // cancelled when a stranger left
    bool exhausted_ = false;

    boost::asio::steady_timer timer_;
    std::optional<TimePoint> timer_set_for_;
    boost::asio::steady_timer pulse_;
    TimePoint last_look_{};
    TimePoint last_beat_{};
    TimePoint started_{};
    bool turn_ends_ = false;
    std::vector<char> buffer_;  // all connections read into this one
    std::function<void()> told_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddrun::rendezvous
