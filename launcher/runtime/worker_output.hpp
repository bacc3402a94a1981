#pragma once

#include "launcher/runtime/output/output_relay.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <set>
#include <string>
#include <utility>

namespace ddrun::launcher {

// The control thread's side of the output thread: brings its callbacks home to the io_context and
// knows which workers' output is still on its way.
class WorkerOutput {
  public:
    struct Callbacks {
        std::function<void(int round, int local_rank)> active;
        std::function<void(const std::string& path, const std::string& words)> file_failed;
        std::function<void()> all_drained;  // nothing is on its way any more
        std::function<void()> finished;     // after relay().begin_finish()
    };

    WorkerOutput(boost::asio::io_context& io, Callbacks callbacks);

    void add_worker(WorkerStreams streams);
    void worker_ended(int round, int local_rank);
    void all_ended();  // nobody waits for what is left
    [[nodiscard]] bool drained() const { return open_.empty(); }

    OutputRelay& relay() { return relay_; }

  private:
    [[nodiscard]] RelayCallbacks callbacks_for(boost::asio::io_context& io);
    void forget(std::pair<int, int> worker);

    std::set<std::pair<int, int>> open_;  // round, local rank
    Callbacks callbacks_;
    OutputRelay relay_;  // last: its thread ends first
};

}  // namespace ddrun::launcher
