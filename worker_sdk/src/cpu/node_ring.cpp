#include "worker_sdk/src/cpu/node_ring.hpp"

#include "worker_sdk/src/cpu/combine.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ddrun::detail {
namespace {

constexpr std::size_t scratch_bytes = 256 * 1024;  // fits the second-level cache
constexpr std::uint32_t meeting_mark = 0x8000'0000;

// Before every block, and all there is to a meeting.
struct Header {
    Call call;
    std::uint32_t index = 0;  // of the block in the plan; of the round in a meeting
    std::uint32_t flag = 0;
};
static_assert(sizeof(Header) == 32);

[[noreturn]] void lost(int rank, const char* words) {
    throw WireTrouble(WireTrouble::Kind::closed, rank, words);
}

// Bytes that the socket takes, or gives, now; 0: none.
std::size_t send_some(int socket, int rank, const void* bytes, std::size_t count) {
    const ssize_t sent = ::send(socket, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno != EAGAIN && errno != EINTR) lost(rank, std::strerror(errno));
    return 0;
}
std::size_t receive_some(int socket, int rank, void* bytes, std::size_t count) {
    const ssize_t got = ::recv(socket, bytes, count, MSG_DONTWAIT);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) lost(rank, "it has closed the connection");
    if (errno != EAGAIN && errno != EINTR) lost(rank, std::strerror(errno));
    return 0;
}

void check_header(const Header& header, const Call& call, std::uint32_t index, int rank) {
    if (header.call != call) throw CallMismatch{rank, header.call};
    if (header.index != index) lost(rank, "it is at another place of the same call");
}

// Waits for either end of the lane; 0 events: nothing wanted of it.
void wait_for_ends(int out, short out_events, int in, short in_events, int rank,
                   const Patience& patience) {
    std::array<pollfd, 2> fds = {
        {{out_events != 0 ? out : -1, out_events, 0}, {in_events != 0 ? in : -1, in_events, 0}}};
    if (::poll(fds.data(), fds.size(), patience.glance()) > 0) return;
    patience.check(rank, "no data in time");
}

}  // namespace

// The blocks that leave, header by header.
class NodeRing::Outgoing {
  public:
    Outgoing(const Peer& to, const Call& call, const RingPlan& plan, std::span<const Block> blocks)
        : to_(to), call_(call), plan_(plan), blocks_(blocks) {}

    [[nodiscard]] bool done() const { return at_ == plan_.out.size(); }
    // Bytes of the current block that may leave; `arrived` of the block at `in_index` have come.
    [[nodiscard]] std::size_t available(std::size_t in_index, std::size_t arrived) const {
        const auto& block = plan_.out[at_];
        const std::size_t all = blocks_[static_cast<std::size_t>(block.block)].bytes;
        if (block.follows == RingPlan::ready) return all;
        const auto follows = static_cast<std::size_t>(block.follows);
        return follows < in_index ? all : follows == in_index ? arrived : 0;
    }
    [[nodiscard]] bool may_send(std::size_t in_index, std::size_t arrived) const {
        return !done() && (header_sent_ < sizeof(Header) || sent_ < available(in_index, arrived) ||
                           bytes() == 0);
    }
    // Whether anything left.
    bool send(std::size_t in_index, std::size_t arrived) {
        if (!may_send(in_index, arrived)) return false;
        std::size_t moved = 0;
        if (header_sent_ < sizeof(Header)) {
            const Header header{call_, static_cast<std::uint32_t>(at_), 0};
            moved = send_some(to_.socket.get(), to_.rank,
                              reinterpret_cast<const char*>(&header) + header_sent_,
                              sizeof header - header_sent_);
            header_sent_ += moved;
        } else if (const std::size_t now = available(in_index, arrived) - sent_; now > 0) {
            moved = send_some(to_.socket.get(), to_.rank, block().data + sent_, now);
            sent_ += moved;
        }
        if (header_sent_ == sizeof(Header) && sent_ == bytes()) {
            ++at_;
            header_sent_ = sent_ = 0;
            return true;
        }
        return moved > 0;
    }

  private:
    [[nodiscard]] const Block& block() const {
        return blocks_[static_cast<std::size_t>(plan_.out[at_].block)];
    }
    [[nodiscard]] std::size_t bytes() const { return block().bytes; }

    const Peer& to_;
    const Call& call_;
    const RingPlan& plan_;
    std::span<const Block> blocks_;
    std::size_t at_ = 0;
    std::size_t header_sent_ = 0;
    std::size_t sent_ = 0;
};

// The blocks that arrive; those that are folded pass through scratch memory.
class NodeRing::Incoming {
  public:
    Incoming(const Peer& from, const Call& call, const RingPlan& plan,
             std::span<const Block> blocks, std::span<std::byte> scratch)
        : from_(from),
          call_(call),
          plan_(plan),
          blocks_(blocks),
          scratch_(scratch),
          element_(bytes_of(call.type)) {}

    [[nodiscard]] bool done() const { return at_ == plan_.in.size(); }
    [[nodiscard]] std::size_t index() const { return at_; }
    [[nodiscard]] std::size_t arrived() const { return arrived_; }
    // Whether anything came.
    bool receive() {
        if (done()) return false;
        const bool moved = header_got_ < sizeof(Header) ? receive_header() : receive_bytes();
        if (header_got_ == sizeof(Header) && arrived_ == block().bytes) {
            ++at_;
            header_got_ = arrived_ = 0;
            return true;
        }
        return moved;
    }

