#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

// Exactly once and in order over connections that break: the sender keeps what was not heard, the
// receiver skips what it has.
namespace ddrun::rendezvous {

template <typename Payload>
class Outbox {
  public:
    // The sequence number of the payload; it is kept until heard() covers it.
    std::uint64_t put(Payload payload) {
        kept_.push_back(std::move(payload));
        return first_ + kept_.size() - 1;
    }
    // The peer has applied everything up to `sequence`. A number never sent is ignored.
    void heard(std::uint64_t sequence) {
        while (!kept_.empty() && first_ <= sequence) {
            kept_.pop_front();
            ++first_;
        }
    }
    // What has to be sent again after a reconnect, oldest first, with its sequence numbers.
    template <typename Send>
    void resend(Send send) const {
        std::uint64_t sequence = first_;
        for (const Payload& payload : kept_) send(sequence++, payload);
    }
    [[nodiscard]] std::size_t size() const { return kept_.size(); }

  private:
    std::deque<Payload> kept_;
    std::uint64_t first_ = 1;  // sequence number of kept_.front()
};

class Inbox {
  public:
    // True: apply it now. False: it was applied before, or one before it is missing (the stream is
    // ordered, so the peer will send it again).
    [[nodiscard]] bool accept(std::uint64_t sequence) {
        if (sequence != last_ + 1) return false;
        last_ = sequence;
        return true;
    }
    [[nodiscard]] std::uint64_t last() const { return last_; }

  private:
    std::uint64_t last_ = 0;
};

}  // namespace ddrun::rendezvous
