#include "rendezvous/protocol/worker_env.hpp"

#include "tests/support/catch.hpp"

#include <string>

using namespace ddrun;

namespace {

Lookup in(Variables variables) {
    return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
        const auto found = variables.find(std::string(name));
        if (found == variables.end()) return std::nullopt;
        return found->second;
    };
}

WorkerEnv rank_5_of_8() {
    WorkerEnv env;
    env.rank = env.role_rank = 5;
    env.world_size = env.role_world_size = 8;
    env.local_rank = 1;
    env.local_world_size = 4;
    env.node_rank = 1;
    env.node_count = 2;
    env.role = "trainer";
    env.master_addr = "10.9.0.1";
    env.master_port = 31337;
    env.restart_count = 2;
    env.max_restarts = 3;
    env.round = 3;
    env.job_id = "nightly";
    env.incarnation = "00112233445566778899aabbccddeeff";
    env.node_name = "n1";
    env.agent_socket = "@ddrun-4711";
    env.error_file = "/tmp/e.json";
    env.log_dir = "/logs/n1/3";
    env.console_is_terminal = true;
    return env;
}

std::string problem_with(Variables variables) {
    return worker_env_from(in(std::move(variables))).problem;
}

// A complete environment with some variables changed; an empty value removes one.
std::string problem_after(const Variables& changes) {
    Variables variables = to_variables(rank_5_of_8());
    for (const auto& [name, value] : changes) {
        if (value.empty()) {
            variables.erase(name);
        } else {
            variables[name] = value;
        }
    }
    return problem_with(variables);
}

}  // namespace

