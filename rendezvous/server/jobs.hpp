#pragma once

#include "rendezvous/core/job_service.hpp"
#include "rendezvous/core/service_events.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ddrun::rendezvous {

struct JobsSettings {
    std::optional<std::string> only;  // the one job that is served; nothing: any
    std::size_t most_jobs = 10'000;
    std::string build;  // "0.1.0", for words
    // 128 fresh random bits in hex: an incarnation.
    std::function<std::string()> fresh_incarnation;
    std::function<std::uint64_t()> fresh_seed;
    // Jobs that ran when the server before this one ended, and until when their nodes may come
    // back. Until one of them does, nobody can start a job of that id.
    std::map<std::string, TimePoint> awaited;
};

// The jobs of one server: takes a connection to the job that its hello names, and keeps the
// earliest deadline of all. No clock and no socket; not thread-safe. After ClosePeer nothing needs
// to be said about that connection.
class Jobs {
  public:
    using Actions = std::vector<ServiceAction>;

    explicit Jobs(JobsSettings settings);

    [[nodiscard]] Actions step(const ServiceEvent& event, TimePoint now);
    [[nodiscard]] Actions advance_to(TimePoint now);
    [[nodiscard]] std::optional<TimePoint> next_deadline() const;
    // From a peer that has no connection of its own.
    [[nodiscard]] Actions obituary(const Obituary& obituary, TimePoint now);

    // Every job is over and its nodes have heard so; also: there never was one.
    [[nodiscard]] bool all_told() const;
    [[nodiscard]] std::vector<JobStatus> status(TimePoint now) const;

  private:
    struct Job {
        std::unique_ptr<JobService> service;
        std::optional<TimePoint> deadline;
    };
    using JobMap = std::map<std::string, Job>;

    Actions on(const PeerSaid& said, TimePoint now);
    Actions on(const PeerGone& gone, TimePoint now);
    Actions on(const ServerWasSlow& slow, TimePoint now);
    Actions greet(const PeerSaid& said, const NodeHello& hello, TimePoint now);
    [[nodiscard]] std::optional<NodeRefused> refusal(const NodeHello& hello, TimePoint now) const;
    [[nodiscard]] std::unique_ptr<JobService> new_service(const std::string& id) const;
    Actions settle(JobMap::iterator job, Actions actions);
    void remember(const JobStatus& ended);

    JobsSettings settings_;
    JobMap jobs_;
    std::unordered_map<ConnectionId, std::string> job_of_;
    std::set<std::pair<TimePoint, std::string>> deadlines_;
    bool only_is_over_ = false;
    // Runs that are over, by incarnation, in words: a node that was cut off meanwhile must not
    // bring one to life again. Bounded; the oldest are forgotten first.
    std::map<std::string, std::string> ended_;
    std::deque<std::string> ended_in_order_;
};

}  // namespace ddrun::rendezvous
