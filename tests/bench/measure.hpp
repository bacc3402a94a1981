#pragma once

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

// Contestants take turns, so that a noisy minute hits all of them; medians are compared.
namespace ddrun::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

struct Contestant {
    std::string name;
    std::function<double()> once;  // seconds; negative: not available
    int every = 1;                 // slow ones run only in every n-th turn
    std::vector<double> seconds = {};
};

inline void run_in_turn(std::vector<Contestant>& contestants, int turns) {
    for (int turn = 0; turn < turns; ++turn)
        for (auto& contestant : contestants) {
            if (turn % contestant.every != 0) continue;
            const double took = contestant.once();
            if (took >= 0) contestant.seconds.push_back(took);
        }
}

inline void print_ratios(const std::vector<Contestant>& contestants) {
    const double base = median(contestants.front().seconds);
    std::printf("%-44s %10s %12s %8s\n", "", "median", "ratio to 1st", "runs");
    for (const auto& contestant : contestants) {
        if (contestant.seconds.empty()) {
            std::printf("%-44s %10s\n", contestant.name.c_str(), "not installed");
            continue;
        }
        const double value = median(contestant.seconds);
        std::printf("%-44s %7.2f ms %12.2f %8zu\n", contestant.name.c_str(), value * 1e3,
                    value / base, contestant.seconds.size());
    }
}

inline pid_t start(const std::vector<std::string>& argv,
                   posix_spawn_file_actions_t* actions = nullptr) {
    std::vector<char*> pointers;
    for (const auto& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    pid_t pid = -1;
    return posix_spawnp(&pid, pointers[0], actions, nullptr, pointers.data(), environ) == 0 ? pid
                                                                                            : -1;
}

// Wall time of a command whose output goes to /dev/null; negative when it cannot be run.
inline double wall_time(const std::vector<std::string>& argv) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
    const auto begin = Clock::now();
    const pid_t pid = start(argv, &actions);
    int status = 0;
    if (pid > 0) waitpid(pid, &status, 0);
    const double took = seconds_since(begin);
    posix_spawn_file_actions_destroy(&actions);
    return pid > 0 && status == 0 ? took : -1;
}

}  // namespace ddrun::bench
