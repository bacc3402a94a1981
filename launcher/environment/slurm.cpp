#include "launcher/environment/slurm.hpp"

#include "launcher/environment/host_list.hpp"
#include "launcher/environment/number.hpp"

#include <charconv>
#include <initializer_list>
#include <utility>

namespace ddrun::launcher {
namespace {

struct Unusable {
    std::string words;
};

struct Found {
    std::string name;
    std::string value;
};

// Slurm's variables under their newest name first.
class Variables {
  public:
    explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

    [[nodiscard]] std::optional<Found> first_of(std::initializer_list<const char*> names) const {
        for (const char* name : names) {
            const auto value = lookup_(name);
            if (value && !value->empty()) return Found{name, *value};
        }
        return std::nullopt;
    }
    [[nodiscard]] int number(std::initializer_list<const char*> names, int otherwise) const {
        const auto found = first_of(names);
        if (!found) return otherwise;
        const auto number = natural_number(found->value);
        if (!number) throw Unusable{not_a_number(found->name, found->value)};
        return *number;
    }

  private:
    const Lookup& lookup_;
};

std::vector<std::string> hosts_of(const Variables& variables) {
    const auto list = variables.first_of({"SLURM_STEP_NODELIST"});
    if (!list) return {};
    HostList expanded = expand_host_list(list->value);
    if (!expanded.problem.empty())
        throw Unusable{list->name + "='" + list->value + "': " + expanded.problem};
    return std::move(expanded.hosts);
}

int tasks_on(int node, const Variables& variables) {
    const auto text = variables.first_of({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
    if (!text) return 1;
    const std::vector<int> counts = expand_counts(text->value);
    const auto at = static_cast<std::size_t>(node);
    if (at >= counts.size()) {
        throw Unusable{text->name + "='" + text->value + "' says nothing about node " +
                       std::to_string(node)};
    }
    return counts[at];
}

SlurmFacts facts_of(const Variables& variables, std::string job_id) {
    SlurmFacts facts;
    facts.job_id = std::move(job_id);
    facts.restart_count = variables.number({"SLURM_RESTART_COUNT"}, 0);
    facts.job_nodes = variables.number({"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}, 1);
    facts.in_step = variables
                        .first_of({"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_TASKS_PER_NODE",
                                   "SLURM_STEP_NODELIST"})
                        .has_value();
    if (!facts.in_step) return facts;
    if (const auto step = variables.first_of({"SLURM_STEP_ID", "SLURM_STEPID"})) {
        facts.step_id = step->value;
    }
    facts.hosts = hosts_of(variables);
    facts.node_count = variables.number({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}, 1);
    facts.node_id = variables.number({"SLURM_NODEID"}, 0);
    if (!facts.hosts.empty() && static_cast<int>(facts.hosts.size()) != facts.node_count) {
        throw Unusable{"SLURM_STEP_NODELIST names " + std::to_string(facts.hosts.size()) +
                       " nodes, but SLURM_STEP_NUM_NODES is " + std::to_string(facts.node_count)};
    }
    if (facts.node_id >= facts.node_count) {
        throw Unusable{"SLURM_NODEID=" + std::to_string(facts.node_id) + " is beyond the step's " +
                       std::to_string(facts.node_count) + " nodes"};
    }
    facts.task_here = variables.number({"SLURM_LOCALID"}, 0);
    facts.tasks_here = tasks_on(facts.node_id, variables);
    return facts;
}

}  // namespace

std::string SlurmFacts::run_id() const {
    std::string id = job_id;
    if (!step_id.empty()) id += "." + step_id;
    if (restart_count > 0) id += "-" + std::to_string(restart_count);
    return id;
}

std::vector<int> expand_counts(std::string_view text) {
    std::vector<int> counts;
    while (!text.empty()) {
        int value = 0;
        std::size_t times = 1;
        const auto read = [&](auto& number) {
            const auto [rest, error] =
                std::from_chars(text.data(), text.data() + text.size(), number);
            const bool read_one = error == std::errc{} && rest != text.data();
            text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
            return read_one;
        };
        if (!read(value) || value < 0) return {};
        if (text.starts_with("(x")) {
            text.remove_prefix(2);
            if (!read(times) || !text.starts_with(')')) return {};
            text.remove_prefix(1);
        }
        if (times > max_hosts_in_list - counts.size()) return {};
        counts.insert(counts.end(), times, value);
        if (text.empty()) break;
        if (!text.starts_with(',') || text.size() == 1) return {};
        text.remove_prefix(1);
    }
    return counts;
}

SlurmReading read_slurm(const Lookup& lookup) {
    const Variables variables(lookup);
    const auto job = variables.first_of({"SLURM_JOB_ID", "SLURM_JOBID"});
    if (!job) return {};
    try {
        return {facts_of(variables, job->value), {}};
    } catch (const Unusable& unusable) {
        return {std::nullopt, unusable.words};
    }
}

}  // namespace ddrun::launcher
