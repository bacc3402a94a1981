#include "launcher/config/plan_text.hpp"

#include "launcher/config/values.hpp"

#include <algorithm>

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

using Lines = std::vector<std::string>;  // sorted

Lines environment_lines(const Variables& own, const Variables& theirs) {
    Lines lines;
    for (const auto& [name, value] : theirs) {
        const auto found = own.find(name);
        if (found != own.end() && found->second == value) continue;
        lines.push_back(name + "=" + values::shell_quoted(value));
    }
    for (const auto& [name, value] : own) {
        if (!theirs.contains(name)) lines.push_back(name + " is taken out");
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

Lines shared_lines(const std::vector<Lines>& of_workers) {
    Lines shared = of_workers.empty() ? Lines{} : of_workers.front();
    for (const Lines& lines : of_workers) {
        std::erase_if(shared, [&](const std::string& line) {
            return !std::binary_search(lines.begin(), lines.end(), line);
        });
    }
    return shared;
}

void add_lines(const Lines& lines, const Lines& but, std::string& text) {
    for (const std::string& line : lines) {
        if (!std::binary_search(but.begin(), but.end(), line)) text += "    " + line + "\n";
    }
}

}  // namespace

std::string plan_text(const std::vector<WorkerPlan>& plan, const Variables& own_environment) {
    std::vector<Lines> environments;
    for (const WorkerPlan& worker : plan)
        environments.push_back(environment_lines(own_environment, worker.environment));
    const Lines shared = plan.size() > 1 ? shared_lines(environments) : Lines{};
    std::string text;
    if (!shared.empty()) text += "every worker:\n";
    add_lines(shared, {}, text);
    for (std::size_t i = 0; i < plan.size(); ++i) {
        const WorkerPlan& worker = plan[i];
        const auto rank = worker.environment.find("RANK");  // may be a placeholder
        text += "rank " +
                (rank == worker.environment.end() ? std::to_string(worker.rank) : rank->second) +
                " (local rank " + std::to_string(worker.local_rank) +
                "):" + command_text(worker.argv) + "\n";
        add_lines(environments[i], shared, text);
        if (!worker.cpus.empty()) text += "    CPUs " + ranges_text(worker.cpus) + "\n";
        if (worker.memory_node)
            text += "    memory of NUMA node " + std::to_string(*worker.memory_node) + "\n";
        if (worker.owns_stdin) text += "    reads ddrun's stdin\n";
    }
    return text;
}

}  // namespace ddrun::launcher
