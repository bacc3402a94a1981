#include "fake_agent.hpp"
#include "launcher/keeper/descendants.hpp"
#include "launcher/keeper/proc.hpp"
#include "tests/support/catch.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <set>

// Who dies, when, and what is left: nothing. This process stands in for init (subreaper), so that
// what an agent leaves behind comes to it and can be waited for.
using namespace ddrun::launcher::keeper;

namespace {

constexpr const char* forever = "read -r x < /dev/zero";

unsigned seed() {
    const char* given = std::getenv("DDRUN_TEST_SEED");
    const unsigned value =
        given != nullptr ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
    std::cout << "DDRUN_TEST_SEED=" << value << std::endl;
    return value;
}

void reap_everything() {
    while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
}

// A child that plays an agent until it is killed. Its mark is inherited by all it starts.
template <typename Body>
pid_t fork_agent(const std::string& mark, Body body) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    for (int signal = 1; signal < NSIG; ++signal)
        ::signal(signal, SIG_DFL);  // the test runner has its own
    ::setenv("FAKE_AGENT_MARK", mark.c_str(), 1);
    try {
        body();
    } catch (const std::exception&) {
        ::_exit(1);
    }
    for (;;) ::pause();
}

Spawn plain_spawn(int rank, const std::string& script, const std::string& mark) {
    Spawn order;
    order.round = 1;
    order.plan.rank = order.plan.local_rank = rank;
    order.plan.argv = {"/bin/sh", "-c", script};
    order.plan.environment = {{"FAKE_AGENT_MARK", mark}, {"PATH", "/usr/bin:/bin"}};
    return order;
}

std::string new_folder() {
    std::string pattern = "/tmp/keeper-death-XXXXXX";
    return ::mkdtemp(pattern.data());
}

// Nothing lives that carries the mark, and nothing is left below this process.
bool nothing_left(const std::string& mark) {
    return eventually([&] {
        reap_everything();
        return living_with_mark(mark).empty() && children_of(::getpid()).empty();
    });
}

}  // namespace

TEST_CASE("LIFE-1: kill -9 of the agent at any moment, the fork window too, leaves nothing") {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::mt19937 random(seed());
    std::uniform_int_distribution<int> microseconds(0, 12000);
    const std::string script = std::string(
                                   "trap '' TERM HUP INT; sleep 999 & "
                                   "(setsid env -i sleep 999 &); ") +
                               forever;
    for (int attempt = 0; attempt < 200; ++attempt) {
        const std::string mark = new_mark();
        const std::string folder = new_folder();
        const pid_t agent = fork_agent(mark, [&] {
            const KeeperProcess keeper = start_keeper({});
            Link link(keeper.link);
            link.send(encode(ToKeeper(Remove{{folder}})));
            const std::array<int, 3> streams{0, 1, 2};
            for (int rank = 0; rank < 4; ++rank) {
                link.send(encode(ToKeeper(plain_spawn(rank, script, mark))), streams);
            }
            for (;;) {
                pollfd readable{link.fd(), POLLIN, 0};
                ::poll(&readable, 1, -1);
                (void)link.receive();
            }
        });
        ::usleep(static_cast<useconds_t>(microseconds(random)));
        ::kill(agent, SIGKILL);
        ::waitpid(agent, nullptr, 0);
        INFO("attempt " << attempt);
        REQUIRE(nothing_left(mark));
        // Killed before it spoke, an agent cannot have told of its paths, nor used them.
        std::filesystem::remove_all(folder);
    }
}

