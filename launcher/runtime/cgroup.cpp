#include "launcher/runtime/cgroup.hpp"

#include "launcher/runtime/small_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

namespace ddrun::launcher {
namespace {

constexpr auto mount_root = "/sys/fs/cgroup";

// Where a controller's files of ddrun's own group are, innermost first.
struct Place {
    bool unified = false;
    std::vector<std::string> levels;
};

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

// A container often sees its own group as the root of the mount while /proc names it from the
// host's root, so every suffix of the path that exists counts, and the mount itself always does.
std::vector<std::string> levels_of(const std::string& mount, std::string path) {
    std::vector<std::string> levels;
    while (!path.empty() && path != "/") {
        if (exists(mount + path)) {
            levels.push_back(mount + path);
        }
        path.erase(path.rfind('/'));
    }
    levels.push_back(mount);
    return levels;
}

bool names(std::string_view list, std::string_view controller) {
    while (!list.empty()) {
        const std::string_view entry = list.substr(0, list.find(','));
        if (entry == controller) {
            return true;
        }
        list.remove_prefix(std::min(entry.size() + 1, list.size()));
    }
    return false;
}

// A version 1 hierarchy that carries the controller wins: then version 2 cannot have it.
std::optional<Place> find_controller(const std::string& controller) {
    std::istringstream lines(read_small_file("/proc/self/cgroup"));
    std::string line;
    std::string unified_path;
    while (std::getline(lines, line)) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (controllers.empty()) {
            unified_path = path;
        } else if (names(controllers, controller)) {
            const std::string joint = std::string(mount_root) + "/" + controllers;
            const std::string alone = std::string(mount_root) + "/" + controller;
            return Place{false, levels_of(exists(joint) ? joint : alone, path)};
        }
    }
    if (unified_path.empty() || !exists(std::string(mount_root) + "/cgroup.controllers")) {
        return std::nullopt;
    }
    return Place{true, levels_of(mount_root, unified_path)};
}

std::optional<std::int64_t> number_after(const std::string& text, const std::string& name) {
    std::istringstream words(text);
    std::string key;
    std::int64_t value = 0;
    while (words >> key >> value) {
        if (key == name) {
            return value;
        }
    }
    return std::nullopt;
}

std::optional<std::int64_t> tightest(const Place& place, const std::string& file) {
    std::optional<std::int64_t> limit;
    for (const std::string& level : place.levels) {
        const auto here = leading_number(read_small_file(level + "/" + file));
        if (here && (!limit || *here < *limit)) {
            limit = here;
        }
    }
    return limit;
}

// The first level that has the file: counters of the own group, not of the whole machine.
std::string nearest(const Place& place, const std::string& file) {
    for (const std::string& level : place.levels) {
        std::string text = read_small_file(level + "/" + file);
        if (!text.empty()) {
            return text;
        }
    }
    return {};
}

std::optional<std::int64_t> quota_of(const Place& place, const std::string& level) {
    std::int64_t quota = -1;
    std::int64_t period = 0;
    if (place.unified) {
        std::istringstream(read_small_file(level + "/cpu.max")) >> quota >> period;  // "max 100000"
    } else {
        quota = leading_number(read_small_file(level + "/cpu.cfs_quota_us")).value_or(-1);
        period = quota <= 0
                     ? 0
                     : leading_number(read_small_file(level + "/cpu.cfs_period_us")).value_or(0);
    }
    if (quota <= 0 || period <= 0) {
        return std::nullopt;
    }
    return (quota + period - 1) / period;
}

}  // namespace

std::optional<int> cgroup_cpu_limit() {
    const auto place = find_controller("cpu");
    std::optional<int> limit;
    for (const std::string& level : place ? place->levels : std::vector<std::string>{}) {
        const auto here = quota_of(*place, level);
        if (here && (!limit || *here < *limit)) {
            limit = static_cast<int>(*here);
        }
    }
    return limit;
}

std::string cgroup_pids_limit() {
    const auto place = find_controller("pids");
    const auto limit = place ? tightest(*place, "pids.max") : std::nullopt;
    return limit ? "pids.max=" + std::to_string(*limit) : std::string();
}

MemoryCounters read_memory_counters() {
    MemoryCounters counters;
    const auto place = find_controller("memory");
    if (!place) {
        return counters;
    }
    // Version 1 writes "no limit" as a number near the largest one.
    constexpr std::int64_t unlimited = std::int64_t{1} << 60;
    const bool unified = place->unified;
    counters.oom_kills =
        number_after(nearest(*place, unified ? "memory.events" : "memory.oom_control"), "oom_kill");
    counters.limit_bytes = tightest(*place, unified ? "memory.max" : "memory.limit_in_bytes");
    counters.peak_bytes =
        leading_number(nearest(*place, unified ? "memory.peak" : "memory.max_usage_in_bytes"));
    if (counters.limit_bytes && *counters.limit_bytes >= unlimited) {
        counters.limit_bytes.reset();
    }
    return counters;
}

}  // namespace ddrun::launcher
