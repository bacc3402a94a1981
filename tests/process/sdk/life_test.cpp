#include "tests/process/sdk/ranks.hpp"
#include "tests/support/catch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

using namespace ddrun;
using namespace ddrun::testing;
using namespace std::chrono_literals;

namespace {

void wait_until(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("waited in vain");
        std::this_thread::sleep_for(1ms);
    }
}

std::size_t entries(const char* directory) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory))
        ++count;
    return count;
}

std::size_t open_files() {
    return entries("/proc/self/fd");
}
std::size_t threads() {
    return entries("/proc/self/task");
}

std::string content_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

// Descriptors that a program started by this one would inherit.
std::set<int> inheritable() {
    std::set<int> found;
    for (int fd = 0; fd < 1024; ++fd) {
        const int flags = ::fcntl(fd, F_GETFD);
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) found.insert(fd);
    }
    return found;
}

// Runs `body` in a process of its own with these variables set, and gives what it said.
RankResult alone(const std::vector<std::pair<std::string, std::string>>& variables,
                 const FakeAgent::Body& body) {
    FakeAgent agent(1);
    return agent.run([&](std::ostream& say) {
        for (const auto& [name, value] : to_variables(WorkerEnv{})) ::unsetenv(name.c_str());
        ::unsetenv("DDRUN_AGENT_SOCKET");
        for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
        body(say);
    })[0];
}

RankResult start_alone_with(const std::vector<std::pair<std::string, std::string>>& variables) {
    return alone(variables, [](std::ostream& say) {
        const Worker worker = Worker::from_environment();
        say << "started";
    });
}

}  // namespace

TEST_CASE("started alone a program is a world of one without threads or sockets") {
    const auto result = alone({}, [](std::ostream& say) {
        const auto before = std::pair(open_files(), threads());
        Worker worker = Worker::from_environment();
        auto& group = worker.process_group();
        std::vector<float> data = {1, 2, 3};
        std::vector<float> copy(3);
        group.all_reduce(data, ReduceOp::avg);
        group.broadcast(data, 0);
        group.all_gather(data, copy);
        group.reduce_scatter(data, copy);
        group.barrier();
        worker.barrier();
        worker.progress(1);
        say << worker.rank() << worker.world_size() << worker.local_rank() << worker.round()
            << worker.restart_count() << copy[2] << worker.should_stop()
            << (std::pair(open_files(), threads()) == before);
    });
    CHECK(result.said == "01010301");
}

TEST_CASE("a rank knows who it is") {
    FakeAgent agent(3);
    agent.environment.round = 4;
    agent.environment.restart_count = 3;
    const auto ranks = run_ranks(agent, [](Worker& worker, std::ostream& say) {
        say << worker.rank() << worker.world_size() << worker.local_rank()
            << worker.local_world_size() << worker.node_rank() << worker.node_count()
            << worker.round() << worker.restart_count() << worker.job_id();
    });
    CHECK(ranks[2].said == "23230143test");
}

TEST_CASE("a bad environment is an error that names the variable and its value") {
    const auto check = [](const auto& variables, const std::string& words) {
        const auto result = start_alone_with(variables);
        CAPTURE(result.said);
        CHECK(result.said.find("environment: ") == 0);
        CHECK(result.said.find(words) != std::string::npos);
        CHECK(result.exited_with(2));
    };
    using Variables = std::vector<std::pair<std::string, std::string>>;
    const auto ranked = [](const std::string& rank, const std::string& world) {
        return Variables{{"RANK", rank},
                         {"WORLD_SIZE", world},
                         {"LOCAL_RANK", rank},
                         {"LOCAL_WORLD_SIZE", world}};
    };
    const auto with_socket = [&](const std::string& address) {
        auto variables = ranked("0", "1");
        variables.emplace_back("DDRUN_AGENT_SOCKET", address);
        return variables;
    };
    check(ranked("x", "2"), "RANK=x");
    check(ranked("2", "2"), "RANK=2");
    check(ranked("0", "2"), "WORLD_SIZE=2, but DDRUN_AGENT_SOCKET is not set");
    check(with_socket("/nowhere/at/all"),
          "DDRUN_AGENT_SOCKET=/nowhere/at/all: no agent answers there");
    check(with_socket(std::string(200, 'x')), "too long");
}

TEST_CASE("a refused worker hears why") {
    FakeAgent agent(1);
    agent.refuses = "round 1 is over";
    const auto ranks = run_ranks(agent, [](Worker&, std::ostream&) {});
    CHECK(ranks[0].said.find("refused: ") == 0);
    CHECK(ranks[0].said.find("round 1 is over") != std::string::npos);
    CHECK(ranks[0].exited_with(77));
}

