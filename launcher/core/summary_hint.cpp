#include "launcher/core/summary_hint.hpp"

#include "launcher/core/group_causes.hpp"
#include "launcher/core/signals.hpp"
#include "launcher/core/words.hpp"

namespace ddrun::launcher {
namespace {

constexpr std::int64_t small_shm_bytes = 64LL << 20;

bool dumps_core(int signal) {
    switch (signal) {
        case signals::quit:
        case signals::illegal_instruction:
        case signals::trap:
        case signals::abort:
        case signals::bus_error:
        case signals::arithmetic_error:
        case signals::segmentation_fault:
        case signals::bad_system_call:
            return true;
        default:
            return false;  // an open set of numbers, not an enum
    }
}

bool shm_is_tight(const SummaryFacts& facts) {
    if (!facts.shm_size_bytes) return false;
    const auto size = *facts.shm_size_bytes;
    const auto used = facts.shm_used_bytes.value_or(0);
    return size <= small_shm_bytes || used >= size - size / 10;
}

std::string shm_state(const SummaryFacts& facts) {
    if (!facts.shm_size_bytes) return {};
    return "/dev/shm: " + size_text(facts.shm_used_bytes.value_or(0)) + " of " +
           size_text(*facts.shm_size_bytes) + " used";
}

std::string bus_hint(const SummaryFacts& facts) {
    if (shm_is_tight(facts)) {
        return shm_state(facts) +
               "; in a container give more with --shm-size, --ipc=host, or an emptyDir of medium "
               "Memory";
    }
    const auto state = shm_state(facts);
    return "a mapped file shrank or its disk is full" + (state.empty() ? "" : "; " + state);
}

std::string kill_hint(const SummaryFacts& facts) {
    if (facts.oom_kills.value_or(0) > 0) {
        std::string sizes;
        if (facts.memory_limit_bytes) sizes = "limit " + size_text(*facts.memory_limit_bytes);
        if (facts.memory_peak_bytes) {
            sizes += (sizes.empty() ? "peak " : ", peak ") + size_text(*facts.memory_peak_bytes);
        }
        return "SIGKILL, not sent by ddrun: the kernel OOM killer ended it" +
               (sizes.empty() ? "" : " (" + sizes + ")");
    }
    return "SIGKILL, not sent by ddrun; possible: OOM killer (see dmesg), scheduler, another user";
}

std::string core_hint(const SummaryFacts& facts, int pid) {
    const auto& pattern = facts.core_pattern;
    if (pattern.empty()) return "a core file was written";
    if (pattern.front() != '|') {
        const bool here = pattern.find('/') == std::string::npos;
        return "a core file was written" + std::string(here ? " in the working directory" : "") +
               " (kernel.core_pattern is " + pattern + ")";
    }
    if (pattern.find("systemd-coredump") != std::string::npos) {
        return "a core file was kept; open it with: coredumpctl debug " + std::to_string(pid);
    }
    return "the core went to the handler in kernel.core_pattern: " + pattern.substr(1);
}

std::string signal_hint(const ExitStatus& status, const SummaryFacts& facts, int pid) {
    if (status.value == signals::bus_error) return bus_hint(facts);
    if (status.value == signals::kill) return kill_hint(facts);
    if (status.core_dumped) return core_hint(facts, pid);
    if (dumps_core(status.value))
        return "no core file was kept; `ulimit -c unlimited` before the run keeps one";
    if (status.value == signals::user1 || status.value == signals::user2) {
        return "ddrun forwards " + signal_name(status.value) +
               " to every worker; the program must handle or ignore it";
    }
    if (is_foreign_stop(status)) {
        return signal_name(status.value) +
               ", not sent by ddrun; somebody stopped this worker alone";
    }
    return {};
}

// A shell reports the death of its child by signal s as exit code 128 + s.
std::string shell_hint(int code) {
    const int signal = code - exit_code::signal_base;
    constexpr int last_plain_signal = 31;
    if (signal < 1 || signal > last_plain_signal) return {};
    return "exit code " + std::to_string(code) +
           " is how a shell reports that its child was killed by " + signal_name(signal);
}

std::string worker_hint(const rendezvous::WorkerFailure& failure, const SummaryFacts& facts) {
    if (failure.never_retry) return "the worker asked not to be restarted";
    if (failure.status.was_signalled()) return signal_hint(failure.status, facts, failure.pid);
    return shell_hint(failure.status.value);
}

std::string where_to_look(const Finish& finish, const SummaryFacts& facts) {
    if (facts.log_path.empty()) return "--log-dir=DIR keeps the whole output of each rank in files";
    if (facts.max_restarts == 0) return "--max-restarts=N restarts the group after a failure";
    if (!finish.why_no_restart.empty()) return {};
    return "all restarts are used; the same end each time points at the program or its data";
}

// Refused or too few: who is refused was told why, so only the others need a hint.
std::string never_formed_hint(const rendezvous::Cause& cause) {
    if (cause.exit_code == exit_code::not_authorised) {
        return "start all nodes with the same ddrun, command line and secret";
    }
    if (cause.words.find("joined within") == std::string::npos) return {};
    return "look whether ddrun runs on the other nodes and reaches the endpoint (--rdzv-endpoint); "
           "--join-timeout sets how long to wait";
}

std::string node_lost_hint(const Finish& finish, const SummaryFacts& facts) {
    const std::string look = "look on that node: out of memory (dmesg), a reboot, its network";
    if (facts.max_restarts == 0) {
        return look + "; --max-restarts=N lets the group go on without it or with another one";
    }
    return finish.why_no_restart.empty() ? look : std::string();
}

}  // namespace

std::string hint_for(const Finish& finish, const SummaryFacts& facts) {
    if (!finish.cause) return {};
    const auto& cause = *finish.cause;
    switch (cause.kind) {
        case rendezvous::CauseKind::worker_failed: {
            if (!cause_was_here(finish)) return "ddrun on that node shows its last lines";
            auto hint = worker_hint(cause.failure, facts);
            return hint.empty() ? where_to_look(finish, facts) : hint;
        }
        case rendezvous::CauseKind::hang:
            return "--hang-timeout must be longer than the longest step or pause";
        case rendezvous::CauseKind::early_exit:
            return "a rank that ends early leaves the others waiting in their next collective";
        case rendezvous::CauseKind::node_unfit:
            return "state D usually means a file system or a device that does not answer; see "
                   "dmesg";
        case rendezvous::CauseKind::keeper_lost:
            return "the keeper is a process of ddrun; possible: OOM killer (see dmesg), another "
                   "user";
        case rendezvous::CauseKind::never_formed:
            return never_formed_hint(cause);
        case rendezvous::CauseKind::node_lost:
            return node_lost_hint(finish, facts);
        case rendezvous::CauseKind::node_left:
            return "--nnodes=MIN:MAX lets the others go on, --spares=N holds a node ready to take "
                   "its place";
        case rendezvous::CauseKind::membership:
            return "look for the reason on the node that comes and goes; a round counts as healthy "
                   "after 10 s or a committed step";
        case rendezvous::CauseKind::spawn_failed:
        case rendezvous::CauseKind::told_to_stop:
            break;
    }
    return {};
}

}  // namespace ddrun::launcher
