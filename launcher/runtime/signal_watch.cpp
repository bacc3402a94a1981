#include "launcher/runtime/signal_watch.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <system_error>

namespace ddrun::launcher {
namespace {

int open_signal_descriptor(const sigset_t& signals) {
    const int fd = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        throw std::system_error(errno, std::generic_category(), "signalfd");
    }
    return fd;
}

ReceivedSignal describe(const signalfd_siginfo& info) {
    ReceivedSignal received;
    received.signal = static_cast<int>(info.ssi_signo);
    received.pid = static_cast<int>(info.ssi_pid);
    received.uid = static_cast<int>(info.ssi_uid);
    received.from_terminal = info.ssi_code == SI_KERNEL;
    return received;
}

}  // namespace

SignalWatch::SignalWatch(boost::asio::io_context& io, const sigset_t& signals, Receive receive)
    : descriptor_(io, open_signal_descriptor(signals)), receive_(std::move(receive)) {
    wait();
}

void SignalWatch::wait() {
    descriptor_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                           [this](const boost::system::error_code& error) {
                               if (!error) {
                                   read_all();
                                   wait();
                               }
                           });
}

void SignalWatch::read_all() {
    signalfd_siginfo info{};
    while (::read(descriptor_.native_handle(), &info, sizeof info) ==
           static_cast<ssize_t>(sizeof info)) {
        receive_(describe(info));
    }
}

}  // namespace ddrun::launcher
