#include "launcher/runtime/worker_output.hpp"

#include <boost/asio/post.hpp>

namespace ddrun::launcher {

WorkerOutput::WorkerOutput(boost::asio::io_context& io, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), relay_(RelayOptions{}, callbacks_for(io)) {}

RelayCallbacks WorkerOutput::callbacks_for(boost::asio::io_context& io) {
    RelayCallbacks home;
    home.drained = [this, &io](int round, int local_rank) {
        boost::asio::post(io, [this, round, local_rank] { forget({round, local_rank}); });
    };
    home.active = [this, &io](int round, int local_rank) {
        boost::asio::post(io, [this, round, local_rank] { callbacks_.active(round, local_rank); });
    };
    home.file_failed = [this, &io](std::string path, std::string words) {
        boost::asio::post(io, [this, path = std::move(path), words = std::move(words)] {
            callbacks_.file_failed(path, words);
        });
    };
    home.finished = [this, &io] { boost::asio::post(io, [this] { callbacks_.finished(); }); };
    return home;
}

void WorkerOutput::add_worker(WorkerStreams streams) {
    open_.insert({streams.round, streams.local_rank});
    relay_.add_worker(std::move(streams));
}

void WorkerOutput::worker_ended(int round, int local_rank) {
    relay_.worker_ended(round, local_rank);
}

void WorkerOutput::all_ended() {
    for (const auto& [round, local_rank] : open_) {
        relay_.worker_ended(round, local_rank);
    }
}

void WorkerOutput::forget(std::pair<int, int> worker) {
    if (open_.erase(worker) != 0 && open_.empty()) {
        callbacks_.all_drained();
    }
}

}  // namespace ddrun::launcher
