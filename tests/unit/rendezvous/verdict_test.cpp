#include "rendezvous/core/verdict.hpp"

#include "tests/support/catch.hpp"
#include "tests/unit/rendezvous/job_story.hpp"

using namespace ddrun::testing;

namespace {

Cause never_retry(int code) {
    Cause cause = exited(code);
    cause.failure.never_retry = true;
    return cause;
}

}  // namespace

TEST_CASE("the exit code table") {
    const auto [cause, code, retry] = GENERATE(table<Cause, int, bool>({
        {exited(1), 1, true},
        {exited(15), 15, true},
        {exited(255), 255, true},
        {killed_by(15), 143, true},
        {killed_by(9), 137, true},
        {killed_by(11), 139, true},
        {exited(126), 126, false},
        {exited(127), 127, false},
        {never_retry(93), 93, false},
        {never_retry(1), 93, false},
        {of_kind(CauseKind::spawn_failed, 127), 127, false},
        {of_kind(CauseKind::spawn_failed, 126), 126, false},
        {of_kind(CauseKind::spawn_failed, 71), 71, false},
        {of_kind(CauseKind::spawn_failed), 71, false},
        {of_kind(CauseKind::told_to_stop, 130), 130, false},
        {of_kind(CauseKind::told_to_stop), 143, false},
        {of_kind(CauseKind::hang), 124, true},
        {of_kind(CauseKind::early_exit), 124, true},
        {of_kind(CauseKind::node_unfit), 71, true},
        {of_kind(CauseKind::keeper_lost), 71, true},
        {of_kind(CauseKind::node_lost), 75, true},
        {of_kind(CauseKind::node_left), 75, false},
        {of_kind(CauseKind::membership), 75, false},
        {of_kind(CauseKind::never_formed), 75, false},
        {of_kind(CauseKind::never_formed, 77), 77, false},
    }));
    INFO("kind " << static_cast<int>(cause.kind) << ", " << cause.failure.status.describe());
    CHECK(exit_code_of(cause) == code);
    CHECK(worth_retrying(cause) == retry);
}

TEST_CASE("no cause ends in 0") {
    CHECK(exit_code_of(exited(0)) == 70);
    CHECK(exit_code_of(of_kind(CauseKind::worker_failed, 70)) == 70);
}
