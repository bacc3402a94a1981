#include "launcher/runtime/remote_job_link.hpp"

#include "launcher/config/values.hpp"
#include "rendezvous/platform/clock.hpp"
#include "rendezvous/platform/random.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "rendezvous/protocol/preface.hpp"
#include "rendezvous/transport/endpoint_owner.hpp"

#include <utility>
#include <variant>

namespace ddrun::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The others may still be stopping their workers, and need this server until they have; who does
// not say goodbye by then is not there any more.
constexpr auto after_their_grace = std::chrono::seconds(10);
// To look up the name of the status page's address; this node joins only then.
constexpr auto status_patience = std::chrono::seconds(2);

rendezvous::JobTerms terms_of(const Job& job) {
    const JobSpec& spec = job.spec;
    rendezvous::JobTerms terms;
    terms.job_id = job.job_id;
    terms.min_nodes = spec.min_nodes;
    terms.max_nodes = spec.max_nodes;
    terms.spares = spec.spares;
    terms.max_restarts = spec.max_restarts;
    terms.no_restart_on = spec.no_restart_on;
    terms.crash_loop = spec.crash_loop;
    terms.restart_backoff = spec.restart_backoff;
    terms.join_timeout = spec.join_timeout;
    terms.last_call = spec.last_call;
    terms.heartbeat = spec.heartbeat;
    terms.lease = spec.lease;
    return terms;
}

rendezvous::NodeLinkRules link_rules(const Job& job, const RemoteJob& remote,
                                     const rendezvous::Join& offer) {
    rendezvous::NodeLinkRules rules;
    rules.terms = terms_of(job);
    rules.offer = offer;
    rules.offer.address = remote.local_address ? rendezvous::text_of(*remote.local_address) : "";
    rules.node_incarnation = job.incarnation;
    rules.obituary_token = remote.obituary_token;
    rules.build = DDRUN_VERSION;
    rules.endpoint = endpoint_words(job.spec);
    rules.rendezvous_grace = job.spec.rendezvous_grace;
    rules.jitter_seed = detail::random_bits();
    return rules;
}

rendezvous::ClientSettings client_settings(const Job& job, const RemoteJob& remote) {
    rendezvous::ClientSettings settings;
    settings.host = job.spec.rendezvous_host;
    settings.port = job.spec.rendezvous_port;
    settings.security = remote.security;
    settings.from = remote.local_address;
    return settings;
}

}  // namespace

RemoteJobLink::RemoteJobLink(asio::io_context& io, const Job& job, const RemoteJob& remote,
                             const rendezvous::Join& offer, Ears ears)
    : io_(io),
      job_(job),
      remote_(remote),
      ears_(std::move(ears)),
      client_(io, link_rules(job, remote, offer), client_settings(job, remote), client_ears()),
      patience_(io) {}

rendezvous::Client::Ears RemoteJobLink::client_ears() {
    rendezvous::Client::Ears ears;
    ears.deliver = [this](rendezvous::FromJob payload) {
        if (auto* message = std::get_if<rendezvous::FromCoordinator>(&payload)) {
            return ears_.hear(std::move(*message));
        }
        auto& answer = std::get<rendezvous::StoreAnswered>(payload);
        ears_.answer(answer.round, answer.rank, std::move(answer.reply));
    };
    ears.fence = [this](const rendezvous::Fence& fence) { ears_.fence(fence); };
    ears.lease_until = [this](TimePoint until) { ears_.lease_until(until); };
    ears.arm_obituary = [this](const std::string& server) {
        ears_.last_words(server, preface(rendezvous::PrefaceKind::obituary) +
                                     encode(rendezvous::FromNode(rendezvous::Obituary{
                                         job_.job_id, remote_.obituary_token})));
    };
    ears.resolved = [this](rendezvous::Endpoints endpoints) {
        return serve_where_it_is_ours(std::move(endpoints));
    };
    ears.finished = [this] {
        parted_ = true;
        leave_when_told();
    };
    return ears;
}

// --- the server that this node may have ----------------------------------------------------------

std::unique_ptr<rendezvous::Server> RemoteJobLink::make_server() {
    rendezvous::ServerSettings settings;
    settings.jobs.only = job_.job_id;
    settings.jobs.build = DDRUN_VERSION;
    settings.jobs.fresh_incarnation = detail::random_hex_128;
    settings.jobs.fresh_seed = detail::random_bits;
    settings.security = remote_.security;
    settings.say = [this](const std::string& words) { say_to_people(words, true); };
    return std::make_unique<rendezvous::Server>(io_, std::move(settings));
}

// Where somebody else has the port, that may be the rendezvous already: another agent of this
// machine, or a server of its own. Whoever it is, the connection that follows will show.
asio::awaitable<void> RemoteJobLink::serve_where_it_is_ours(rendezvous::Endpoints endpoints) {
    if (server_) co_return;
    rendezvous::Ownership ownership = co_await rendezvous::claim_endpoint(std::move(endpoints));
    if (ownership.listeners.empty()) co_return;
    server_ = make_server();
    for (auto& listener : ownership.listeners) server_->listen(std::move(listener));
    if (job_.spec.master_port == job_.spec.rendezvous_port) {
        say_to_people("workers of this node cannot listen at --master-port: the nodes meet there",
                      true);
    }
    if (job_.spec.status_listen) co_await open_status_page();
}

asio::awaitable<void> RemoteJobLink::open_status_page() {
    values::Endpoint wanted;
    (void)values::read(*job_.spec.status_listen, wanted);  // was checked with all flags
    try {
        const auto found = co_await rendezvous::resolve(wanted.host, wanted.port.value_or(0),
                                                        detail::now() + status_patience);
        page_ = std::make_unique<rendezvous::StatusServer>(io_, found.at(0),
                                                           [this] { return server_->status(); });
        say_to_people("status page: http://" + rendezvous::text_of(page_->endpoint()) + "/status",
                      false);
    } catch (const boost::system::system_error& error) {
        say_to_people(
            "no status page at " + *job_.spec.status_listen + ": " + error.code().message(), true);
    }
}

void RemoteJobLink::say_to_people(const std::string& words, bool warning) {
    ears_.hear(rendezvous::Notice{words, warning});
}

// --- from this node to its job -------------------------------------------------------------------

// The first message is a Join, which is in the hello already.
void RemoteJobLink::say(const rendezvous::ToCoordinator& message) {
    if (std::holds_alternative<rendezvous::Join>(message)) return client_.start();
    client_.submit(message);
}

void RemoteJobLink::ask(int round, int rank, rendezvous::FromWorker request) {
    client_.submit(rendezvous::StoreAsked{round, rank, std::move(request)});
}

void RemoteJobLink::forget(int round, int rank) {
    client_.submit(rendezvous::StoreForgotten{round, rank});
}

void RemoteJobLink::abort_waits(int round, const std::string& words) {
    client_.abort_waits(round, words);
}

// --- the end -------------------------------------------------------------------------------------

void RemoteJobLink::close(bool processes_left) {
    patience_.expires_after(job_.spec.shutdown_timeout + after_their_grace);
    patience_.async_wait([this](const error_code& error) {
        if (!error) leave();
    });
    if (server_) server_->on_told([this] { leave_when_told(); });
    client_.finish(processes_left);
}

void RemoteJobLink::leave_when_told() {
    if (parted_ && (!server_ || server_->all_told())) leave();
}

void RemoteJobLink::leave() {
    if (std::exchange(closed_, true)) return;
    patience_.cancel();
    ears_.closed();
}

}  // namespace ddrun::launcher
