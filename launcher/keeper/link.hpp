#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/frame_reader.hpp"

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddrun::launcher::keeper {

// One end of the socket pair between agent and keeper: frames both ways, descriptors with some of
// them. Never blocks, so neither end can wait for the other: what the socket does not take now is
// queued, and `flush` is called when the descriptor turns writable. Use from one thread.
class Link {
  public:
    explicit Link(int fd);  // takes the descriptor over

    [[nodiscard]] int fd() const { return fd_.get(); }

    // Sends a whole frame. `descriptors` are only borrowed: the caller may close them afterwards.
    void send(std::string frame, std::span<const int> descriptors = {});
    // Queues a whole frame for the next `flush`, which sends all such frames in one call: one
    // wake-up of the other end for all the news of a turn.
    void post(std::string_view frame);
    void flush();
    [[nodiscard]] bool wants_write() const { return !queue_.empty(); }
    [[nodiscard]] std::size_t queued_bytes() const { return queued_bytes_; }

    // The bodies of whole frames that are here now (type byte first). Reads a bounded amount, so
    // call again while the descriptor is readable.
    [[nodiscard]] std::vector<std::string> receive();
    // The next `count` descriptors, in the order they were sent; an invalid one stands for each
    // that could not be passed (no free descriptor in this process).
    [[nodiscard]] std::vector<UniqueFd> take_descriptors(std::size_t count);

    // The other end is gone, or sent what is not a frame, or no descriptor was left for a queued
    // frame. Frames received before are still returned.
    [[nodiscard]] bool closed() const { return closed_; }

  private:
    struct Queued {
        std::string bytes;
        std::size_t sent = 0;
        std::vector<UniqueFd> descriptors;  // leave with the first byte
    };

    void close();
    // Bytes taken by the socket; 0: not now.
    std::size_t write_some(std::string_view bytes, std::span<const int> descriptors);
    // Bytes read; 0: nothing more for now.
    std::size_t read_some();

    UniqueFd fd_;
    bool closed_ = false;
    std::deque<Queued> queue_;
    std::size_t queued_bytes_ = 0;
    rendezvous::FrameReader frames_;
    std::deque<UniqueFd> received_;
};

}  // namespace ddrun::launcher::keeper
