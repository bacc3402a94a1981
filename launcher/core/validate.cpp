#include "launcher/core/validate.hpp"

#include "rendezvous/protocol/worker_env.hpp"

namespace ddrun::launcher {
namespace {

using Sentences = std::vector<std::string>;

// Heartbeats that get lost or late must not cost a node its place.
constexpr int heartbeats_in_a_lease = 3;

void check_meeting_place(const JobSpec& spec, const NameOf& name_of, Sentences& problems) {
    if (!has_several_nodes(spec)) return;
    if (spec.rendezvous_port == 0) {
        problems.push_back(name_of("rdzv-endpoint") +
                           ": port 0 would be another one on each node; give one, or none");
    }
    // With an endpoint, a server of its own may have the port on another machine.
    if (spec.endpoint.empty() && spec.master_port == spec.rendezvous_port) {
        problems.push_back(name_of("master-port") + ": at port " +
                           std::to_string(spec.rendezvous_port) +
                           " the nodes meet, so the workers cannot; give --rdzv-port=PORT for the "
                           "nodes, or leave " +
                           name_of("master-port") + " out");
    }
    if (!spec.rendezvous_host.empty()) return;
    problems.push_back(name_of(spec.spares > 0 ? "spares" : "nnodes") +
                       ": a job of several nodes needs a place to meet; give all of them the same "
                       "--rdzv-endpoint=HOST[:PORT], HOST being one of the nodes");
}

void check_lease(const JobSpec& spec, const NameOf& name_of, Sentences& problems) {
    if (spec.lease >= heartbeats_in_a_lease * spec.heartbeat) return;
    problems.push_back(name_of("lease") + ": a lease is at least " +
                       std::to_string(heartbeats_in_a_lease) + " times the heartbeat; give " +
                       name_of("lease") + " more or " + name_of("heartbeat") + " less");
}

void check_own_address(const JobSpec& spec, const NameOf& name_of, Sentences& problems) {
    if (!spec.local_addr || !spec.interface) return;
    problems.push_back(name_of("local-addr") + " and " + name_of("interface") +
                       " both choose this node's address; leave one out");
}

void check_node_rank(const JobSpec& spec, const NameOf& name_of, Sentences& problems) {
    if (!spec.node_rank || *spec.node_rank < spec.max_nodes) return;
    problems.push_back(name_of("node-rank") + ": " + std::to_string(*spec.node_rank) +
                       " is too high for a job of " + std::to_string(spec.max_nodes) +
                       (spec.max_nodes == 1
                            ? " node; give 0 or leave it out"
                            : " nodes; give 0 to " + std::to_string(spec.max_nodes - 1)));
}

void check_program(const JobSpec& spec, const NameOf& name_of, Sentences& problems) {
    if (spec.kind == ProgramKind::module && spec.program.find('/') != std::string::npos) {
        problems.push_back(
            name_of("module") + ": '" + spec.program +
            "' is a path, not a module; leave -m out or give a name such as package.train");
    }
}

// Variables by which ddrun tells each worker who it is cannot be one text for all.
void check_env(const JobSpec& spec, const NameOf& name_of, Sentences& problems) {
    for (const auto& [name, value] : spec.extra_env) {
        if (!is_worker_variable(name)) continue;
        const std::string instead = name == "MASTER_ADDR"   ? "; use --master-addr"
                                    : name == "MASTER_PORT" ? "; use --master-port"
                                    : name == "ROLE_NAME"   ? "; use --role"
                                                            : "";
        problems.push_back(name_of("env " + name) + ": " + name +
                           " is set by ddrun for each worker and cannot be given" + instead);
    }
}

class RankCheck {
  public:
    RankCheck(int workers, const NameOf& name_of, Sentences& problems)
        : workers_(workers), name_of_(name_of), problems_(problems) {}

    // A range that begins inside may end outside: "0-7" means all of four workers too.
    void check(std::string_view option, const RankRange& range) {
        if (range.first < workers_) return;
        problems_.push_back(
            name_of_(option) + ": there is no rank " + std::to_string(range.first) + "; " +
            name_of_("nproc-per-node") + " makes " + std::to_string(workers_) +
            (workers_ == 1 ? " worker, rank 0"
                           : " workers, ranks 0 to " + std::to_string(workers_ - 1)));
    }

  private:
    int workers_;
    const NameOf& name_of_;
    Sentences& problems_;
};

// Of several nodes nobody knows the others' workers yet.
void check_global_ranks(const JobSpec& spec, RankCheck& ranks) {
    if (spec.stdin_rank) ranks.check("stdin", {*spec.stdin_rank, *spec.stdin_rank});
    for (const PrefixCommand& command : spec.prefix_commands) {
        for (const RankRange& range : command.ranks.ranges) ranks.check("prefix-command", range);
    }
    for (const RankRange& range : spec.ranks_filter.ranges) ranks.check("ranks-filter", range);
}

}  // namespace

Sentences validate_ranks(const JobSpec& spec, int local_world_size, const NameOf& name_of) {
    Sentences problems;
    RankCheck ranks(local_world_size, name_of, problems);
    if (!has_several_nodes(spec)) check_global_ranks(spec, ranks);
    for (const auto& [range, streams] : spec.redirects.ranges) ranks.check("redirects", range);
    for (const auto& [range, streams] : spec.tee.ranges) ranks.check("tee", range);
    for (const RankRange& range : spec.local_ranks_filter.ranges)
        ranks.check("local-ranks-filter", range);
    return problems;
}

Sentences validate(const JobSpec& spec, const NameOf& name_of) {
    Sentences problems;
    check_meeting_place(spec, name_of, problems);
    check_lease(spec, name_of, problems);
    check_own_address(spec, name_of, problems);
    check_node_rank(spec, name_of, problems);
    check_program(spec, name_of, problems);
    check_env(spec, name_of, problems);
    if (spec.slots.source == SlotSource::number) {
        for (std::string& problem : validate_ranks(spec, spec.slots.number, name_of)) {
            problems.push_back(std::move(problem));
        }
    }
    return problems;
}

}  // namespace ddrun::launcher
