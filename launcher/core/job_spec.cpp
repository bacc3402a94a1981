#include "launcher/core/job_spec.hpp"

#include <algorithm>
#include <string_view>

namespace ddrun::launcher {
namespace {

bool holds(const RankRange& range, int rank) {
    return range.first <= rank && rank <= range.last;
}

}  // namespace

Streams StreamMap::for_rank(int local_rank) const {
    const auto last = std::find_if(ranges.rbegin(), ranges.rend(), [&](const auto& entry) {
        return holds(entry.first, local_rank);
    });
    return last == ranges.rend() ? otherwise : last->second;
}

bool RankSet::contains(int rank) const {
    return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const RankRange& range) {
               return holds(range, rank);
           });
}

ProgramKind decided_kind(const JobSpec& spec) {
    constexpr std::string_view ending = ".py";
    if (spec.kind != ProgramKind::automatic) return spec.kind;
    const bool is_script = spec.program.size() > ending.size() && spec.program.ends_with(ending);
    return is_script ? ProgramKind::script : ProgramKind::execute;
}

bool serves_agent_store(const JobSpec& spec) {
    switch (spec.agent_store) {
        case AgentStore::on:
            return true;
        case AgentStore::off:
            return false;
        case AgentStore::automatic:
            break;
    }
    const ProgramKind kind = decided_kind(spec);
    return kind == ProgramKind::module || kind == ProgramKind::script;
}

bool has_several_nodes(const JobSpec& spec) {
    return spec.max_nodes + spec.spares > 1;
}

}  // namespace ddrun::launcher