TEST_CASE("an agent that stays silent is given up on in time") {
    FakeAgent agent(1);
    agent.answers = false;
    WorkerOptions options;
    options.agent_timeout = 50ms;
    const auto ranks = run_ranks(
        agent, [](Worker&, std::ostream&) {}, options);
    CHECK(ranks[0].said ==
          "agent_lost: joining the agent of this node: the agent of this node has not answered in "
          "time");
    CHECK(ranks[0].exited_with(75));
}

TEST_CASE("an agent that goes away ends every wait, in the store and in the group") {
    FakeAgent agent(2);
    agent.on_message = [&](int rank, const rendezvous::FromWorker& message) {
        if (std::holds_alternative<rendezvous::StoreGet>(message) ||
            std::holds_alternative<rendezvous::Progress>(message))
            agent.after(1ms, [&agent, rank] { agent.hang_up(rank); });
    };
    const auto ranks = run_ranks(agent, [](Worker& worker, std::ostream&) {
        worker.process_group().barrier();
        if (worker.rank() == 0) (void)worker.store().get("never");
        worker.progress(1);
        worker.process_group().barrier({.timeout = 10s});
        worker.process_group().barrier({.timeout = 10s});
    });
    CHECK(ranks[0].said.find("agent_lost: store get 'never'") == 0);
    CHECK(ranks[1].exited_with(75));
}

TEST_CASE("a stop request reaches the loop with its deadline") {
    FakeAgent agent(1);
    agent.on_message = [&](int, const rendezvous::FromWorker& message) {
        if (std::holds_alternative<rendezvous::Progress>(message))
            agent.send(0, rendezvous::StopRequested{SIGTERM, 5000});
    };
    const auto ranks = run_ranks(agent, [](Worker& worker, std::ostream& say) {
        say << worker.should_stop() << static_cast<int>(worker.stop_request().reason);
        worker.progress(0);
        wait_until([&] { return worker.should_stop(); });
        const StopRequest stop = worker.stop_request();
        const auto left = *stop.deadline - std::chrono::steady_clock::now();
        say << (stop.reason == StopReason::requested) << stop.signal << (left > 3s && left <= 5s);
        worker.barrier();  // everything works as before
        say << worker.should_stop();
    });
    CHECK(ranks[0].said == "0011511");
}

TEST_CASE("all ranks leave their loops at the same step, whoever hears of the stop first") {
    for (int trial = 0; trial < 10; ++trial) {
        FakeAgent agent(4);
        const int told = trial % 4;
        agent.on_message = [&](int rank, const rendezvous::FromWorker& message) {
            if (rank == told && std::holds_alternative<rendezvous::Progress>(message))
                agent.send(told, rendezvous::StopRequested{SIGTERM, 5000});
        };
        const auto ranks = run_ranks(agent, [](Worker& worker, std::ostream& say) {
            std::vector<float> gradient(100);
            int step = 0;
            while (!worker.should_stop() && step < 1000000) {
                worker.process_group().all_reduce(gradient);
                worker.progress(++step);
            }
            std::vector<std::int32_t> steps = {step};
            worker.process_group().all_reduce(steps, ReduceOp::max);
            say << (steps[0] == step) << (step < 1000000);
        });
        CAPTURE(trial);
        for (const auto& rank : ranks) CHECK(rank.said == "11");
    }
}

TEST_CASE("Ctrl-C that ddrun passes on is a request too, as is a closed terminal") {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        FakeAgent agent(1);
        const auto ranks = run_ranks(agent, [signal](Worker& worker, std::ostream& say) {
            say << worker.should_stop();
            ::raise(signal);
            say << worker.should_stop();
        });
        CHECK(ranks[0].said == "01");
    }
}

TEST_CASE("SIGTERM is a request once the program asks, and ends it before") {
    const auto asks = alone({}, [](std::ostream& say) {
        Worker worker = Worker::from_environment();
        say << worker.should_stop();
        ::raise(SIGTERM);
        say << worker.should_stop() << (worker.stop_request().reason == StopReason::signal)
            << worker.stop_request().signal;
    });
    CHECK(asks.said == "01115");
    const auto twice = alone({}, [](std::ostream&) {
        Worker worker = Worker::from_environment();
        (void)worker.should_stop();
        ::raise(SIGINT);
        ::raise(SIGINT);
    });
    CHECK(twice.died_of(SIGINT));
    const auto never_asks = alone({}, [](std::ostream&) {
        Worker worker = Worker::from_environment();
        ::raise(SIGTERM);
    });
    CHECK(never_asks.died_of(SIGTERM));
    const auto own_handler = alone({}, [](std::ostream& say) {
        std::signal(SIGTERM, [](int) { ::_exit(7); });
        Worker worker = Worker::from_environment();
        say << worker.should_stop();
        ::raise(SIGTERM);
    });
    CHECK(own_handler.exited_with(7));
}

