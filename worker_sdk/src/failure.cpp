#include "worker_sdk/src/failure.hpp"

namespace ddrun {

Error::Error(ErrorKind kind, const std::string& words) : std::runtime_error(words), kind_(kind) {}

int Error::exit_code() const noexcept {
    switch (kind_) {
        case ErrorKind::environment:
            return 2;
        case ErrorKind::system:
            return 71;
        case ErrorKind::agent_lost:
        case ErrorKind::peer_lost:
        case ErrorKind::timed_out:
            return 75;
        case ErrorKind::refused:
            return 77;
        case ErrorKind::never_retry:
            return 93;
        case ErrorKind::desynchronised:
        case ErrorKind::invalid_use:
        case ErrorKind::store:
            return 1;
    }
    return 1;
}

PeerLost::PeerLost(int rank, const std::string& words)
    : Error(ErrorKind::peer_lost, words), rank_(rank) {}

TimedOut::TimedOut(std::vector<int> missing, const std::string& words)
    : Error(ErrorKind::timed_out, words), missing_(std::move(missing)) {}

Desynchronised::Desynchronised(const std::string& words)
    : Error(ErrorKind::desynchronised, words) {}

AgentLost::AgentLost(const std::string& words) : Error(ErrorKind::agent_lost, words) {}

namespace detail {

void throw_failure(const Failure& failure) {
    switch (failure.kind) {
        case ErrorKind::peer_lost:
            throw PeerLost(failure.rank, failure.words);
        case ErrorKind::timed_out:
            throw TimedOut(failure.missing, failure.words);
        case ErrorKind::desynchronised:
            throw Desynchronised(failure.words);
        case ErrorKind::agent_lost:
            throw AgentLost(failure.words);
        case ErrorKind::environment:
        case ErrorKind::system:
        case ErrorKind::refused:
        case ErrorKind::invalid_use:
        case ErrorKind::store:
        case ErrorKind::never_retry:
            throw Error(failure.kind, failure.words);
    }
    throw Error(failure.kind, failure.words);
}

void throw_foreign_value(const std::string& key) {
    throw Error(ErrorKind::store, "the store has something else at '" + key +
                                      "': keys of 'ddrun.' belong to the SDK");
}

}  // namespace detail
}  // namespace ddrun
