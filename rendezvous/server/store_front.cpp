#include "rendezvous/server/store_front.hpp"

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

namespace ddrun::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t read_bytes = 64u << 10;
constexpr std::size_t backlog = 1u << 20;  // beyond it a client's requests wait
constexpr std::size_t kept_capacity = 4u << 10;
constexpr std::size_t accepted_at_once = 256;
constexpr auto descriptor_pause = std::chrono::milliseconds(50);
constexpr char wake_up = 0;

}  // namespace

class StoreFront::Session : public std::enable_shared_from_this<Session> {
  public:
    Session(StoreFront& front, tcp::socket socket, Client client)
        : front_(&front), socket_(std::move(socket)), client_(client) {}

    [[nodiscard]] Client client() const { return client_; }
    [[nodiscard]] std::string& outgoing() { return outgoing_; }

    void wait_readable() {
        if (reading_ || front_ == nullptr) return;
        reading_ = true;
        socket_.async_wait(tcp::socket::wait_read,
                           [self = shared_from_this()](const error_code& error) {
                               self->reading_ = false;
                               if (!error && self->front_ != nullptr) self->read();
                           });
    }
    void flush() {
        if (!writing_) write();
    }
    // By the front, which forgets it.
    void close() {
        front_ = nullptr;
        error_code ignored;
        socket_.close(ignored);
    }

  private:
    [[nodiscard]] std::size_t unsent() const { return outgoing_.size() - sent_; }

    void read() {
        auto& buffer = front_->buffer_;
        const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return wait_readable();
        if (got <= 0) return front_->drop(client_);
        requests_.append({buffer.data(), static_cast<std::size_t>(got)});
        serve();
    }
    // Until nothing whole is left, or the client is too far behind with its answers.
    void serve() {
        const auto self = shared_from_this();
        StoreFront& front = *front_;
        for (bool more = true; more && front_ != nullptr && unsent() <= backlog;) {
            const tcpstore::Request* request = requests_.next();
            more = request != nullptr;
            if (more) front.answer(*this, *request, requests_.is_legacy());
            if (front_ != nullptr && (!more || unsent() > backlog)) flush();
        }
        if (front_ != nullptr && requests_.broken()) front.drop(client_);
        if (front_ != nullptr && unsent() <= backlog) wait_readable();
        front.flush_woken();
    }
    void write() {
        while (front_ != nullptr && unsent() > 0) {
            const ssize_t sent =
                ::send(socket_.native_handle(), outgoing_.data() + sent_, unsent(), MSG_NOSIGNAL);
            if (sent < 0 && errno == EINTR) continue;
            if (sent < 0 && errno == EAGAIN) return wait_writable();
            if (sent < 0) return front_->drop(client_);
            sent_ += static_cast<std::size_t>(sent);
        }
        outgoing_.clear();
        sent_ = 0;
        if (outgoing_.capacity() > kept_capacity) outgoing_.shrink_to_fit();
    }
    void wait_writable() {
        writing_ = true;
        socket_.async_wait(tcp::socket::wait_write,
                           [self = shared_from_this()](const error_code& error) {
                               self->writing_ = false;
                               if (error || self->front_ == nullptr) return;
                               self->write();
                               if (self->front_ != nullptr && !self->reading_) self->serve();
                           });
    }

    StoreFront* front_;  // null: closed
    tcp::socket socket_;
    Client client_;
    tcpstore::RequestReader requests_;
    std::string outgoing_;
    std::size_t sent_ = 0;
    bool reading_ = false;
    bool writing_ = false;
};

StoreFront::StoreFront(asio::io_context& io, const tcp::endpoint& endpoint)
    : io_(io), acceptor_(io), store_(std::make_unique<tcpstore::Store>()), buffer_(read_bytes) {
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    if (endpoint.address().is_v6()) acceptor_.set_option(asio::ip::v6_only(false));
    acceptor_.non_blocking(true);
    acceptor_.bind(endpoint);
    acceptor_.listen(asio::socket_base::max_listen_connections);
    accept();
}

StoreFront::~StoreFront() {
    start_over();
}

void StoreFront::start_over() {
    woken_.clear();
    for (const auto& [client, session] : std::exchange(sessions_, {})) session->close();
    store_ = std::make_unique<tcpstore::Store>();
}

tcp::endpoint StoreFront::endpoint() const {
    return acceptor_.local_endpoint();
}

void StoreFront::accept() {
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](const error_code& error) {
        if (error) return;
        for (std::size_t i = 0; i < accepted_at_once; ++i) {
            error_code refused;
            tcp::socket socket(io_);
            acceptor_.accept(socket, refused);
            if (refused == asio::error::would_block || refused == asio::error::try_again) break;
            if (refused) {  // out of descriptors: others may be given back
                const auto pause = std::make_shared<asio::steady_timer>(io_, descriptor_pause);
                return pause->async_wait([this, pause](const error_code& ended) {
                    if (!ended && acceptor_.is_open()) accept();
                });
            }
            error_code ignored;
            socket.non_blocking(true, ignored);
            socket.set_option(tcp::no_delay(true), ignored);
            const Client client = ++last_client_;
            const auto session = std::make_shared<Session>(*this, std::move(socket), client);
            sessions_.emplace(client, session);
            session->wait_readable();
        }
        accept();
    });
}

void StoreFront::answer(Session& session, const tcpstore::Request& request, bool is_legacy) {
    const auto outcome = store_->handle(session.client(), is_legacy, request, session.outgoing());
    for (const Client client : outcome.woken) {
        const auto found = sessions_.find(client);
        if (found == sessions_.end()) continue;
        found->second->outgoing().push_back(wake_up);
        woken_.push_back(found->second);
    }
    if (outcome.close) drop(session.client());
}

void StoreFront::flush_woken() {
    for (const auto& session : std::exchange(woken_, {})) session->flush();
}

void StoreFront::drop(Client client) {
    const auto found = sessions_.find(client);
    if (found == sessions_.end()) return;
    const auto session = std::move(found->second);
    sessions_.erase(found);
    store_->forget(client);
    session->close();
}

}  // namespace ddrun::rendezvous
