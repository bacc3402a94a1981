// The agent socket and whoever may turn up at it: a bad peer hurts only itself.
#include "launcher/runtime/arena_table.hpp"
#include "launcher/runtime/worker_link.hpp"
#include "rendezvous/platform/random.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "tests/support/catch.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <variant>

using namespace ddrun;
using namespace ddrun::launcher;
using namespace std::chrono_literals;

namespace {

constexpr int round_number = 3;
constexpr int first_rank = 4;

struct Answer {
    rendezvous::ToWorker message;
    UniqueFd descriptor;
};

// A peer with blocking calls; the link's io_context is turned while it waits.
class Peer {
  public:
    Peer(boost::asio::io_context& io, const std::string& name) : io_(io) {
        socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path + 1, name.data(), name.size());
        const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
        REQUIRE(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    }

    void send(const std::string& bytes) const {
        REQUIRE(::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }
    void send(const rendezvous::FromWorker& message) const { send(rendezvous::encode(message)); }
    void hello(int local_rank) const {
        send(rendezvous::WorkerHello{1, round_number, first_rank + local_rank});
    }

    // The next message; nullopt when the link closed the connection.
    std::optional<Answer> receive(std::chrono::milliseconds limit = 5s) {
        const auto until = std::chrono::steady_clock::now() + limit;
        while (std::chrono::steady_clock::now() < until) {
            io_.poll();
            if (const auto frame = frames_.next()) {
                return Answer{*rendezvous::decode_to_worker(*frame), std::move(descriptor_)};
            }
            if (!read()) return std::nullopt;
        }
        FAIL("nothing arrived");
        return std::nullopt;
    }
    bool closed(std::chrono::milliseconds limit = 5s) { return !receive(limit); }
    template <typename Message>
    Message expect() {
        const auto answer = receive();
        REQUIRE(answer);
        REQUIRE(std::holds_alternative<Message>(answer->message));
        return std::get<Message>(answer->message);
    }
    void hang_up() { socket_.reset(); }

  private:
    bool read() {
        char bytes[4096];
        iovec part{bytes, sizeof bytes};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t size = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (size < 0) {
            ::usleep(200);
            return errno == EAGAIN;
        }
        if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
            descriptor_.reset(fd);
        }
        frames_.append({bytes, static_cast<std::size_t>(size)});
        return size > 0;
    }

    boost::asio::io_context& io_;
    UniqueFd socket_;
    UniqueFd descriptor_;
    rendezvous::FrameReader frames_{rendezvous::max_frame_bytes};
};

// Echoes sets as gets' values would come: enough to see that a peer is served.
class Desk {
  public:
    Desk() { link.begin_round(round_number, first_rank, 4); }

    boost::asio::io_context io{1};
    std::string name = "ddrun-test-" + detail::random_hex_128();
    std::vector<std::pair<int, rendezvous::FromWorker>> said;
    std::vector<int> gone;
    std::string value = "value";
    WorkerLink link{io,
                    name,
                    {[this](int local_rank, rendezvous::FromWorker message) {
                         if (const auto* get = std::get_if<rendezvous::StoreGet>(&message)) {
                             link.send(local_rank, rendezvous::StoreValue{get->id, value});
                         }
                         said.emplace_back(local_rank, std::move(message));
                     },
                     [this](int local_rank) { gone.push_back(local_rank); }},
                    300ms};

    Peer connect() { return Peer(io, name); }
    Peer worker(int local_rank) {
        Peer peer = connect();
        peer.hello(local_rank);
        (void)peer.expect<rendezvous::Welcome>();
        return peer;
    }
    bool serves(Peer& peer) {
        peer.send(rendezvous::StoreGet{77, "key", 0});
        return peer.expect<rendezvous::StoreValue>().id == 77;
    }
};

}  // namespace

