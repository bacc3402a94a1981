#include "launcher/core/validate.hpp"

#include "rendezvous/protocol/worker_env.hpp"

namespace ddrun::launcher {
namespace {

using Sentences = std::vector<std::string>;

// ddrun runs one node so far; everything else that follows from it asks `max_nodes`.
void check_node_count(const JobSpec& spec, const NameOf& name_of, Sentences& problems) {
    if (spec.max_nodes <= 1) return;
    problems.push_back(name_of("nnodes") +
                       ": this version of ddrun runs jobs of one node, not of " +
                       std::to_string(spec.max_nodes) + "; leave --nnodes out or give 1");
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

}  // namespace

Sentences validate_ranks(const JobSpec& spec, int local_world_size, const NameOf& name_of) {
    Sentences problems;
    RankCheck ranks(local_world_size, name_of, problems);
    if (spec.stdin_rank) ranks.check("stdin", {*spec.stdin_rank, *spec.stdin_rank});
    for (const PrefixCommand& command : spec.prefix_commands) {
        for (const RankRange& range : command.ranks.ranges) ranks.check("prefix-command", range);
    }
    for (const auto& [range, streams] : spec.redirects.ranges) ranks.check("redirects", range);
    for (const auto& [range, streams] : spec.tee.ranges) ranks.check("tee", range);
    for (const RankRange& range : spec.local_ranks_filter.ranges)
        ranks.check("local-ranks-filter", range);
    for (const RankRange& range : spec.ranks_filter.ranges) ranks.check("ranks-filter", range);
    return problems;
}

Sentences validate(const JobSpec& spec, const NameOf& name_of) {
    Sentences problems;
    check_node_count(spec, name_of, problems);
    check_node_rank(spec, name_of, problems);
    check_program(spec, name_of, problems);
    check_env(spec, name_of, problems);
    if (spec.slots.source == SlotSource::number && spec.max_nodes == 1) {
        for (std::string& problem : validate_ranks(spec, spec.slots.number, name_of)) {
            problems.push_back(std::move(problem));
        }
    }
    return problems;
}

}  // namespace ddrun::launcher
