#include "rendezvous/server/jobs.hpp"

#include "rendezvous/protocol/exit_status.hpp"

#include <iterator>

namespace ddrun::rendezvous {
namespace {

constexpr std::size_t most_ended = 10'000;

void append(Jobs::Actions& all, Jobs::Actions more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

}  // namespace

Jobs::Jobs(JobsSettings settings) : settings_(std::move(settings)) {}

Jobs::Actions Jobs::step(const ServiceEvent& event, TimePoint now) {
    return std::visit([&](const auto& one) { return on(one, now); }, event);
}

Jobs::Actions Jobs::on(const PeerSaid& said, TimePoint now) {
    if (const auto* obituary_said = std::get_if<Obituary>(&said.message)) {
        Actions actions = obituary(*obituary_said, now);
        actions.push_back(ClosePeer{said.connection});
        return actions;
    }
    if (const auto* hello = std::get_if<NodeHello>(&said.message)) return greet(said, *hello, now);
    const auto known = job_of_.find(said.connection);
    const auto job = known == job_of_.end() ? jobs_.end() : jobs_.find(known->second);
    if (job == jobs_.end()) return {ClosePeer{said.connection}};
    return settle(job, job->second.service->step(said, now));
}

Jobs::Actions Jobs::greet(const PeerSaid& said, const NodeHello& hello, TimePoint now) {
    if (auto refused = refusal(hello, now)) {
        return {SendToPeer{said.connection, std::move(*refused)}, ClosePeer{said.connection}};
    }
    const std::string& id = hello.terms.job_id;
    settings_.awaited.erase(id);
    Job& job = jobs_[id];
    if (!job.service) job.service = new_service(id);
    job_of_[said.connection] = id;
    return settle(jobs_.find(id), job.service->step(said, now));
}

std::unique_ptr<JobService> Jobs::new_service(const std::string& id) const {
    ServiceSettings settings;
    settings.job_id = id;
    settings.incarnation = settings_.fresh_incarnation();
    settings.jitter_seed = settings_.fresh_seed();
    settings.build = settings_.build;
    return std::make_unique<JobService>(std::move(settings));
}

std::optional<NodeRefused> Jobs::refusal(const NodeHello& hello, TimePoint now) const {
    const std::string& id = hello.terms.job_id;
    const auto later = [](std::string words) {
        return NodeRefused{exit_code::group_lost, true, std::move(words)};
    };
    if (settings_.only && *settings_.only != id) {
        return NodeRefused{exit_code::not_authorised, false,
                           "this endpoint serves job '" + *settings_.only + "', you asked for '" +
                               id + "' (--rdzv-id)"};
    }
    const auto ended = ended_.find(hello.job_incarnation);
    if (ended != ended_.end()) return NodeRefused{exit_code::group_lost, false, ended->second};
    if (only_is_over_) return later("the previous run of job '" + id + "' is still closing");
    const auto awaited = settings_.awaited.find(id);
    if (awaited != settings_.awaited.end() && hello.job_incarnation.empty() &&
        now < awaited->second) {
        return later("job '" + id +
                     "' ran here before this server was restarted, and its nodes may "
                     "still come back");
    }
    if (jobs_.size() >= settings_.most_jobs && !jobs_.contains(id)) {
        return later("this server has " + std::to_string(jobs_.size()) +
                     " jobs and takes no more for now");
    }
    return std::nullopt;
}

Jobs::Actions Jobs::on(const PeerGone& gone, TimePoint now) {
    const auto known = job_of_.find(gone.connection);
    if (known == job_of_.end()) return {};
    const auto job = jobs_.find(known->second);
    job_of_.erase(known);
    if (job == jobs_.end()) return {};
    return settle(job, job->second.service->step(gone, now));
}

Jobs::Actions Jobs::on(const ServerWasSlow& slow, TimePoint now) {
    Actions actions;
    for (auto job = jobs_.begin(); job != jobs_.end();) {
        const auto current = job++;  // settle may forget it
        append(actions, settle(current, current->second.service->step(slow, now)));
    }
    return actions;
}

Jobs::Actions Jobs::obituary(const Obituary& obituary, TimePoint now) {
    const auto job = jobs_.find(obituary.job_id);
    if (job == jobs_.end()) return {};
    return settle(job, job->second.service->step(PeerSaid{0, obituary}, now));
}

Jobs::Actions Jobs::advance_to(TimePoint now) {
    Actions actions;
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
        const auto job = jobs_.find(deadlines_.begin()->second);
        append(actions, settle(job, job->second.service->advance_to(now)));
    }
    return actions;
}

std::optional<TimePoint> Jobs::next_deadline() const {
    if (deadlines_.empty()) return std::nullopt;
    return deadlines_.begin()->first;
}

// Keeps the books, and forgets a job that nobody needs any more: the next one with its id is
// another job.
Jobs::Actions Jobs::settle(JobMap::iterator job, Actions actions) {
    for (const ServiceAction& action : actions) {
        if (const auto* close = std::get_if<ClosePeer>(&action)) job_of_.erase(close->connection);
    }
    auto& [id, entry] = *job;
    if (entry.deadline) deadlines_.erase({*entry.deadline, id});
    if (entry.service->forgettable()) {
        const JobStatus ended = entry.service->status({});
        remember(ended);
        only_is_over_ = settings_.only && ended.exit_code;
        jobs_.erase(job);
        return actions;
    }
    entry.deadline = entry.service->next_deadline();
    if (entry.deadline) deadlines_.emplace(*entry.deadline, id);
    return actions;
}

void Jobs::remember(const JobStatus& ended) {
    std::string words = "this run of job '" + ended.job_id + "' is over";
    words += ended.exit_code ? " (exit code " + std::to_string(*ended.exit_code) + ")"
                             : ": all its nodes were lost";
    if (!ended_.emplace(ended.incarnation, std::move(words)).second) return;
    ended_in_order_.push_back(ended.incarnation);
    if (ended_in_order_.size() <= most_ended) return;
    ended_.erase(ended_in_order_.front());
    ended_in_order_.pop_front();
}

bool Jobs::all_told() const {
    return jobs_.empty();
}

std::vector<JobStatus> Jobs::status(TimePoint now) const {
    std::vector<JobStatus> all;
    for (const auto& [id, job] : jobs_) all.push_back(job.service->status(now));
    return all;
}

}  // namespace ddrun::rendezvous
