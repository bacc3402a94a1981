#include "launcher/core/visible_devices.hpp"

#include <algorithm>
#include <charconv>

namespace ddrun::launcher {
namespace {

constexpr const char* list_variable = "CUDA_VISIBLE_DEVICES";

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool names_a_device(const std::string& entry) {
    const bool is_number =
        !entry.empty() && entry.find_first_not_of("0123456789") == std::string::npos;
    return is_number || entry.rfind("GPU-", 0) == 0 || entry.rfind("MIG-", 0) == 0;
}

std::vector<std::string> parse_list(const std::string& list) {
    std::vector<std::string> entries;
    for (std::size_t at = 0; at <= list.size();) {
        const auto comma = std::min(list.find(',', at), list.size());
        auto entry = trimmed(list.substr(at, comma - at));
        if (!names_a_device(entry)) break;
        entries.push_back(std::move(entry));
        at = comma + 1;
    }
    return entries;
}

std::optional<std::string> find_repeated(const std::vector<std::string>& entries) {
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
        if (std::find(entries.begin(), entry, *entry) != entry) return *entry;
    }
    return std::nullopt;
}

VisibleDevices listed_devices(const std::string& origin, const std::string& list) {
    VisibleDevices devices{parse_list(list), true, origin + "=" + list, {}};
    devices.repeated = find_repeated(devices.entries);
    return devices;
}

}  // namespace

std::optional<VisibleDevices> visible_devices(const JobSpec& spec, const MachineFacts& facts) {
    if (spec.gpus) return listed_devices("--gpus", *spec.gpus);
    const auto variable = facts.environment.find(list_variable);
    if (variable != facts.environment.end()) return listed_devices(list_variable, variable->second);
    if (!facts.device_nodes) return std::nullopt;
    VisibleDevices all{{}, false, "/dev/nvidia*", {}};
    for (int i = 0; i < *facts.device_nodes; ++i) all.entries.push_back(std::to_string(i));
    return all;
}

std::optional<int> device_index(const std::string& entry) {
    int index = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
    if (error != std::errc() || end != entry.data() + entry.size() || index < 0)
        return std::nullopt;
    return index;
}

}  // namespace ddrun::launcher
