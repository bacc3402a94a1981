#include "launcher/config/plan_text.hpp"

#include "launcher/config/values.hpp"

namespace ddrun::launcher {
namespace {

std::string ranges_text(const std::vector<int>& numbers) {
    RankSet set;
    for (const int number : numbers) {
        if (!set.ranges.empty() && set.ranges.back().last + 1 == number)
            set.ranges.back().last = number;
        else
            set.ranges.push_back({number, number});
    }
    return values::write(set);
}

std::string command_text(const std::vector<std::string>& argv) {
    std::string text;
    for (const std::string& word : argv) text += " " + values::shell_quoted(word);
    return text;
}

void add_environment(const Variables& own, const Variables& theirs, std::string& text) {
    for (const auto& [name, value] : theirs) {
        const auto found = own.find(name);
        if (found != own.end() && found->second == value) continue;
        text += "    " + name + "=" + values::shell_quoted(value) + "\n";
    }
    for (const auto& [name, value] : own) {
        if (!theirs.contains(name)) text += "    " + name + " is taken out\n";
    }
}

}  // namespace

std::string plan_text(const std::vector<WorkerPlan>& plan, const Variables& own_environment) {
    std::string text;
    for (const WorkerPlan& worker : plan) {
        text += "rank " + std::to_string(worker.rank) + " (local rank " +
                std::to_string(worker.local_rank) + "):" + command_text(worker.argv) + "\n";
        add_environment(own_environment, worker.environment, text);
        if (!worker.cpus.empty()) text += "    CPUs " + ranges_text(worker.cpus) + "\n";
        if (worker.memory_node)
            text += "    memory of NUMA node " + std::to_string(*worker.memory_node) + "\n";
        if (worker.owns_stdin) text += "    reads ddrun's stdin\n";
    }
    return text;
}

}  // namespace ddrun::launcher
