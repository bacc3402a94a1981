#pragma once

#include "launcher/runtime/job_link.hpp"
#include "launcher/runtime/remote_job.hpp"
#include "rendezvous/client/client.hpp"
#include "rendezvous/server/server.hpp"
#include "rendezvous/server/status_server.hpp"
#include "rendezvous/transport/address.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <optional>
#include <string>

namespace ddrun::launcher {

// A job of several nodes: the rendezvous at the endpoint, over TCP. The node that has the
// endpoint's address serves it, and is its own client like every other node.
class RemoteJobLink final : public JobLink {
  public:
    RemoteJobLink(boost::asio::io_context& io, const Job& job, const RemoteJob& remote,
                  const rendezvous::Join& offer, Ears ears);

    void say(const rendezvous::ToCoordinator& message) override;
    void begin_round(const rendezvous::RoundGranted&) override {}
    void end_round(int) override {}
    void ask(int round, int rank, rendezvous::FromWorker request) override;
    void forget(int round, int rank) override;
    void abort_waits(int round, const std::string& words) override;
    void advance_to(TimePoint) override {}
    [[nodiscard]] std::optional<TimePoint> next_deadline() const override { return std::nullopt; }
    void close(bool processes_left) override;
    [[nodiscard]] std::string describe() const override { return client_.describe(); }

  private:
    [[nodiscard]] rendezvous::Client::Ears client_ears();
    boost::asio::awaitable<void> serve_where_it_is_ours(rendezvous::Endpoints endpoints);
    [[nodiscard]] std::unique_ptr<rendezvous::Server> make_server();
    // --status-listen, which is worth no job: where it cannot be had, that is said.
    boost::asio::awaitable<void> open_status_page();
    void say_to_people(const std::string& words, bool warning);
    void leave_when_told();
    void leave();

    boost::asio::io_context& io_;
    const Job& job_;
    const RemoteJob& remote_;
    Ears ears_;
    std::unique_ptr<rendezvous::Server> server_;  // null: another node or process serves
    std::unique_ptr<rendezvous::StatusServer> page_;
    rendezvous::Client client_;
    boost::asio::steady_timer patience_;
    bool parted_ = false;  // from the job, as a node of it
    bool closed_ = false;
};

}  // namespace ddrun::launcher