TEST_CASE("a worker is greeted and served") {
    Desk desk;
    Peer peer = desk.worker(1);
    CHECK(desk.serves(peer));
    REQUIRE(desk.said.size() == 1);
    CHECK(desk.said[0].first == 1);
    peer.hang_up();
    while (desk.gone.empty()) desk.io.run_one_for(5s);
    CHECK(desk.gone == std::vector<int>{1});
}

TEST_CASE("PORT-5: bytes that are no protocol end their own connection only") {
    Desk desk;
    Peer worker = desk.worker(0);
    const std::string oversized =
        "\xff\xff\xff\xff"
        "whatever";
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.0\r\n\r\n"), oversized, std::string(8, '\0'),
          std::string(8192, 'x'),
          rendezvous::encode(rendezvous::FromWorker(rendezvous::StoreGet{}))}) {
        Peer stranger = desk.connect();
        stranger.send(bytes);
        while (const auto answer = stranger.receive()) {
            CHECK(std::holds_alternative<rendezvous::Refused>(answer->message));
        }
        CHECK(desk.serves(worker));
    }
    CHECK(desk.gone.empty());
}

TEST_CASE("PORT-5: a peer that says nothing, or half a hello, is closed at its deadline") {
    Desk desk;
    Peer silent = desk.connect();
    Peer half = desk.connect();
    half.send(rendezvous::encode(rendezvous::FromWorker(rendezvous::WorkerHello{})).substr(0, 7));
    CHECK(silent.closed(3s));
    CHECK(half.closed(3s));
    Peer worker = desk.worker(0);
    CHECK(desk.serves(worker));
}

TEST_CASE("strangers can be many, and workers are still served") {
    Desk desk;
    Peer worker = desk.worker(0);
    std::vector<Peer> crowd;
    for (int i = 0; i < 200; ++i) crowd.push_back(desk.connect());
    CHECK(desk.serves(worker));
    for (Peer& peer : crowd) CHECK(peer.closed(3s));
    Peer late = desk.worker(1);
    CHECK(desk.serves(late));
}

TEST_CASE(
    "hellos of another round, version, rank, or of a rank that is here, are refused in words") {
    Desk desk;
    Peer worker = desk.worker(2);
    const auto refusal = [&](rendezvous::WorkerHello hello) {
        Peer peer = desk.connect();
        peer.send(hello);
        const std::string words = peer.expect<rendezvous::Refused>().words;
        CHECK(peer.closed());
        return words;
    };
    using Catch::Matchers::Contains;
    CHECK_THAT(refusal({1, 2, 5}), Contains("round 2 is over"));
    CHECK_THAT(refusal({9, round_number, 5}), Contains("version 9"));
    CHECK_THAT(refusal({1, round_number, 3}), Contains("rank 3 is not"));
    CHECK_THAT(refusal({1, round_number, 44}), Contains("not on this node"));
    CHECK_THAT(refusal({1, round_number, 6}), Contains("connected already, from pid"));
    CHECK(desk.serves(worker));
}

TEST_CASE("a peer of another user is told so, and nothing is read from it") {
    constexpr uid_t nobody = 65534;
    if (::geteuid() != 0) {
        WARN("skipped: only root can be two users");
        return;
    }
    Desk desk;
    REQUIRE(::seteuid(nobody) == 0);
    Peer stranger = desk.connect();
    REQUIRE(::seteuid(0) == 0);
    CHECK_THAT(stranger.expect<rendezvous::Refused>().words,
               Catch::Matchers::Contains("uid 65534"));
    CHECK(stranger.closed());
}

TEST_CASE("a rank may connect again once its first connection is gone") {
    Desk desk;
    { Peer first = desk.worker(3); }
    while (desk.gone.empty()) desk.io.run_one_for(5s);
    Peer second = desk.worker(3);
    CHECK(desk.serves(second));
}

