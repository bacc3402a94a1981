#pragma once

#include "launcher/keeper/keeper.hpp"
#include "launcher/keeper/messages.hpp"
#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/frame_reader.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ddrun::launcher {

// The agent's end of the socket pair to its keeper. Frames go out in order; when the socket is full
// they wait here, so nothing ever blocks. One thread: that of the io_context.
class KeeperLink {
  public:
    struct Callbacks {
        std::function<void(const keeper::FromKeeper&)> message;
        std::function<void()> lost;  // once: the keeper closed its end, or broke the protocol
    };
    struct Frame {
        std::string bytes;
        std::vector<UniqueFd> descriptors;  // ride along with the first byte
    };
    // Made only when its turn has come, so that a round of thousands of workers does not hold all
    // its pipes open at once. nullopt: nothing to send after all.
    using Producer = std::function<std::optional<Frame>()>;

    KeeperLink(boost::asio::io_context& io, keeper::KeeperProcess process, Callbacks callbacks);

    void send(const keeper::ToKeeper& message);
    void send(Producer producer);

    [[nodiscard]] int pid() const { return process_.pid; }

  private:
    void wait_readable();
    void wait_writable();
    void read_all();
    void write_all();
    [[nodiscard]] bool write_some(Frame& frame);
    void lose();

    keeper::KeeperProcess process_;
    boost::asio::posix::stream_descriptor descriptor_;
    Callbacks callbacks_;
    rendezvous::FrameReader frames_;
    std::deque<Producer> waiting_;
    std::optional<Frame> current_;
    bool writing_ = false;
    bool awaiting_write_ = false;
    bool lost_ = false;
};

}  // namespace ddrun::launcher
