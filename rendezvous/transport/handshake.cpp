// Who is there: from a connected socket to a stream, on both sides.
#include "rendezvous/protocol/bytes.hpp"
#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "rendezvous/protocol/preface.hpp"
#include "rendezvous/transport/aside.hpp"
#include "rendezvous/transport/deadline.hpp"
#include "rendezvous/transport/munge.hpp"
#include "rendezvous/transport/stream.hpp"
#include "rendezvous/transport/tcp_streams.hpp"
#include "rendezvous/transport/tls_engine.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

// No braced temporary stands in an expression with co_await: g++ 12 copies it bit by bit.
namespace ddrun::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::use_awaitable;
using boost::system::error_code;
using boost::system::system_error;
using Socket = asio::ip::tcp::socket;

constexpr const char* psk_identity = "ddrun";
constexpr char tls_handshake = '\x16';
constexpr std::size_t record_head_bytes = 5;
// Our own first record has less than 300 bytes.
constexpr std::size_t max_client_hello_bytes = 1024;
static_assert(record_head_bytes + max_client_hello_bytes <= max_unknown_bytes);
constexpr std::size_t max_obituary_frame_bytes = 2048;

awaitable<void> read_up_to(Socket& socket, std::string& bytes, std::size_t size) {
    const std::size_t had = bytes.size();
    if (had >= size) co_return;
    bytes.resize(size);
    co_await asio::async_read(socket, asio::buffer(bytes.data() + had, size - had), use_awaitable);
}

awaitable<std::size_t> read_frame_size(Socket& socket, std::size_t limit) {
    std::string head;
    co_await read_up_to(socket, head, length_bytes);
    const std::size_t size = ByteReader(head).number<std::uint32_t>();
    if (size == 0 || size > limit) throw Foreign("malformed first frame");
    co_return size;
}

awaitable<std::string> read_frame_body(Socket& socket, std::size_t limit) {
    const std::size_t size = co_await read_frame_size(socket, limit);
    std::string body;
    co_await read_up_to(socket, body, size);
    co_return body;
}

awaitable<void> skip_frame(Socket& socket, std::size_t limit) {
    std::size_t left = co_await read_frame_size(socket, limit);
    std::array<char, 1024> ignored;
    while (left > 0) {
        const std::size_t size = std::min(left, ignored.size());
        left -= co_await socket.async_read_some(asio::buffer(ignored.data(), size), use_awaitable);
    }
}

// All that the peer sent must have been read, or the system resets the connection and the peer
// does not see this.
awaitable<void> part_with(Socket& socket, std::string words) {
    error_code ignored;
    co_await asio::async_write(socket, asio::buffer(words),
                               asio::redirect_error(use_awaitable, ignored));
    socket.shutdown(Socket::shutdown_send, ignored);
    socket.close(ignored);
}

// `last_words` go with the last bytes of the handshake.
awaitable<void> shake_hands(Socket& socket, TlsEngine& engine, std::string_view last_words) {
    bool done = false;
    while (!done) {
        std::exception_ptr refused;
        try {
            done = engine.handshake();
            if (done) engine.write(last_words);
        } catch (...) {
            refused = std::current_exception();
        }
        std::string output = engine.take_output();
        if (refused) {
            co_await part_with(socket, std::move(output));
            std::rethrow_exception(refused);
        }
        co_await asio::async_write(socket, asio::buffer(output), use_awaitable);
        if (done) co_return;
        std::array<char, 1024> buffer;
        const std::size_t size =
            co_await socket.async_read_some(asio::buffer(buffer), use_awaitable);
        engine.receive({buffer.data(), size});
    }
}

// --- server -------------------------------------------------------------------------------------

// Nothing is spent on TLS before a whole first record of credible size is there.
awaitable<std::string> read_client_hello(Socket& socket, std::string bytes) {
    constexpr const char* no_ddrun = "speaks TLS, but is no ddrun";
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    co_await read_up_to(socket, bytes, 2);
    if (byte(1) != 3) throw Foreign(no_ddrun);
    co_await read_up_to(socket, bytes, record_head_bytes);
    const std::size_t size = std::size_t{byte(3)} << 8 | byte(4);
    if (size == 0 || size > max_client_hello_bytes) throw Foreign(no_ddrun);
    co_await read_up_to(socket, bytes, record_head_bytes + size);
    co_return bytes;
}

