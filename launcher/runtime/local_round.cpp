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

}  // namespace

LocalRound::LocalRound(const Job& job, RunLogs& logs, const rendezvous::RoundGranted& grant,
                       const std::string& agent_socket)
    : store(grant.world_size),
      logs_(logs),
      grant_(grant),
      plans_(
          plan_workers(job.spec, job.facts, grant, round_facts(job, logs, grant, agent_socket))) {}

LocalRound::Pipes LocalRound::open_pipes(int local_rank) const {
    const WorkerPlan& plan = plans_[static_cast<std::size_t>(local_rank)];
    Pipes pipes;
    pipes.worker_ends.push_back(standard_input(plan.owns_stdin));
    if (!pipes.worker_ends.back()) {
        return {{}, {}, errno, plan.owns_stdin ? "dup of stdin" : "open /dev/null"};
    }
    pipes.our_ends.round = grant_.round;
    pipes.our_ends.rank = plan.rank;
    pipes.our_ends.local_rank = plan.local_rank;
    std::vector<UniqueFd> ours;
    for (const Streams stream : {Streams::out, Streams::err}) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) {
            return {{}, {}, errno, "pipe"};
        }
        ours.emplace_back(ends[0]);
        pipes.worker_ends.emplace_back(ends[1]);
        (stream == Streams::out ? pipes.our_ends.out : pipes.our_ends.err) =
            logs_.plan_stream(plan, stream, grant_.restart_count);
    }
    pipes.our_ends.out.read_end = ours[0].release();
    pipes.our_ends.err.read_end = ours[1].release();
    return pipes;
}

}  // namespace ddrun::launcher
