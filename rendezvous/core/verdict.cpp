#include "rendezvous/core/verdict.hpp"

namespace ddrun::rendezvous {
namespace {

int or_else(int code, int otherwise) {
    return code != 0 ? code : otherwise;
}

bool says_cannot_start(const ExitStatus& status) {
    return status.kind == ExitStatus::Kind::exited &&
           (status.value == exit_code::not_executable || status.value == exit_code::not_found);
}

}  // namespace

int exit_code_of(const Cause& cause) {
    switch (cause.kind) {
        case CauseKind::worker_failed:
            if (cause.failure.never_retry) return exit_code::never_retry;
            return or_else(cause.failure.status.shell_code(),
                           or_else(cause.exit_code, exit_code::internal_error));
        case CauseKind::hang:
        case CauseKind::early_exit:
            return exit_code::timed_out;
        case CauseKind::spawn_failed:
        case CauseKind::node_unfit:
        case CauseKind::keeper_lost:
            return or_else(cause.exit_code, exit_code::system_refused);
        case CauseKind::told_to_stop:
            return or_else(cause.exit_code, exit_code::signal_base + signal_number("TERM"));
        case CauseKind::never_formed:
        case CauseKind::node_lost:
        case CauseKind::node_left:
        case CauseKind::membership:
            return or_else(cause.exit_code, exit_code::group_lost);
    }
    return exit_code::internal_error;
}

bool worth_retrying(const Cause& cause) {
    switch (cause.kind) {
        case CauseKind::worker_failed:
        case CauseKind::hang:
        case CauseKind::early_exit:
            return !cause.failure.never_retry && !says_cannot_start(cause.failure.status);
        case CauseKind::node_unfit:
        case CauseKind::keeper_lost:
        case CauseKind::node_lost:
            return true;
        case CauseKind::spawn_failed:
        case CauseKind::told_to_stop:
        case CauseKind::never_formed:
        case CauseKind::node_left:
        case CauseKind::membership:
            return false;
    }
    return false;
}

}  // namespace ddrun::rendezvous
