#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <csignal>
#include <functional>

namespace ddrun::launcher {

struct ReceivedSignal {
    int signal = 0;
    int pid = 0;  // of the sender; 0 when the kernel sent it
    int uid = 0;
    bool from_terminal = false;  // Ctrl-C, Ctrl-Z ...: the kernel sent it to a whole process group
};

// Reads blocked signals from a descriptor and hands them over one by one, on the io_context's
// thread.
class SignalWatch {
  public:
    using Receive = std::function<void(const ReceivedSignal&)>;

    // `signals` are blocked already. Throws std::system_error.
    SignalWatch(boost::asio::io_context& io, const sigset_t& signals, Receive receive);

  private:
    void wait();
    void read_all();

    boost::asio::posix::stream_descriptor descriptor_;
    Receive receive_;
};

}  // namespace ddrun::launcher
