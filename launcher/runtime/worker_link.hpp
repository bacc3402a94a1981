#pragma once

#include "launcher/runtime/worker_connection.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ddrun::launcher {

// The agent socket: where workers that use the SDK find their agent. An abstract name (nothing to
// remove), peers of our own uid only, one connection a rank, all of it for the current round.
// One thread: that of the io_context.
class WorkerLink {
  public:
    struct Callbacks {
        std::function<void(int local_rank, rendezvous::FromWorker)> message;  // never a hello
        std::function<void(int local_rank)> closed;
    };

    // `name` without '@' or leading zero. Throws std::system_error.
    // `patience`: how long a connection may take to say hello.
    WorkerLink(boost::asio::io_context& io, const std::string& name, Callbacks callbacks,
               std::chrono::milliseconds patience = std::chrono::seconds(5));

    [[nodiscard]] std::string address() const { return "@" + name_; }  // DDRUN_AGENT_SOCKET

    void begin_round(int round, int first_rank, int local_world_size);
    void end_round();  // closes every connection; hellos are refused until the next round
    // Answers leave together: as soon as all that one worker has asked in one go is handed over, or
    // else when the io_context comes round.
    void send(int local_rank, const rendezvous::ToWorker& message,
              std::shared_ptr<const UniqueFd> descriptor = nullptr);
    // To all of the round, also to those that connect later in it. Leaves at once.
    void announce(const rendezvous::ToWorker& notice);
    // Hands over all that the worker said before now. Called when it has ended, so that its last
    // words count before its exit does.
    void catch_up(int local_rank);

  private:
    using Connection = std::shared_ptr<WorkerConnection>;

    void wait_for_connection();
    // At most so many. False: out of descriptors, try again later.
    [[nodiscard]] bool accept_some(std::size_t most);
    [[nodiscard]] std::size_t most_connections() const;
    void add_connection(UniqueFd socket, int peer_pid);
    void receive(WorkerConnection& connection, rendezvous::FromWorker message);
    void greet(WorkerConnection& connection, const rendezvous::WorkerHello& hello);
    [[nodiscard]] std::string objection_to(const rendezvous::WorkerHello& hello) const;
    [[nodiscard]] Connection find(int local_rank) const;
    void remove(WorkerConnection& connection);
    void queue(Connection connection, const rendezvous::ToWorker& message,
               std::shared_ptr<const UniqueFd> descriptor);
    void flush_all();

    boost::asio::io_context& io_;
    std::string name_;
    Callbacks callbacks_;
    std::chrono::milliseconds patience_;
    boost::asio::posix::stream_descriptor listener_;
    boost::asio::steady_timer retry_;
    ReadBuffer buffer_;
    std::unordered_map<const WorkerConnection*, Connection> connections_;
    std::vector<Connection> by_rank_;  // accepted ones, by local rank
    std::vector<Connection> to_flush_;
    std::shared_ptr<bool> flush_is_due_ = std::make_shared<bool>(false);
    std::vector<rendezvous::ToWorker> notices_;
    int round_ = 0;
    int first_rank_ = 0;
    int local_world_size_ = 0;
};

}  // namespace ddrun::launcher
