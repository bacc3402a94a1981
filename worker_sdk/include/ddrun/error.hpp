#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace ddrun {

enum class ErrorKind {
    environment,     // a variable or a given path is wrong; the words name it
    system,          // the system refused: memory, descriptors, a mapping
    agent_lost,      // the connection to this node's agent is gone
    refused,         // the agent does not accept this worker
    peer_lost,       // another rank died, left, or gave up
    timed_out,       // a deadline passed; the words say who never came
    desynchronised,  // the ranks called different collectives
    invalid_use,     // this call cannot work here: shapes, types, order of calls
    store,           // the store refused: full, too large, not a number
    never_retry,     // Worker::never_retry() was called
};

// Base of everything this library throws. what() is one or two plain sentences: what failed, which
// rank or variable, what to do. Copyable; safe to keep after the Worker has ended.
class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& words);

    [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

    // What main() should return for it, so that the launcher draws the right conclusion: 93 never
    // retry, 77 refused, 75 worth another attempt (peer, agent or time lost), 71 system, 2 bad
    // environment, 1 otherwise.
    [[nodiscard]] int exit_code() const noexcept;

  private:
    ErrorKind kind_;
};

// Another rank is gone, so what this rank waited for can never come. The agent has already been
// told that this worker ends because of `rank()`, and will not take its exit for the cause.
class PeerLost : public Error {
  public:
    PeerLost(int rank, const std::string& words);

    // The lost rank; -1: not known (a whole node, for example).
    [[nodiscard]] int rank() const noexcept { return rank_; }

  private:
    int rank_;
};

// A deadline passed.
class TimedOut : public Error {
  public:
    TimedOut(std::vector<int> missing, const std::string& words);

    // Ranks that did not arrive, rising; empty: not known, or the wait was not for ranks.
    [[nodiscard]] const std::vector<int>& missing() const noexcept { return missing_; }

  private:
    std::vector<int> missing_;
};

// Ranks called collectives that do not fit together. Every rank of the group gets this error with
// the same words, which say who called what. No data of the failed call can be trusted.
class Desynchronised : public Error {
  public:
    explicit Desynchronised(const std::string& words);
};

// The agent of this node is gone. Under ddrun the worker itself is killed at the same moment.
class AgentLost : public Error {
  public:
    explicit AgentLost(const std::string& words);
};

}  // namespace ddrun
