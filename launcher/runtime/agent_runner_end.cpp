// The job is over: what workers wrote is brought out, the summary said, the keeper sent home.
#include "launcher/runtime/agent_runner.hpp"
#include "launcher/runtime/summary_facts.hpp"
#include "launcher/runtime/termination_message.hpp"
#include "rendezvous/platform/clock.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace ddrun::launcher {
namespace {

using boost::system::error_code;

constexpr auto keeper_patience = std::chrono::seconds(2);
// Longer than a reader's patience: then the output thread hangs in a write to a dead disk.
constexpr auto output_patience = std::chrono::seconds(8);
// Stop signals of the burst that ended the job do not mean "without a summary".
constexpr auto burst_patience = std::chrono::milliseconds(500);

}  // namespace

void AgentRunner::act(const Finish& action) {
    finish_ = action;
    finished_at_ = detail::now();
    timer_.cancel();
    // A process that SIGKILL does not end keeps its pipes open; nobody waits for them.
    output_.all_ended();
    watch_output();
    if (output_.drained()) {
        conclude();
    }
}

// A slow reader gets its lines for as long as it takes them; who does not want to wait says so.
void AgentRunner::leave_if_impatient() const {
    if (detail::now() - finished_at_ > burst_patience) {
        ::_exit(finish_->exit_code);
    }
}

void AgentRunner::watch_output() {
    (void)output_.relay().stalled();
    output_timer_.expires_after(output_patience);
    output_timer_.async_wait([this](const error_code& error) {
        if (error) {
            return;
        }
        if (!output_.relay().stalled()) {
            return watch_output();
        }
        output_.relay().abandon();
        conclude();
        output_finished();
    });
}

void AgentRunner::output_finished() {
    output_done_ = true;
    stop_when_all_gone();
}

void AgentRunner::conclude() {
    if (std::exchange(concluded_, true)) {
        return;
    }
    keeper_.send(keeper::Quit{});
    say_summary();
    publish_status();
    output_.relay().begin_finish();
    hurry_keeper();
    link_->close(!finish_->still_there.empty());
    stop_when_all_gone();
}

// A keeper that does not go is ended; its link then says so.
void AgentRunner::hurry_keeper() {
    keeper_timer_.expires_after(keeper_patience);
    keeper_timer_.async_wait([this](const error_code& error) {
        if (!error && !keeper_lost_) {
            ::kill(keeper_.pid(), SIGKILL);
        }
    });
}

void AgentRunner::stop_when_all_gone() {
    if (concluded_ && keeper_lost_ && output_done_ && link_closed_) {
        io_.stop();
    }
}

void AgentRunner::say_summary() {
    std::string text = render_summary(*finish_, summary_facts());
    leave_termination_message(job_.facts.environment, text, finish_->exit_code);
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        output_.relay().say(text.substr(0, end));
        text.erase(0, end == std::string::npos ? end : end + 1);
    }
}

SummaryFacts AgentRunner::summary_facts() {
    SummaryFacts facts;
    facts.program = job_.spec.program;
    facts.node_name = job_.facts.node_name;
    facts.max_restarts = job_.spec.max_restarts;
    facts.dropped_output = output_.relay().losses();
    const bool about_others =
        finish_->cause && is_about_workers(finish_->cause->kind) && !cause_was_here(*finish_);
    if (finish_->cause && !about_others) {
        facts.uptime = time_of_cause() - round_began_;
        facts.stderr_tail = output_.relay().tail(last_round_, finish_->cause->failure.local_rank);
        facts.log_path = log_path_of_cause();
        add_machine_facts(facts, memory_at_start_.value_or(MemoryCounters{}));
    }
    return facts;
}

// The end of the worker that was the cause, not that of the stop that followed.
TimePoint AgentRunner::time_of_cause() const {
    for (const WorkerRecord& worker : finish_->workers) {
        if (finish_->cause && worker.pid == finish_->cause->failure.pid && worker.ended_at) {
            return *worker.ended_at;
        }
    }
    return detail::now();
}

std::string AgentRunner::log_path_of_cause() const {
    const rendezvous::WorkerFailure& failure = finish_->cause->failure;
    const std::string file = logs_.file_of(failure.rank, failure.local_rank);
    return file.empty() ? logs_.directory() : file;
}

void AgentRunner::publish_status() {
    if (!status_) {
        return;
    }
    StatusReport report;
    report.job_id = job_.job_id;
    report.incarnation = job_.incarnation;
    report.state = finish_ ? "finished" : state_;
    report.pid = ::getpid();
    report.round = last_round_;
    report.max_restarts = job_.spec.max_restarts;
    report.restarts_used = finish_ ? finish_->restarts_used : std::max(0, last_round_ - 1);
    report.world_size = round_ ? round_->grant().world_size : job_.slots;
    if (finish_) {
        report.workers = finish_->workers;
        report.exit_code = finish_->exit_code;
        report.cause = finish_->cause ? finish_->cause->words : "";
    } else if (agent_.group() != nullptr) {
        report.workers = agent_.group()->workers();
    }
    status_->publish(to_json(report));
}

}  // namespace ddrun::launcher
