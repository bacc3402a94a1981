#include "launcher/core/summary.hpp"

#include "tests/support/catch.hpp"
#include "tests/unit/launcher/story.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using namespace ddrun::launcher::story;
using rendezvous::Cause;
using rendezvous::CauseKind;

namespace {

constexpr std::int64_t mib = 1LL << 20;

WorkerRecord worker(int rank, std::optional<ExitStatus> status, int signal_sent = 0) {
    WorkerRecord record;
    record.rank = record.local_rank = rank;
    record.pid = 100 + rank;
    record.status = status;
    record.signal_sent = signal_sent;
    return record;
}

// Rank `rank` of `size` ended with `status`; the others were stopped by ddrun.
Finish failure(int rank, int size, ExitStatus status) {
    Finish finish;
    Cause cause;
    cause.node_name = "n0";
    cause.failure.rank = cause.failure.local_rank = rank;
    cause.failure.pid = 100 + rank;
    cause.failure.status = status;
    cause.exit_code = finish.exit_code = status.shell_code();
    finish.cause = cause;
    finish.shutdown_timeout = 30s;
    for (int i = 0; i < size; ++i) {
        finish.workers.push_back(i == rank ? worker(i, status) : worker(i, killed_by(15), 15));
    }
    return finish;
}

SummaryFacts facts() {
    SummaryFacts known;
    known.program = "./train";
    known.node_name = "n0";
    known.uptime = 200ms;
    return known;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string hint_in(const std::string& summary) {
    const std::string mark = "ddrun: hint: ";
    const auto at = summary.find(mark);
    if (at == std::string::npos) return {};
    CHECK(summary.find(mark, at + 1) == std::string::npos);  // one
    return summary.substr(at + mark.size(), summary.find('\n', at) - at - mark.size());
}

}  // namespace

TEST_CASE("OK: a plain success says nothing") {
    Finish finish;
    finish.workers = {worker(0, exited(0))};
    CHECK(render_summary(finish, facts()).empty());
}

TEST_CASE("lost output is said also after a success") {
    auto known = facts();
    known.dropped_output = {"console: 120 lines dropped"};
    CHECK(render_summary(Finish{}, known) == "ddrun: output lost: console: 120 lines dropped\n");
}

TEST_CASE("MSG: a failure in full") {
    auto known = facts();
    known.stderr_tail = {"Traceback", "DISK GONE"};
    known.log_path = "/logs/1/stderr.log";
    known.max_restarts = 3;
    auto finish = failure(5, 8, exited(3));
    finish.restarts_used = 3;
    CHECK(render_summary(finish, known) ==
          "ddrun: ./train failed: rank 5 ended with exit code 3\n"
          "ddrun: root cause: node n0 rank 5 (local 5) pid 105: exit code 3 after 0.2 s\n"
          "ddrun: its last lines:\n"
          "ddrun:   | Traceback\n"
          "ddrun:   | DISK GONE\n"
          "ddrun: ranks 0-4, 6-7 stopped by ddrun (SIGTERM)\n"
          "ddrun: restarts used: 3 of 3\n"
          "ddrun: log: /logs/1/stderr.log\n"
          "ddrun: hint: all restarts are used; the same end each time points at the program or its "
          "data\n");
}

TEST_CASE("EXIT-5: ranks that failed after the cause are told apart from those ddrun stopped") {
    auto finish = failure(1, 6, exited(3));
    finish.workers[2] = worker(2, exited(1));
    finish.workers[3] = worker(3, exited(1));
    finish.workers[4] = worker(4, exited(0));
    finish.workers[5] = worker(5, exited(1));
    finish.workers[5].blamed_rank = 1;
    const auto text = render_summary(finish, facts());
    CHECK(contains(text, "ddrun: rank 0 stopped by ddrun (SIGTERM)\n"));
    CHECK(contains(text, "ddrun: ranks 2-3 failed after it (exit code 1)\n"));
    CHECK(contains(text, "ddrun: rank 4 finished before (exit code 0)\n"));
    CHECK(contains(text, "ddrun: rank 5 gave up because of rank 1\n"));
}

TEST_CASE("EXIT-6: a stop names signal and sender and has no root cause") {
    Finish finish;
    finish.exit_code = 143;
    Cause cause;
    cause.kind = CauseKind::told_to_stop;
    cause.words = "stopped by SIGTERM from pid 77 uid 1000";
    finish.cause = cause;
    finish.shutdown_timeout = 5s;
    finish.workers = {worker(0, exited(0), 15), worker(1, killed_by(9), 9), worker(2, exited(1))};
    finish.workers[1].killed_after_grace = true;
    auto known = facts();
    known.stderr_tail = {"should not be shown"};
    CHECK(render_summary(finish, known) ==
          "ddrun: stopped by SIGTERM from pid 77 uid 1000\n"
          "ddrun: rank 1 killed after 5 s grace\n"
          "ddrun: rank 0 stopped by ddrun (SIGTERM)\n"
          "ddrun: rank 2 ended by itself (exit code 1)\n");
}

TEST_CASE("a rank that gave up because of one of another node says so") {
    auto finish = failure(0, 1, exited(1));
    finish.cause->failure.blamed_rank = 9;
    CHECK(
        contains(render_summary(finish, facts()), "exit code 1 after 0.2 s, because of rank 9\n"));
}

TEST_CASE("256 ranks take a few lines, however they ended") {
    auto finish = failure(17, 256, killed_by(11));
    for (int i = 100; i < 256; ++i) {
        finish.workers[static_cast<std::size_t>(i)] = worker(i, exited(i % 50 + 1));
    }
    const auto text = render_summary(finish, facts());
    CHECK(std::count(text.begin(), text.end(), '\n') < 16);
    CHECK(contains(text, "ranks 0-16, 18-99 stopped by ddrun (SIGTERM)"));
    CHECK(contains(text, "ended in other ways"));
}

TEST_CASE("EXIT-2: SIGBUS looks at /dev/shm and says how to get more") {
    auto known = facts();
    known.shm_size_bytes = 64 * mib;
    known.shm_used_bytes = 1 * mib;
    const auto text = render_summary(failure(1, 2, killed_by(7)), known);
    CHECK(contains(text, "rank 1 killed by SIGBUS (bus error)"));
    CHECK(hint_in(text) ==
          "/dev/shm: 1 MiB of 64 MiB used; in a container give more with --shm-size, --ipc=host, "
          "or an "
          "emptyDir of medium Memory");
    known.shm_size_bytes = 1000 * mib;
    known.shm_used_bytes = 900 * mib;
    CHECK(contains(hint_in(render_summary(failure(1, 2, killed_by(7)), known)), "--shm-size"));
    known.shm_used_bytes = 10 * mib;
    CHECK(hint_in(render_summary(failure(1, 2, killed_by(7)), known)) ==
          "a mapped file shrank or its disk is full; /dev/shm: 10 MiB of 1000 MiB used");
}

TEST_CASE("EXIT-3: SIGKILL from outside, with and without the OOM killer's traces") {
    auto known = facts();
    const auto finish = failure(1, 2, killed_by(9));
    CHECK(contains(hint_in(render_summary(finish, known)),
                   "not sent by ddrun; possible: OOM killer"));
    known.oom_kills = 0;
    CHECK(contains(hint_in(render_summary(finish, known)), "possible: OOM killer"));
    known.oom_kills = 1;
    known.memory_limit_bytes = 50 * mib;
    known.memory_peak_bytes = 50 * mib;
    CHECK(hint_in(render_summary(finish, known)) ==
          "SIGKILL, not sent by ddrun: the kernel OOM killer ended it (limit 50 MiB, peak 50 MiB)");
}

TEST_CASE("a core dump says where the core went; without one, how to get it") {
    auto known = facts();
    auto finish = failure(0, 2, {ExitStatus::Kind::signalled, 11, true});
    known.core_pattern = "core";
    CHECK(contains(hint_in(render_summary(finish, known)), "in the working directory"));
    known.core_pattern = "|/usr/lib/systemd/systemd-coredump %P";
    CHECK(contains(hint_in(render_summary(finish, known)), "coredumpctl debug 100"));
    known.core_pattern = "|/usr/bin/handler %p";
    CHECK(contains(hint_in(render_summary(finish, known)), "/usr/bin/handler %p"));
    CHECK(contains(hint_in(render_summary(failure(0, 2, killed_by(6)), known)),
                   "ulimit -c unlimited"));
}

TEST_CASE("SLURM-5: a death by USR1 explains what ddrun does with it") {
    auto finish = failure(0, 2, killed_by(10));
    finish.cause->failure.reason = "ddrun forwarded SIGUSR1 and the worker has no handler for it";
    const auto text = render_summary(finish, facts());
    CHECK(contains(text, "rank 0 killed by SIGUSR1"));
    CHECK(contains(text, "ddrun: ddrun forwarded SIGUSR1"));
    CHECK(contains(hint_in(text), "must handle or ignore it"));
}

TEST_CASE("hints for ends that look odd") {
    CHECK(hint_in(render_summary(failure(0, 1, exited(137)), facts())) ==
          "exit code 137 is how a shell reports that its child was killed by SIGKILL");
    CHECK(contains(hint_in(render_summary(failure(0, 1, killed_by(15)), facts())),
                   "not sent by ddrun"));
    auto never = failure(0, 1, exited(1));
    never.cause->failure.never_retry = true;
    CHECK(hint_in(render_summary(never, facts())) == "the worker asked not to be restarted");
    CHECK(contains(hint_in(render_summary(failure(0, 1, exited(1)), facts())), "--log-dir"));
}

TEST_CASE("EXIT-8: a program that cannot be started is one line") {
    Finish finish;
    Cause cause;
    cause.kind = CauseKind::spawn_failed;
    cause.node_name = "n0";
    cause.words = "cannot start './notexec': Permission denied";
    finish.cause = cause;
    for (int i = 0; i < 8; ++i) {
        finish.workers.push_back(worker(i, std::nullopt));
        finish.workers.back().pid = 0;
    }
    CHECK(render_summary(finish, facts()) ==
          "ddrun: cannot start './notexec': Permission denied\n");
    auto elsewhere = facts();
    elsewhere.node_name = "n1";
    CHECK(contains(render_summary(finish, elsewhere), "ddrun: node n0: cannot start"));
}

TEST_CASE("RES-6: when some were started, it says what became of them") {
    Finish finish;
    Cause cause;
    cause.kind = CauseKind::spawn_failed;
    cause.words = "started 2 of 4 workers: fork: EAGAIN";
    finish.cause = cause;
    finish.workers = {worker(0, killed_by(15), 15), worker(1, killed_by(15), 15), worker(2, {}),
                      worker(3, {})};
    CHECK(contains(render_summary(finish, facts()), "ranks 0-1 stopped by ddrun (SIGTERM)\n"));
    CHECK(contains(render_summary(finish, facts()), "ranks 2-3 never ran\n"));
}

TEST_CASE("LIFE-8, LIFE-11: a hang and an early exit are named by kind and rank") {
    for (const auto kind : {CauseKind::hang, CauseKind::early_exit}) {
        auto finish = failure(2, 4, exited(0));
        finish.cause->kind = kind;
        finish.cause->words = "rank 2 did something";
        const auto text = render_summary(finish, facts());
        CHECK(contains(text, "rank 2 did something"));
        const std::string who = kind == CauseKind::hang ? "suspect" : "root cause";
        CHECK(contains(text, who + ": node n0 rank 2 (local 2) pid 102\n"));
        CHECK_FALSE(contains(text, "exit code 0 after"));
        CHECK_FALSE(hint_in(text).empty());
    }
}

TEST_CASE("words of several lines and colours stay inside the summary") {
    auto finish = failure(1, 2, exited(3));
    finish.cause->failure.reason = "rank 1: sleeping\nkernel stack: do_wait";
    auto known = facts();
    known.stderr_tail = {"\x1b[31mred\x1b[0m", "10%\r100%"};
    const auto text = render_summary(finish, known);
    CHECK(contains(text, "ddrun: rank 1: sleeping\nddrun: kernel stack: do_wait\n"));
    CHECK(contains(text, "ddrun:   | red\nddrun:   | 100%\n"));
}

TEST_CASE("the keeper's death and an unfit node are told in their own words") {
    for (const auto kind : {CauseKind::keeper_lost, CauseKind::node_unfit}) {
        auto finish = failure(0, 2, exited(0));
        finish.cause->kind = kind;
        finish.cause->words = "something about pid 9";
        const auto text = render_summary(finish, facts());
        CHECK(contains(text, "ddrun: something about pid 9\n"));
        CHECK_FALSE(contains(text, "root cause"));
    }
}

TEST_CASE("RDZV-7 a lost node is named once, with a hint where to look") {
    auto finish = failure(0, 2, exited(0));
    finish.cause->kind = CauseKind::node_lost;
    finish.cause->node_name = "n1";
    finish.cause->words = "node n1 was lost: its agent died";
    const auto text = render_summary(finish, facts());
    CHECK(contains(text, "ddrun: node n1 was lost: its agent died\n"));
    CHECK(contains(text, "hint: look on that node"));
    CHECK_FALSE(contains(text, "root cause"));
}

TEST_CASE("a group that did not form is told with what to look at; a refusal speaks for itself") {
    auto finish = failure(0, 2, exited(0));
    finish.cause->kind = CauseKind::never_formed;
    finish.cause->node_name.clear();
    finish.cause->words = "2 of 4 nodes joined within 600 s: n0, n1";
    CHECK(contains(render_summary(finish, facts()), "hint: look whether ddrun runs on the other"));
    finish.cause->words = "the group of 2 nodes is complete";
    CHECK_FALSE(contains(render_summary(finish, facts()), "hint:"));
    finish.cause->exit_code = 77;
    CHECK(contains(render_summary(finish, facts()), "hint: start all nodes with the same"));
}

TEST_CASE("a node that left, or comes and goes, is told with what helps") {
    auto finish = failure(0, 2, exited(0));
    finish.cause->words = "node n1 left (SIGTERM)";
    finish.cause->kind = CauseKind::node_left;
    CHECK(contains(render_summary(finish, facts()), "--nnodes=MIN:MAX"));
    finish.cause->kind = CauseKind::membership;
    CHECK(contains(render_summary(finish, facts()), "comes and goes"));
}

TEST_CASE("a process that SIGKILL did not end is told, once") {
    auto finish = failure(0, 2, exited(3));
    finish.still_there = "process 7 (cat) is still there";
    CHECK(contains(render_summary(finish, facts()), "ddrun: process 7 (cat) is still there\n"));
    finish.cause->kind = CauseKind::node_unfit;
    finish.cause->words = finish.still_there;
    const auto text = render_summary(finish, facts());
    CHECK(text.find(finish.still_there) == text.rfind(finish.still_there));
}

TEST_CASE("why there is no other attempt") {
    auto finish = failure(0, 1, exited(7));
    finish.why_no_restart = "exit code 7 is listed in --no-restart-on";
    auto known = facts();
    known.max_restarts = 5;
    CHECK(contains(
        render_summary(finish, known),
        "ddrun: restarts used: 0 of 5; no other one: exit code 7 is listed in --no-restart-on\n"));
}

TEST_CASE("a worker of another node is not mistaken for one of this node") {
    Finish finish = failure(2, 4, exited(3));
    CHECK(cause_was_here(finish));
    finish.workers.erase(finish.workers.begin() + 2);
    CHECK_FALSE(cause_was_here(finish));
    auto known = facts();
    known.uptime.reset();
    const auto text = render_summary(finish, known);
    CHECK(contains(text, "root cause: node n0 rank 2 (local 2) pid 102: exit code 3\n"));
    CHECK(hint_in(text) == "ddrun on that node shows its last lines");
    finish.workers.push_back(worker(2, exited(0)));
    finish.workers.back().pid = 7;  // of an older round, in which rank 2 was here
    CHECK_FALSE(cause_was_here(finish));
}
