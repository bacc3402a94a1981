#include "fake_agent.hpp"
#include "tests/support/catch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

// Run by hand: process_keeper "[.bench]". Prints, asserts nothing about time.
using namespace ddrun::launcher::keeper;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int workers = 8;
constexpr int repetitions = 200;

double milliseconds_of(const std::function<void()>& work) {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void bare_loop() {
    char program[] = "/bin/true";
    char* argv[] = {program, nullptr};
    for (int i = 0; i < workers; ++i) {
        if (::fork() == 0) {
            ::execve(program, argv, environ);
            ::_exit(127);
        }
    }
    for (int i = 0; i < workers; ++i) ::waitpid(-1, nullptr, 0);
}

std::string summary(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return "median " + std::to_string(times[times.size() / 2]) + " ms, best tenth " +
           std::to_string(times[times.size() / 10]) + " ms";
}

}  // namespace

TEST_CASE("8 x /bin/true through the keeper beside a bare fork, exec and wait loop", "[.bench]") {
    std::vector<double> bare;
    std::vector<double> kept;
    FakeAgent agent;
    for (int round = 1; round <= repetitions; ++round) {
        kept.push_back(milliseconds_of([&] {
            for (int rank = 0; rank < workers; ++rank) {
                agent.spawn(rank, {"/bin/true"}, {.round = round});
            }
            for (int rank = 0; rank < workers; ++rank) agent.expect<Exited>();
            agent.send(KillRound{round});
            agent.expect<RoundClear>();
        }));
        while (agent.comes<Spawned>(std::chrono::milliseconds(0))) agent.expect<Spawned>();
        bare.push_back(milliseconds_of(bare_loop));
    }
    std::cout << "bare loop: " << summary(bare) << "\nkeeper:    " << summary(kept) << std::endl;
    std::sort(bare.begin(), bare.end());
    std::sort(kept.begin(), kept.end());
    std::cout << "ratio of medians " << kept[kept.size() / 2] / bare[bare.size() / 2] << std::endl;
}