TEST_CASE("progress is told at once, then at most every 50 ms, and the last step never lost") {
    FakeAgent agent(1);
    const auto ranks = run_ranks(agent, [](Worker& worker, std::ostream&) {
        const auto end = std::chrono::steady_clock::now() + 120ms;
        std::int64_t step = 0;
        while (std::chrono::steady_clock::now() < end) worker.progress(step++);
        worker.progress(1000000000);
    });
    const auto& notices = agent.notices(0);
    CHECK(notices.size() >= 2);
    CHECK(notices.size() <= 6);
    CHECK(std::get<rendezvous::Progress>(notices.back()).step == 1000000000);
}

TEST_CASE("the last step is told while the program does something else") {
    FakeAgent agent(1);
    std::int64_t newest = -1;
    agent.on_message = [&](int, const rendezvous::FromWorker& message) {
        if (const auto* progress = std::get_if<rendezvous::Progress>(&message))
            newest = progress->step;
        if (newest == 3) agent.send(0, rendezvous::StopRequested{});
    };
    const auto ranks = run_ranks(agent, [](Worker& worker, std::ostream&) {
        for (const int step : {1, 2, 3}) worker.progress(step);
        wait_until([&] { return worker.should_stop(); });
    });
    CHECK(ranks[0].exited_with(0));
}

TEST_CASE("never_retry is told before the process ends, with code 93") {
    FakeAgent agent(1);
    const auto ranks = agent.run([](std::ostream&) {
        Worker worker = Worker::from_environment();
        try {
            worker.never_retry("the data set is empty");
        } catch (const Error& error) {
            ::_exit(error.exit_code());
        }
    });
    CHECK(ranks[0].exited_with(93));
    REQUIRE(agent.notices(0).size() == 1);
    CHECK(std::get<rendezvous::NeverRetry>(agent.notices(0)[0]).words == "the data set is empty");
}

TEST_CASE("a Worker leaves no thread, descriptor or mapping behind") {
    const auto ranks = run_ranks(1, [](Worker&, std::ostream&) {});
    CHECK(ranks[0].exited_with(0));
    FakeAgent agent(2);
    const auto pairs = agent.run([](std::ostream& say) {
        std::thread([] {}).join();  // a sanitizer starts a thread of its own with the first one
        const auto files = open_files();
        const auto before = threads();
        {
            Worker worker = Worker::from_environment();
            std::vector<float> data(100000);
            worker.process_group().all_reduce(data);
            worker.process_group().barrier();
            say << threads() - before;
        }
        const std::string maps = content_of("/proc/self/maps");
        wait_until(
            [&] { return threads() == before; });  // a joined thread's entry may linger a moment
        say << (open_files() == files) << (maps.find("memfd:") == std::string::npos);
    });
    for (const auto& rank : pairs) CHECK(rank.said == "111");
}

TEST_CASE("every descriptor of the SDK is closed by exec") {
    FakeAgent agent(2);
    const auto ranks = agent.run([](std::ostream& say) {
        const auto before = inheritable();
        Worker worker = Worker::from_environment();
        worker.process_group().barrier();
        say << (inheritable() == before);
        worker.barrier();
    });
    for (const auto& rank : ranks) CHECK(rank.said == "1");
}

TEST_CASE("a process forked from a worker cannot speak for it, nor harm it by ending") {
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream& say) {
        auto& group = worker.process_group();
        group.barrier();
        if (worker.rank() == 0) {
            const int child = ::fork();
            if (child == 0) {
                int refused = 0;
                const auto attempt = [&](auto call) {
                    try {
                        call();
                    } catch (const Error& error) {
                        refused += error.kind() == ErrorKind::invalid_use;
                    }
                };
                attempt([&] { group.barrier(); });
                attempt([&] { worker.store().set("a", "b"); });
                attempt([&] { worker.barrier(); });
                worker.progress(1);
                { const Worker ends = std::move(worker); }
                ::_exit(refused);
            }
            int status = 0;
            ::waitpid(child, &status, 0);
            say << WEXITSTATUS(status);
        }
        group.barrier();
        worker.barrier();
    });
    CHECK(ranks[0].said == "3");
    CHECK(ranks[1].exited_with(0));
}

TEST_CASE("where there is no CUDA driver, rank 0 says so once") {
    const auto directory =
        std::filesystem::temp_directory_path() / ("ddrun-sdk-device-" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory);
    const auto ranks = run_ranks(2, [&](Worker& worker, std::ostream& say) {
        const auto path = directory / std::to_string(worker.rank());
        const int err = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ::dup2(err, STDERR_FILENO);
        for (int i = 0; i < 2; ++i) say << static_cast<int>(worker.device().kind);
        say << worker.device().words;
    });
    if (ranks[0].said == "00no CUDA driver: using CPU") {
        CHECK(content_of(directory / "0") == "no CUDA driver: using CPU\n");
        CHECK(content_of(directory / "1").empty());
    } else {
        WARN("a CUDA driver is here: " << ranks[0].said);
    }
    std::filesystem::remove_all(directory);
}
