#include "launcher/environment/kubernetes.hpp"

#include "launcher/environment/number.hpp"

namespace ddrun::launcher {
namespace {

// "train-3.train.ns.svc" of index 3 is "train-0.train.ns.svc" of index 0. Empty: the name does not
// end in the index, so it is not a stable one.
std::string name_of_first(const std::string& own_name, int index) {
    const auto dot = own_name.find('.');
    const std::string host = own_name.substr(0, dot);
    const std::string ending = "-" + std::to_string(index);
    if (dot == std::string::npos || host.size() <= ending.size() || !host.ends_with(ending)) {
        return {};
    }
    return host.substr(0, host.size() - ending.size()) + "-0" + own_name.substr(dot);
}

PodReading read_indexed_job(const std::string& index, const std::string& own_name) {
    const auto number = natural_number(index);
    if (!number) return {std::nullopt, not_a_number("JOB_COMPLETION_INDEX", index)};
    PodFacts facts;
    facts.index = *number;
    facts.index_variable = "JOB_COMPLETION_INDEX";
    facts.first_host = name_of_first(own_name, facts.index);
    facts.first_host_variable = "HOSTNAME";
    return {facts, {}};
}

PodReading read_pytorch_job(const Lookup& lookup) {
    const auto rank = lookup("RANK");
    const auto world = lookup("WORLD_SIZE");
    const auto master = lookup("MASTER_ADDR");
    if (!rank || !world || !master || master->empty()) return {};
    const auto index = natural_number(*rank);
    if (!index) return {std::nullopt, not_a_number("RANK", *rank)};
    const auto count = natural_number(*world);
    if (!count) return {std::nullopt, not_a_number("WORLD_SIZE", *world)};
    return {PodFacts{*index, "RANK", count, *master, "MASTER_ADDR"}, {}};
}

}  // namespace

PodReading read_pod(const Lookup& lookup, const std::string& own_name) {
    if (const auto index = lookup("JOB_COMPLETION_INDEX")) {
        return read_indexed_job(*index, own_name);
    }
    // These names mean nodes only where a pod is set up so; a worker of ddrun has them too.
    if (!lookup("KUBERNETES_SERVICE_HOST") || lookup(variable::worker_tag) ||
        lookup("PET_NNODES")) {
        return {};
    }
    return read_pytorch_job(lookup);
}

}  // namespace ddrun::launcher
