#include "launcher/keeper/link.hpp"

#include "launcher/keeper/messages.hpp"
#include "tests/support/catch.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <map>

using namespace ddrun::launcher::keeper;
using ddrun::UniqueFd;

namespace {

struct Pair {
    Pair() {
        std::array<int, 2> ends{};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
        left.emplace(ends[0]);
        right.emplace(ends[1]);
    }
    std::optional<Link> left;
    std::optional<Link> right;
};

Spawn large_spawn() {
    Spawn order;
    order.round = 7;
    order.strict_binding = true;
    order.plan.rank = 3;
    order.plan.local_rank = 1;
    for (int i = 0; i < 20; ++i) order.plan.argv.emplace_back(std::size_t{100000}, 'a');
    order.plan.environment = {{"A", "1"}, {"EMPTY", ""}};
    order.plan.cpus = {0, 5, 4000};
    order.plan.memory_node = 1;
    order.plan.owns_stdin = true;
    return order;
}

ino_t inode(int fd) {
    struct stat facts {};
    ::fstat(fd, &facts);
    return facts.st_ino;
}

std::string body_of(const std::string& frame) {
    return frame.substr(4);
}

}  // namespace

TEST_CASE("every message to the keeper survives the way there") {
    const Spawn order = large_spawn();
    const auto back = decode_to_keeper(body_of(encode(ToKeeper(order))));
    REQUIRE(back);
    const Spawn& spawn = std::get<Spawn>(*back);
    CHECK(spawn.round == 7);
    CHECK(spawn.strict_binding);
    CHECK(spawn.plan.rank == 3);
    CHECK(spawn.plan.local_rank == 1);
    CHECK(spawn.plan.argv == order.plan.argv);
    CHECK(spawn.plan.environment == order.plan.environment);
    CHECK(spawn.plan.cpus == order.plan.cpus);
    CHECK(spawn.plan.memory_node == order.plan.memory_node);
    CHECK(spawn.plan.owns_stdin);

    const std::vector<ToKeeper> others = {
        Signal{2, 15, {0, 3}}, KillRound{2, 100},  CleanUp{2, 3}, Inspect{2, 3},
        Suspend{false},        Remove{{"/a", ""}}, Quit{}};
    for (const ToKeeper& message : others) {
        const std::string frame = encode(message);
        const auto again = decode_to_keeper(body_of(frame));
        REQUIRE(again);
        CHECK(again->index() == message.index());
        CHECK(encode(*again) == frame);
    }
}

TEST_CASE("every message to the agent survives the way back") {
    const std::vector<FromKeeper> messages = {
        Spawned{1, 2, 345, "affinity: Invalid argument"},
        NotSpawned{1, 2, 13, "exec", "/bin/x"},
        Exited{1, 2, 345, 0x8b, 1'000'000'000'000, 123456},
        StoppedOrContinued{1, 2, true},
        LeftBehind{1, 2, {{345, "sleep 9"}, {346, ""}}},
        RoundClear{1},
        Stuck{1, 345, -1, "cmd", "nfs_wait"},
        Inspected{1, 2, "words\nmore"},
    };
    for (const FromKeeper& message : messages) {
        const std::string frame = encode(message);
        const auto again = decode_from_keeper(body_of(frame));
        REQUIRE(again);
        CHECK(again->index() == message.index());
        CHECK(encode(*again) == frame);
    }
}

TEST_CASE("a frame cut short, too long, or of no known type is refused") {
    Spawn small = large_spawn();
    small.plan.argv = {"x", "y"};
    const std::string body = body_of(encode(ToKeeper(small)));
    for (std::size_t size = 0; size < body.size(); ++size) {
        CHECK_FALSE(decode_to_keeper(body.substr(0, size)));
    }
    CHECK_FALSE(decode_to_keeper(body + "x"));
    CHECK_FALSE(decode_to_keeper(std::string(1, '\x77')));
    CHECK_FALSE(decode_from_keeper(""));
}

TEST_CASE("descriptors arrive with their frame, in order, also when the socket is full") {
    Pair pair;
    std::vector<ino_t> expected;
    const std::string large = encode(ToKeeper(large_spawn()));
    for (int i = 0; i < 6; ++i) {
        std::array<int, 3> fds{};
        for (int& fd : fds) {
            std::array<int, 2> ends{};
            REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
            ::close(ends[1]);
            fd = ends[0];
            expected.push_back(inode(fd));
        }
        pair.left->send(large, fds);
        pair.left->send(encode(ToKeeper(Signal{1, i, {}})));
        // Only borrowed, also by frames that still wait.
        for (const int fd : fds) ::close(fd);
    }
    CHECK(pair.left->wants_write());
    CHECK(pair.left->queued_bytes() > large.size());
    std::vector<std::string> bodies;
    while (bodies.size() < 12) {
        pair.left->flush();
        for (std::string& body : pair.right->receive()) bodies.push_back(std::move(body));
    }
    CHECK_FALSE(pair.left->wants_write());
    CHECK(pair.left->queued_bytes() == 0);
    std::vector<ino_t> arrived;
    for (std::size_t i = 0; i < bodies.size(); i += 2) {
        CHECK(bodies[i] == body_of(large));
        CHECK(decode_to_keeper(bodies[i + 1])->index() == 1);
        for (const UniqueFd& fd : pair.right->take_descriptors(3)) {
            arrived.push_back(inode(fd.get()));
            CHECK(::fcntl(fd.get(), F_GETFD) == FD_CLOEXEC);
        }
    }
    CHECK(arrived == expected);
}

TEST_CASE("a descriptor that does not fit into the receiver's table is missed in its place") {
    Pair pair;
    const std::array<int, 3> streams{0, 1, 2};
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    pair.left->send(encode(ToKeeper(Quit{})), streams);
    pair.left->send(encode(ToKeeper(Quit{})), streams);
    const int next_free = ::dup(0);
    ::close(next_free);
    rlimit low = before;
    low.rlim_cur = static_cast<rlim_t>(next_free) + 2;
    ::setrlimit(RLIMIT_NOFILE, &low);
    std::size_t frames = 0;
    while (frames < 2) frames += pair.right->receive().size();
    ::setrlimit(RLIMIT_NOFILE, &before);
    const auto first = pair.right->take_descriptors(3);
    const auto second = pair.right->take_descriptors(3);
    CHECK(first[0]);
    CHECK(first[1]);
    CHECK_FALSE(first[2]);
    CHECK_FALSE(second[0]);
    CHECK_FALSE(second[2]);
}

TEST_CASE("frames sent before the end are received, then the link is closed") {
    Pair pair;
    pair.left->send(encode(ToKeeper(Quit{})));
    pair.left.reset();
    CHECK(pair.right->receive().size() == 1);
    CHECK(pair.right->closed());
    pair.right->send(encode(ToKeeper(Quit{})));
    CHECK_FALSE(pair.right->wants_write());
}

TEST_CASE("a length of nothing or over the limit closes the link") {
    for (const std::string& length :
         {std::string("\0\0\0\0", 4), std::string("\xff\xff\xff\xff", 4)}) {
        Pair pair;
        pair.left->send(length + "xx");
        CHECK(pair.right->receive().empty());
        CHECK(pair.right->closed());
    }
}