awaitable<void> read_inner_preface(Socket& socket, TlsEngine& engine) {
    std::string received;
    while (received.size() < preface_bytes) {
        std::array<char, preface_bytes> buffer;
        const std::span<char> rest(buffer.data(), preface_bytes - received.size());
        if (const std::size_t size = engine.read(rest)) {
            received.append(buffer.data(), size);
            continue;
        }
        std::array<char, 1024> records;
        const std::size_t size =
            co_await socket.async_read_some(asio::buffer(records), use_awaitable);
        engine.receive({records.data(), size});
    }
    if (check_preface(received) != PrefaceCheck{PrefaceCheck::Result::whole, PrefaceKind::node}) {
        throw Foreign("knows the secret, but is no ddrun node");
    }
}

awaitable<std::unique_ptr<Stream>> accept_tls(Socket& socket, PreSharedKey secret,
                                              std::string received) {
    auto engine = std::make_unique<TlsEngine>(TlsEngine::Side::server, std::move(secret));
    engine->receive(received);
    co_await shake_hands(socket, *engine, {});
    co_await read_inner_preface(socket, *engine);
    co_return std::make_unique<TlsStream>(std::move(socket), std::move(engine));
}

awaitable<std::unique_ptr<Stream>> meet_tls(Socket& socket, const Security& security,
                                            std::string received) {
    received = co_await read_client_hello(socket, std::move(received));
    switch (security.mode) {
        case Security::Mode::psk: {
            PreSharedKey secret{psk_identity, security.key};
            co_return co_await accept_tls(socket, std::move(secret), std::move(received));
        }
        case Security::Mode::plain:
            co_await part_with(socket, alert_record(Alert::insufficient_security));
            throw NotAuthorised("it has a secret, and this rendezvous runs with --insecure");
        case Security::Mode::munge:
            co_await part_with(socket, alert_record(Alert::unknown_identity));
            throw NotAuthorised("it uses a shared secret, and this rendezvous munge");
    }
    throw Foreign("unknown");
}

// A node without a secret where one is needed: it understands a refusal.
awaitable<void> refuse_plain(Socket& socket) {
    co_await skip_frame(socket, max_hello_frame_bytes);
    NodeRefused refusal;
    refusal.exit_code = exit_code::not_authorised;
    refusal.words =
        "this rendezvous needs the job's secret, and this node runs with --insecure: give "
        "--insecure to all nodes or to none";
    co_await part_with(socket, encode(FromServer(std::move(refusal))));
    throw NotAuthorised("it runs with --insecure, and this rendezvous needs the job's secret");
}

awaitable<PrefaceKind> read_preface(Socket& socket, std::string received) {
    PrefaceCheck check = check_preface(received);
    while (check.result == PrefaceCheck::Result::incomplete) {
        std::array<char, preface_bytes> buffer;
        const std::size_t size = co_await socket.async_read_some(
            asio::buffer(buffer.data(), preface_bytes - received.size()), use_awaitable);
        received.append(buffer.data(), size);
        check = check_preface(received);
    }
    if (check.result == PrefaceCheck::Result::foreign) throw Foreign("is no ddrun");
    co_return check.kind;
}

awaitable<std::unique_ptr<Stream>> meet_munge(Socket& socket, const Security& security,
                                              TimePoint deadline) {
    const std::string credential = co_await read_frame_body(socket, max_credential_bytes);
    // Its TLS hello follows at once; unread it would keep our alert from arriving.
    std::string hello = co_await read_client_hello(socket, {});
    if (security.mode != Security::Mode::munge) {
        const bool plain = security.mode == Security::Mode::plain;
        co_await part_with(
            socket, alert_record(plain ? Alert::insufficient_security : Alert::unknown_identity));
        throw NotAuthorised(plain ? "it uses munge, and this rendezvous runs with --insecure"
                                  : "it uses munge, and this rendezvous a shared secret");
    }
    std::function<PreSharedKey()> decode = [credential, munge_socket = security.munge_socket] {
        return decode_credential(credential, munge_socket);
    };
    std::optional<PreSharedKey> secret;
    std::string refused;
    try {
        secret = co_await aside(run_in_side_thread, std::move(decode), deadline);
    } catch (const NotAuthorised& why) {
        refused = why.what();
    }
    if (!secret) {
        co_await part_with(socket, alert_record(Alert::access_denied));
        throw NotAuthorised(refused);
    }
    co_return co_await accept_tls(socket, std::move(*secret), std::move(hello));
}

