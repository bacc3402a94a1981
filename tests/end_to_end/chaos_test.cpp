// Random kills: after any end, however violent, nothing is left.
// DDRUN_CHAOS_KILLS=1000 DDRUN_CHAOS_SEED=7 end_to_end_chaos   more of it, or the same again.
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <string>

using namespace ddrun::test;

namespace {

// What could outlive a job: shared memory, files, cgroups. A socket cannot: it lives as long as a
// process holds it, and processes are counted by their tag.
std::set<std::string> traces(const TemporaryDirectory& temporary) {
    std::set<std::string> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(temporary.path()))
        found.insert(entry.path().string());
    for (const char* top : {"/dev/shm", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
        for (const auto& entry : std::filesystem::directory_iterator(top, ignored))
            if (has(entry.path().filename().string(), "ddrun")) found.insert(entry.path().string());
    return found;
}

enum class Victim { launcher, keeper, worker, child_of_worker };

std::string name_of(pid_t pid) {
    auto name = read_file("/proc/" + std::to_string(pid) + "/comm");
    if (!name.empty()) name.pop_back();
    return name;
}

pid_t parent_of(pid_t pid) {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    const auto close = stat.rfind(')');
    return close == std::string::npos ? -1
                                      : static_cast<pid_t>(std::atoi(stat.c_str() + close + 4));
}

// A random living process of the job in that role; -1 when there is none at this instant.
pid_t choose(const Program& job, Victim victim, std::mt19937& random) {
    if (victim == Victim::launcher) return job.pid();
    std::vector<pid_t> candidates;
    for (const auto pid : job.descendants()) {
        const bool keeper = parent_of(pid) == job.pid();
        const bool worker = !keeper && parent_of(parent_of(pid)) == job.pid();
        if ((victim == Victim::keeper && keeper) ||
            (victim == Victim::worker && worker && name_of(pid) == "sh") ||
            (victim == Victim::child_of_worker && !keeper && !worker))
            candidates.push_back(pid);
    }
    if (candidates.empty()) return -1;
    return candidates[std::uniform_int_distribution<std::size_t>(0, candidates.size() - 1)(random)];
}

int setting(const char* name, int otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::atoi(value);
}

}  // namespace

TEST_CASE("random kills of launcher, keeper, workers and their children leave nothing behind") {
    const int kills = setting("DDRUN_CHAOS_KILLS", 40);
    const auto seed = static_cast<unsigned>(
        setting("DDRUN_CHAOS_SEED", static_cast<int>(std::random_device{}() >> 1)));
    WARN("replay: DDRUN_CHAOS_KILLS=" << kills << " DDRUN_CHAOS_SEED=" << seed);
    std::mt19937 random(seed);
    auto up_to = [&](int limit) { return std::uniform_int_distribution<int>(0, limit)(random); };
    const TemporaryDirectory temporary;
    const auto before = traces(temporary);
    for (int killed = 0; killed < kills;) {
        auto invocation =
            ddrun_with({"--nproc-per-node=3", "--max-restarts=" + std::to_string(up_to(2)),
                        "--restart-backoff=0", "--shutdown-timeout=300ms", "sh", "-c",
                        "trap '' TERM; sleep 300 & (setsid sleep 300 &); (setsid sh -c 'sleep 300 "
                        "& sleep 300' &); "
                        "echo ready; wait; sleep 300"});
        invocation.env["TMPDIR"] = temporary.path();
        Program job(invocation);
        if (up_to(3) != 0) job.wait_for_output("ready", 10s);
        bool guard_killed =
            false;  // launcher or keeper: the other one now cleans up, and is left alone
        for (bool over = false; !over && killed < kills;) {
            ::usleep(static_cast<useconds_t>(up_to(60'000)));
            const auto victim = static_cast<Victim>(up_to(3));
            const pid_t pid = choose(job, victim, random);
            const bool hit = pid > 0 && ::kill(pid, SIGKILL) == 0;
            killed += hit;
            guard_killed = hit && (victim == Victim::launcher || victim == Victim::keeper);
            over = guard_killed || job.wait(0ms).has_value() || up_to(3) == 0;
        }
        if (!guard_killed && !job.wait(0ms)) job.send_signal(up_to(1) ? SIGKILL : SIGTERM);
        INFO("after " << killed << " kills");
        REQUIRE(job.wait(10s).has_value());
        REQUIRE(job.leaves_nothing(2s));
        REQUIRE(job.wait_until([&] { return traces(temporary) == before; }, 3s));
    }
}
