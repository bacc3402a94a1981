#include "launcher/runtime/local_round.hpp"

#include "launcher/runtime/line_prefix.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ddrun::launcher {
namespace {

RoundFacts round_facts(const Job& job, RunLogs& logs, const rendezvous::RoundGranted& grant,
                       const std::string& agent_socket) {
    RoundFacts facts;
    facts.job_id = job.job_id;
    facts.incarnation = job.incarnation;
    facts.agent_socket = agent_socket;
    facts.log_dir = logs.begin_attempt(grant.restart_count, grant.first_rank, job.slots);
    facts.console_is_terminal = ::isatty(STDOUT_FILENO) == 1;
    facts.local_world_size = job.slots;
    return facts;
}

UniqueFd standard_input(bool owner) {
    return UniqueFd(owner ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                          : ::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

struct StreamEnds {
    UniqueFd ours;
    UniqueFd worker;
};

StreamEnds make_pipe() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return {};
    }
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The rank that has the terminal's keys has its screen too: a debugger's prompt through a pipe is
// none.
StreamEnds lend_terminal(int number) {
    return {{}, UniqueFd(::fcntl(number, F_DUPFD_CLOEXEC, 3))};
}

}  // namespace

LocalRound::LocalRound(const Job& job, RunLogs& logs, const rendezvous::RoundGranted& grant,
                       const std::string& agent_socket)
    : logs_(logs),
      grant_(grant),
      plans_(
          plan_workers(job.spec, job.facts, grant, round_facts(job, logs, grant, agent_socket))) {}

LocalRound::Pipes LocalRound::open_pipes(int local_rank) const {
    const WorkerPlan& plan = plans_[static_cast<std::size_t>(local_rank)];
    Pipes pipes;
    pipes.our_ends.round = grant_.round;
    pipes.our_ends.rank = plan.rank;
    pipes.our_ends.local_rank = plan.local_rank;
    pipes.our_ends.out = logs_.plan_stream(plan, Streams::out, grant_.restart_count);
    pipes.our_ends.err = logs_.plan_stream(plan, Streams::err, grant_.restart_count);
    pipes.worker_ends.push_back(standard_input(plan.owns_stdin));
    if (!pipes.worker_ends.back()) {
        return {{}, {}, errno, plan.owns_stdin ? "dup of stdin" : "open /dev/null"};
    }
    const bool terminal = plan.owns_stdin && ::isatty(STDIN_FILENO) == 1;
    const auto ends_of = [terminal](const StreamPlan& stream, int number) {
        const bool lent = terminal && stream.file.empty() && ::isatty(number) == 1;
        return lent ? lend_terminal(number) : make_pipe();
    };
    StreamEnds out = ends_of(pipes.our_ends.out, STDOUT_FILENO);
    StreamEnds err = out.worker ? ends_of(pipes.our_ends.err, STDERR_FILENO) : StreamEnds{};
    if (!err.worker) {
        return {{}, {}, errno, "pipe"};
    }
    pipes.our_ends.out.read_end = out.ours.release();
    pipes.our_ends.err.read_end = err.ours.release();
    pipes.worker_ends.push_back(std::move(out.worker));
    pipes.worker_ends.push_back(std::move(err.worker));
    return pipes;
}

}  // namespace ddrun::launcher