TEST_CASE("a worker's environment has these variables and no others") {
    const Variables expected = {
        {"RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "4"},
        {"GROUP_RANK", "1"},
        {"GROUP_WORLD_SIZE", "2"},
        {"ROLE_NAME", "trainer"},
        {"ROLE_RANK", "5"},
        {"ROLE_WORLD_SIZE", "8"},
        {"MASTER_ADDR", "10.9.0.1"},
        {"MASTER_PORT", "31337"},
        {"TORCHELASTIC_RESTART_COUNT", "2"},
        {"TORCHELASTIC_MAX_RESTARTS", "3"},
        {"TORCHELASTIC_RUN_ID", "nightly"},
        {"TORCHELASTIC_USE_AGENT_STORE", "False"},
        {"TORCHELASTIC_ERROR_FILE", "/tmp/e.json"},
        {"DDRUN_JOB_ID", "nightly"},
        {"DDRUN_INCARNATION", "00112233445566778899aabbccddeeff"},
        {"DDRUN_ROUND", "3"},
        {"DDRUN_NODE_NAME", "n1"},
        {"DDRUN_NODE_RANK", "1"},
        {"DDRUN_AGENT_SOCKET", "@ddrun-4711"},
        {"DDRUN_WORKER_TAG", "00112233445566778899aabbccddeeff.3.5"},
        {"DDRUN_CONSOLE", "tty"},
        {"DDRUN_LOG_DIR", "/logs/n1/3"},
    };
    CHECK(to_variables(rank_5_of_8()) == expected);
}

TEST_CASE("without agent, error file and log directory their variables are absent") {
    const Variables variables = to_variables(WorkerEnv{});
    CHECK_FALSE(variables.contains("DDRUN_AGENT_SOCKET"));
    CHECK_FALSE(variables.contains("TORCHELASTIC_ERROR_FILE"));
    CHECK_FALSE(variables.contains("DDRUN_LOG_DIR"));
    CHECK(variables.at("DDRUN_CONSOLE") == "pipe");
}

TEST_CASE("what the launcher writes the worker reads back") {
    const WorkerEnvResult result = worker_env_from(in(to_variables(rank_5_of_8())));
    CHECK(result.problem.empty());
    CHECK(result.env == rank_5_of_8());
}

TEST_CASE("started alone, a worker is a world of one") {
    const WorkerEnvResult result = worker_env_from(in({{"PATH", "/bin"}}));
    CHECK(result.problem.empty());
    CHECK(result.env == WorkerEnv{});
}

TEST_CASE("a worker of another launcher is understood") {
    const WorkerEnvResult result = worker_env_from(in({{"RANK", "3"},
                                                       {"WORLD_SIZE", "4"},
                                                       {"LOCAL_RANK", "1"},
                                                       {"LOCAL_WORLD_SIZE", "2"},
                                                       {"MASTER_ADDR", "h"},
                                                       {"MASTER_PORT", "29500"},
                                                       {"TORCHELASTIC_RESTART_COUNT", "1"},
                                                       {"TORCHELASTIC_RUN_ID", "theirs"}}));
    CHECK(result.problem.empty());
    CHECK(result.env.rank == 3);
    CHECK(result.env.role_rank == 3);
    CHECK(result.env.role_world_size == 4);
    CHECK(result.env.round == 2);
    CHECK(result.env.job_id == "theirs");
    CHECK(result.env.agent_socket.empty());
}

TEST_CASE("a number that is none is named with its value") {
    CHECK(problem_after({{"RANK", "five"}}) == "RANK=five is not a whole number of 0 or more");
    CHECK(problem_after({{"WORLD_SIZE", "0"}}) ==
          "WORLD_SIZE=0 is not a whole number of 1 or more");
    for (const char* bad : {"-1", "1.5", "1x", " 1", "99999999999", "0x1"}) {
        INFO(bad);
        CHECK_FALSE(problem_after({{"LOCAL_RANK", bad}}).empty());
    }
    CHECK_FALSE(problem_with({{"RANK", ""}, {"WORLD_SIZE", "1"}}).empty());
}

TEST_CASE("half a pair is a problem") {
    CHECK(problem_with({{"RANK", "0"}}) ==
          "RANK is set but WORLD_SIZE is not; set both or neither");
    CHECK(problem_with({{"WORLD_SIZE", "2"}}) ==
          "WORLD_SIZE is set but RANK is not; set both or neither");
    CHECK_FALSE(problem_after({{"LOCAL_RANK", ""}}).empty());
    CHECK_FALSE(problem_after({{"GROUP_WORLD_SIZE", ""}}).empty());
    CHECK_FALSE(problem_after({{"ROLE_RANK", ""}}).empty());
}

TEST_CASE("in a larger world the place on the node must be known") {
    CHECK(problem_with({{"RANK", "1"}, {"WORLD_SIZE", "2"}}) ==
          "WORLD_SIZE=2 but LOCAL_RANK is not set; set LOCAL_RANK and LOCAL_WORLD_SIZE too");
}

TEST_CASE("contradictions are problems") {
    CHECK(problem_after({{"RANK", "8"}}) == "RANK=8 must be below WORLD_SIZE=8");
    CHECK(problem_after({{"LOCAL_RANK", "4"}}) == "LOCAL_RANK=4 must be below LOCAL_WORLD_SIZE=4");
    CHECK(problem_after({{"GROUP_RANK", "2"}}) == "GROUP_RANK=2 must be below GROUP_WORLD_SIZE=2");
    CHECK(problem_after({{"ROLE_RANK", "8"}}) == "ROLE_RANK=8 must be below ROLE_WORLD_SIZE=8");
    CHECK(problem_after({{"LOCAL_WORLD_SIZE", "9"}}) ==
          "LOCAL_WORLD_SIZE=9 must not be above WORLD_SIZE=8");
    CHECK(problem_after({{"GROUP_WORLD_SIZE", "9"}}) ==
          "GROUP_WORLD_SIZE=9 must not be above WORLD_SIZE=8");
    CHECK(problem_after({{"MASTER_PORT", "65536"}}) == "MASTER_PORT=65536 must not be above 65535");
    CHECK(problem_after({{"DDRUN_CONSOLE", "maybe"}}) ==
          "DDRUN_CONSOLE=maybe is neither \"tty\" nor \"pipe\"");
}