TEST_CASE("the agent dies: paths it told about are removed after its workers ended") {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const std::string mark = new_mark();
    const std::string folder = new_folder();
    std::ofstream(folder + "/socket") << "x";
    std::filesystem::create_directory(folder + "/deeper");
    std::filesystem::create_directory_symlink("/usr", folder + "/deeper/usr");
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t agent = fork_agent(mark, [&] {
        FakeAgent* self = new FakeAgent;
        self->send(Remove{{folder, "/tmp/keeper-death-never-was"}});
        self->spawn_shell(0, forever, {.extra = {{"FAKE_AGENT_MARK", mark}}});
        self->started(0);
        (void)!::write(ready[1], "x", 1);
    });
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    CHECK(std::filesystem::exists(folder));
    ::kill(agent, SIGKILL);
    CHECK(nothing_left(mark));
    CHECK_FALSE(std::filesystem::exists(folder));
    CHECK(std::filesystem::exists("/usr/bin"));
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_CASE("a normal end removes nothing and leaves at once") {
    const std::string folder = new_folder();
    {
        FakeAgent agent;
        agent.send(Remove{{folder}});
        agent.spawn_shell(0, "exit 0");
        agent.expect<Exited>();
    }
    CHECK(std::filesystem::exists(folder));
    std::filesystem::remove_all(folder);
}

TEST_CASE("a signal to the agent's process group spares the keeper") {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (const int signal : {SIGKILL, SIGTERM, SIGINT, SIGHUP}) {
        const std::string mark = new_mark();
        int ready[2];
        REQUIRE(::pipe(ready) == 0);
        const pid_t agent = fork_agent(mark, [&] {
            ::setpgid(0, 0);
            FakeAgent* self = new FakeAgent;
            self->spawn_shell(0, std::string("(setsid sleep 999 &); ") + forever,
                              {.extra = {{"FAKE_AGENT_MARK", mark}}});
            self->started(0);
            (void)!::write(ready[1], "x", 1);
        });
        char byte = 0;
        REQUIRE(::read(ready[0], &byte, 1) == 1);
        ::kill(-agent, signal);
        CHECK(nothing_left(mark));
        ::close(ready[0]);
        ::close(ready[1]);
    }
}

TEST_CASE("kill -9 of the keeper: workers die at once, the agent ends what they left") {
    std::mt19937 random(seed());
    std::uniform_int_distribution<int> microseconds(0, 8000);
    for (int attempt = 0; attempt < 50; ++attempt) {
        std::string mark;
        {
            FakeAgent agent;
            mark = agent.mark();
            for (int rank = 0; rank < 4; ++rank) {
                agent.spawn_shell(rank,
                                  std::string("trap '' TERM; (setsid sleep 999 &); ") + forever);
            }
            ::usleep(static_cast<useconds_t>(microseconds(random)));
            ::kill(agent.keeper(), SIGKILL);
            CHECK(agent.keeper_gone());
            CHECK(end_all_descendants(5000));
        }
        INFO("attempt " << attempt);
        CHECK(living_with_mark(mark).empty());
        CHECK(children_of(::getpid()).empty());
    }
}

TEST_CASE("without a keeper and an agent, workers still die by their parent-death signal") {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const std::string mark = new_mark();
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t agent = fork_agent(mark, [&] {
        FakeAgent* self = new FakeAgent;
        for (int rank = 0; rank < 4; ++rank) {
            self->spawn_shell(rank, std::string("trap '' TERM HUP; ") + forever,
                              {.extra = {{"FAKE_AGENT_MARK", mark}}});
        }
        for (int rank = 0; rank < 4; ++rank) self->expect<Spawned>();
        const pid_t keeper = self->keeper();
        (void)!::write(ready[1], &keeper, sizeof(keeper));
    });
    pid_t keeper = 0;
    REQUIRE(::read(ready[0], &keeper, sizeof(keeper)) == sizeof(keeper));
    ::kill(agent, SIGSTOP);  // so that neither can act on the other's death
    ::kill(keeper, SIGKILL);
    ::kill(agent, SIGKILL);
    CHECK(nothing_left(mark));
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_CASE("workers killed at any moment are reported once each, by their signal") {
    std::mt19937 random(seed());
    FakeAgent agent;
    for (int round = 1; round <= 20; ++round) {
        for (int rank = 0; rank < 4; ++rank) {
            agent.spawn_shell(rank, forever, {.round = round});
        }
        for (int i = 0; i < 4; ++i) {
            const auto spawned = agent.expect<Spawned>();
            if (random() % 2 == 0) ::kill(spawned.pid, SIGKILL);
        }
        agent.send(KillRound{round});
        std::set<int> ranks;
        for (int i = 0; i < 4; ++i) {
            const auto exited = agent.expect<Exited>();
            CHECK(exited.round == round);
            CHECK(WTERMSIG(exited.wait_status) == SIGKILL);
            ranks.insert(exited.local_rank);
        }
        CHECK(ranks.size() == 4);
        CHECK(agent.expect<RoundClear>().round == round);
    }
}

TEST_CASE("a keeper that is told nonsense ends everything") {
    FakeAgent agent;
    agent.spawn_shell(0, forever);
    agent.started(0);
    agent.link().send(std::string("\x02\0\0\0\xff\xff", 6));
    CHECK(agent.keeper_gone());
    CHECK(living_with_mark(agent.mark()).empty());
}

TEST_CASE("an agent that never reads does not stop the keeper") {
    FakeAgent agent;
    agent.spawn_shell(0, "kill -STOP $$; " + std::string(forever));
    const pid_t worker = agent.started(0);
    // Far more news than the socket holds; the keeper goes on and forgets what is only news.
    for (int i = 0; i < 20000; ++i) ::kill(worker, i % 2 == 0 ? SIGCONT : SIGSTOP);
    ::kill(worker, SIGKILL);
    CHECK(eventually([&] { return !read_process(worker); }));
    CHECK(agent.expect<Exited>().pid == worker);
}