awaitable<Accepted> meet_preface(Socket& socket, const Security& security, std::string received,
                                 TimePoint deadline) {
    switch (co_await read_preface(socket, std::move(received))) {
        case PrefaceKind::obituary: {
            Accepted accepted;
            accepted.obituary = co_await read_frame_body(socket, max_obituary_frame_bytes);
            co_return accepted;
        }
        case PrefaceKind::node:
            if (security.mode != Security::Mode::plain) co_await refuse_plain(socket);
            co_return Accepted{std::make_unique<PlainStream>(std::move(socket)), {}};
        case PrefaceKind::munge: {
            Accepted accepted;
            accepted.stream = co_await meet_munge(socket, security, deadline);
            co_return accepted;
        }
    }
    throw Foreign("unknown");
}

awaitable<Accepted> meet(Socket& socket, const Security& security, TimePoint deadline) {
    std::string received(preface_bytes, '\0');
    received.resize(co_await socket.async_read_some(asio::buffer(received), use_awaitable));
    if (received.front() == tls_handshake) {
        Accepted accepted;
        accepted.stream = co_await meet_tls(socket, security, std::move(received));
        co_return accepted;
    }
    co_return co_await meet_preface(socket, security, std::move(received), deadline);
}

// --- client -------------------------------------------------------------------------------------

// A key of this connection only, in a credential that only our own user can open.
awaitable<PreSharedKey> introduce_by_munge(Socket& socket, std::string munge_socket,
                                           TimePoint deadline) {
    PreSharedKey secret = random_key();
    std::function<std::string()> encode_it = [secret, munge_socket] {
        return encode_credential(secret, munge_socket);
    };
    std::string credential;
    try {
        credential = co_await aside(run_in_side_thread, std::move(encode_it), deadline);
    } catch (const system_error&) {
        throw;
    } catch (const std::runtime_error& error) {  // the daemon may come back
        throw Foreign(std::string("no credential for this node: ") + error.what());
    }
    std::string opening = preface(PrefaceKind::munge);
    ByteWriter frame;
    frame.number(static_cast<std::uint32_t>(credential.size()));
    opening += frame.take() + credential;
    co_await asio::async_write(socket, asio::buffer(opening), use_awaitable);
    co_return secret;
}

awaitable<std::unique_ptr<Stream>> introduce(Socket& socket, const Security& security,
                                             TimePoint deadline) {
    const std::string opening = preface(PrefaceKind::node);
    if (security.mode == Security::Mode::plain) {
        co_await asio::async_write(socket, asio::buffer(opening), use_awaitable);
        co_return std::make_unique<PlainStream>(std::move(socket));
    }
    PreSharedKey secret{psk_identity, security.key};
    if (security.mode == Security::Mode::munge) {
        secret = co_await introduce_by_munge(socket, security.munge_socket, deadline);
    }
    auto engine = std::make_unique<TlsEngine>(TlsEngine::Side::client, std::move(secret));
    co_await shake_hands(socket, *engine, opening);
    co_return std::make_unique<TlsStream>(std::move(socket), std::move(engine));
}

[[noreturn]] void rethrow(const system_error& error, const Deadline& deadline) {
    if (deadline.passed()) throw system_error(asio::error::timed_out);
    throw system_error(error.code());
}

}  // namespace

awaitable<Accepted> accept_stream(Socket socket, const Security& security, TimePoint deadline) {
    const Deadline limit(socket, deadline);
    try {
        error_code ignored;
        socket.set_option(asio::ip::tcp::no_delay(true), ignored);
        co_return co_await meet(socket, security, deadline);
    } catch (const system_error& error) {
        rethrow(error, limit);
    }
}

awaitable<std::unique_ptr<Stream>> open_stream(Socket socket, Security security,
                                               TimePoint deadline) {
    const Deadline limit(socket, deadline);
    try {
        error_code ignored;
        socket.set_option(asio::ip::tcp::no_delay(true), ignored);
        co_return co_await introduce(socket, security, deadline);
    } catch (const system_error& error) {
        rethrow(error, limit);
    }
}

}  // namespace ddrun::rendezvous
