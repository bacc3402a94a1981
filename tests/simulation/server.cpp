#include "tests/simulation/server.hpp"

#include <utility>
#include <variant>

namespace ddrun::simulation {

using namespace rendezvous;

Server::Server(Timeline& timeline, Scenario& scenario, const Clock& clock, Network& network,
               const Plants& plants, int machine, Trace trace)
    : timeline_(timeline),
      scenario_(scenario),
      clock_(clock),
      network_(network),
      plants_(plants),
      machine_(machine),
      trace_(std::move(trace)) {}

void Server::start() {
    if (std::exchange(runs_, true)) return;
    ++life_;
    jobs_ = std::make_unique<Jobs>(settings());
    events_.clear();
    timer_.reset();
    asleep_ = false;
    network_.server_listens(machine_, {[this](ConnectionId id, const FromNode& message) {
                                           feed(PeerSaid{id, message});
                                       },
                                       [this](ConnectionId id) { feed(PeerGone{id}); }});
}

void Server::end(bool in_silence) {
    if (!std::exchange(runs_, false)) return;
    network_.server_ends(in_silence);
}

void Server::stall(Duration time) {
    if (!runs_ || std::exchange(asleep_, true)) return;
    timeline_.in(time, [this, time, life = life_] {
        if (runs_ && life == life_) wake_up(time);
    });
}

void Server::wake_up(Duration slept) {
    asleep_ = false;
    timer_.reset();
    events_.push_front(ServerWasSlow{slept});
    handle_all();
}

// --- events and time ----------------------------------------------------------------------------

void Server::feed(ServiceEvent event) {
    if (!runs_) return;
    events_.push_back(std::move(event));
    if (!handling_ && !asleep_) handle_all();
}

void Server::handle_all() {
    handling_ = true;
    while (!events_.empty() && runs_ && !asleep_) {
        const ServiceEvent event = std::move(events_.front());
        events_.pop_front();
        handle(event);
    }
    handling_ = false;
    set_timer();
}

void Server::handle(const ServiceEvent& event) {
    if (const auto* said = std::get_if<PeerSaid>(&event)) note_hello(*said);
    perform(jobs_->step(event, now()));
}

JobsSettings Server::settings() {
    JobsSettings settings;
    settings.fresh_incarnation = [this] { return "job" + std::to_string(scenario_.bits()); };
    settings.fresh_seed = [this] { return scenario_.bits(); };
    const Cluster& cluster = *scenario_.cluster;
    if (life_ > 1 && cluster.state_file) {
        settings.awaited[cluster.terms.job_id] = now() + cluster.grace;
    }
    return settings;
}

void Server::perform(Jobs::Actions actions) {
    if (trace_) {
        if (auto words = describe(); words != described_) {
            described_ = words;
            trace_("server: " + words);
        }
    }
    if (plants_.renumbered) renumber(actions);
    for (ServiceAction& action : actions) {
        std::visit([this](auto& one) { act(one); }, action);
    }
}

void Server::set_timer() {
    const auto next = jobs_->next_deadline();
    if (!runs_ || asleep_ || next == timer_) return;
    timer_ = next;
    if (!next) return;
    timeline_.at(clock_.when_it_shows(*next), [this, due = *next, life = life_] {
        if (timer_ != due || !runs_ || asleep_ || life != life_) return;
        timer_.reset();
        perform(jobs_->advance_to(now()));
        handle_all();
    });
}

void Server::act(SendToPeer& action) {
    network_.from_server(action.connection, std::move(action.message));
}

void Server::act(ClosePeer& action) {
    network_.close_from_server(action.connection);
}

bool Server::knows_a_verdict() const {
    const auto all = jobs_->status(now());
    return !all.empty() && all.front().exit_code.has_value();
}

std::string Server::describe() const {
    if (!runs_) return "not there";
    std::string words = asleep_ ? "asleep" : "";
    for (const JobStatus& job : jobs_->status(now())) {
        words += job.state + ", round " + std::to_string(job.round) + ", restarts " +
                 std::to_string(job.restarts_used) + "/" + std::to_string(job.max_restarts);
        for (const NodeStatus& node : job.nodes) {
            words += ", " + node.name + " " + node.state;
            if (node.node_rank >= 0) words += " as " + std::to_string(node.node_rank);
        }
    }
    return words.empty() ? "no job" : words;
}

// --- the planted bug ----------------------------------------------------------------------------

namespace {

RoundGranted* grant_in(ServiceAction& action) {
    auto* send = std::get_if<SendToPeer>(&action);
    auto* payload = send != nullptr ? std::get_if<FromServerPayload>(&send->message) : nullptr;
    auto* message = payload != nullptr ? std::get_if<FromCoordinator>(&payload->payload) : nullptr;
    return message != nullptr ? std::get_if<RoundGranted>(message) : nullptr;
}

}  // namespace

void Server::note_hello(const PeerSaid& said) {
    if (!plants_.renumbered) return;
    if (const auto* hello = std::get_if<NodeHello>(&said.message))
        incarnations_[said.connection] = hello->node_incarnation;
}

void Server::renumber(Jobs::Actions& actions) {
    std::set<std::string> placed;
    int round = 0;
    for (ServiceAction& action : actions) {
        if (const RoundGranted* grant = grant_in(action); grant != nullptr) {
            placed.insert(incarnations_[std::get<SendToPeer>(action).connection]);
            round = grant->round;
        }
    }
    if (round == 0) return;
    if (!renumbered_.contains(round)) {
        renumbered_[round] = !placed_.empty() && placed != placed_;
        placed_ = placed;
    }
    for (ServiceAction& action : actions) {
        RoundGranted* grant = grant_in(action);
        if (grant == nullptr || !renumbered_[grant->round]) continue;
        if (grant->world_size % grant->node_count != 0) continue;
        const int slots = grant->world_size / grant->node_count;
        grant->node_rank = grant->node_count - 1 - grant->node_rank;
        grant->first_rank = grant->node_rank * slots;
    }
}

}  // namespace ddrun::simulation