  private:
    [[nodiscard]] const Block& block() const {
        return blocks_[static_cast<std::size_t>(plan_.in[at_].block)];
    }
    bool receive_header() {
        const std::size_t got = receive_some(from_.socket.get(), from_.rank,
                                             reinterpret_cast<char*>(&header_) + header_got_,
                                             sizeof header_ - header_got_);
        header_got_ += got;
        if (got > 0 && header_got_ == sizeof header_)
            check_header(header_, call_, static_cast<std::uint32_t>(at_), from_.rank);
        return got > 0;
    }
    bool receive_bytes() {
        const std::size_t missing = block().bytes - arrived_;
        if (!plan_.in[at_].fold) {
            const std::size_t got =
                receive_some(from_.socket.get(), from_.rank, block().data + arrived_, missing);
            arrived_ += got;
            return got > 0;
        }
        const std::size_t room = std::min(scratch_.size() - held_, missing - held_);
        const std::size_t got =
            receive_some(from_.socket.get(), from_.rank, scratch_.data() + held_, room);
        held_ += got;
        fold_whole_elements();
        return got > 0;
    }
    void fold_whole_elements() {
        const std::size_t count = held_ / element_;
        if (count == 0) return;
        const std::size_t bytes = count * element_;
        fold_in(call_.type, call_.reduce, block().data + arrived_, scratch_.data(), count);
        arrived_ += bytes;
        held_ -= bytes;
        std::memmove(scratch_.data(), scratch_.data() + bytes, held_);
    }

    const Peer& from_;
    const Call& call_;
    const RingPlan& plan_;
    std::span<const Block> blocks_;
    std::span<std::byte> scratch_;
    std::size_t element_;
    Header header_;
    std::size_t at_ = 0;
    std::size_t header_got_ = 0;
    std::size_t arrived_ = 0;  // usable bytes of the current block
    std::size_t held_ = 0;     // bytes of it in scratch
};

NodeRing::NodeRing(Mesh& mesh, Place place, const Patience& patience)
    : place_(std::move(place)),
      rounds_(meeting_rounds(static_cast<int>(place_.ranks.size()), place_.self)),
      scratch_(scratch_bytes) {
    if (!place_.meets && rounds_.size() > 1) rounds_.resize(1);
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
        const int rank = rank_at(rounds_[i].tell);
        tell_.push_back(
            {rank, mesh.connect(rank, purpose_of(place_.name + std::to_string(i)), patience)});
    }
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
        const int rank = rank_at(rounds_[i].hear);
        hear_.push_back(
            {rank, mesh.accept(rank, purpose_of(place_.name + std::to_string(i)), patience)});
    }
}

int NodeRing::rank_at(int node) const {
    return place_.ranks[static_cast<std::size_t>(node)];
}

void NodeRing::run(const Call& call, const RingPlan& plan, std::span<const Block> blocks,
                   const Patience& patience) {
    if (plan.in.empty() && plan.out.empty()) return;
    Outgoing out(tell_.front(), call, plan, blocks);
    Incoming in(hear_.front(), call, plan, blocks, scratch_);
    while (!out.done() || !in.done()) {
        const bool received = in.receive();
        const bool sent = out.send(in.index(), in.arrived());
        if (received || sent) continue;
        const bool wants_out = out.may_send(in.index(), in.arrived());
        wait_for_ends(tell_.front().socket.get(), wants_out ? POLLOUT : 0,
                      hear_.front().socket.get(), in.done() ? 0 : POLLIN,
                      in.done() ? tell_.front().rank : hear_.front().rank, patience);
    }
}

bool NodeRing::agree(const Call& call, bool flag, const Patience& patience) {
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
        const auto mark = meeting_mark | static_cast<std::uint32_t>(round);
        const Header said{call, mark, flag ? 1u : 0u};
        Header heard;
        std::size_t sent = 0;
        std::size_t got = 0;
        const Peer& to = tell_[round];
        const Peer& from = hear_[round];
        while (sent < sizeof said || got < sizeof heard) {
            if (sent < sizeof said)
                sent += send_some(to.socket.get(), to.rank,
                                  reinterpret_cast<const char*>(&said) + sent, sizeof said - sent);
            if (got < sizeof heard)
                got += receive_some(from.socket.get(), from.rank,
                                    reinterpret_cast<char*>(&heard) + got, sizeof heard - got);
            if (sent < sizeof said || got < sizeof heard)
                wait_for_ends(to.socket.get(), sent < sizeof said ? POLLOUT : 0, from.socket.get(),
                              got < sizeof heard ? POLLIN : 0, from.rank, patience);
        }
        check_header(heard, call, mark, from.rank);
        flag = flag || heard.flag != 0;
    }
    return flag;
}

void NodeRing::shut_down() {
    for (auto* peers : {&tell_, &hear_})
        for (const Peer& peer : *peers) (void)::shutdown(peer.socket.get(), SHUT_RDWR);
}

}  // namespace ddrun::detail