TEST_CASE("notices reach those that are there and those that come later in the round") {
    Desk desk;
    Peer early = desk.worker(0);
    desk.link.announce(rendezvous::RoundAborted{5, "rank 5 died"});
    CHECK(early.expect<rendezvous::RoundAborted>().rank == 5);
    Peer late = desk.worker(1);
    CHECK(late.expect<rendezvous::RoundAborted>().words == "rank 5 died");
    desk.link.begin_round(round_number, first_rank, 4);
    CHECK(early.closed());
    Peer next = desk.worker(0);
    CHECK(desk.serves(next));  // and not the notice of the round before
}

TEST_CASE("what a worker said before it ended is known before its end") {
    Desk desk;
    Peer peer = desk.connect();
    peer.hello(1);
    peer.send(rendezvous::NeverRetry{"bad data"});
    peer.hang_up();
    desk.link.catch_up(1);
    REQUIRE(desk.said.size() == 1);
    CHECK(std::get<rendezvous::NeverRetry>(desk.said[0].second).words == "bad data");
}

TEST_CASE("requests of a worker that takes no answers wait, and its answers stay bounded") {
    Desk desk;
    desk.value.assign(256u << 10, 'v');
    Peer greedy = desk.worker(0);
    Peer other = desk.worker(1);
    constexpr std::uint64_t requests = 400;  // 100 MiB of answers
    std::string burst;
    for (std::uint64_t id = 0; id < requests; ++id) {
        burst += rendezvous::encode(rendezvous::FromWorker(rendezvous::StoreGet{id, "key", 0}));
    }
    greedy.send(burst);
    for (int i = 0; i < 100; ++i) desk.io.poll();
    CHECK(desk.said.size() < 16);
    CHECK(desk.serves(other));
    for (std::uint64_t id = 0; id < requests; ++id) {
        CHECK(greedy.expect<rendezvous::StoreValue>().id == id);
    }
}

TEST_CASE("an arena is one memory for all who name it, sealed in its size") {
    Desk desk;
    ArenaTable arenas;
    const auto memory_of = [&](std::uint64_t bytes) {
        Peer peer = desk.worker(0);
        auto answer = arenas.open({9, "ring", bytes});
        desk.link.send(0, answer.reply, answer.memory);
        auto received = peer.receive();
        REQUIRE(received);
        peer.hang_up();
        while (desk.gone.empty()) desk.io.run_one_for(5s);
        desk.gone.clear();
        return received;
    };
    const auto one = memory_of(8192);
    const auto two = memory_of(8192);
    REQUIRE(one->descriptor);
    REQUIRE(two->descriptor);
    CHECK(::pwrite(one->descriptor.get(), "x", 1, 100) == 1);
    char byte = 0;
    CHECK(::pread(two->descriptor.get(), &byte, 1, 100) == 1);
    CHECK(byte == 'x');
    CHECK(::ftruncate(two->descriptor.get(), 0) != 0);
    const auto refused = memory_of(4096);
    CHECK(std::get<rendezvous::StoreFailed>(refused->message).error ==
          rendezvous::StoreError::mismatch);
}

TEST_CASE("arenas have limits: none empty, none absurd, not too many") {
    ArenaTable arenas;
    const auto error_of = [&](const rendezvous::ArenaOpen& request) {
        const auto answer = arenas.open(request);
        const auto* failed = std::get_if<rendezvous::StoreFailed>(&answer.reply);
        return failed ? failed->error : rendezvous::StoreError::none;
    };
    using rendezvous::StoreError;
    CHECK(error_of({1, "empty", 0}) == StoreError::too_large);
    CHECK(error_of({1, "huge", max_arena_bytes + 1}) == StoreError::too_large);
    CHECK(error_of({1, std::string(rendezvous::max_key_bytes + 1, 'n'), 1}) ==
          StoreError::too_large);
    for (std::size_t i = 0; i < max_arenas; ++i) {
        REQUIRE(error_of({1, std::to_string(i), 1}) == StoreError::none);
    }
    CHECK(error_of({1, "one more", 1}) == StoreError::full);
}
