#include "rendezvous/protocol/worker_env.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace ddrun {
namespace {

struct NumberVariable {
    std::string_view name;
    int WorkerEnv::*field;
    int least;
};
constexpr std::array<NumberVariable, 12> number_variables = {{
    {"RANK", &WorkerEnv::rank, 0},
    {"WORLD_SIZE", &WorkerEnv::world_size, 1},
    {"LOCAL_RANK", &WorkerEnv::local_rank, 0},
    {"LOCAL_WORLD_SIZE", &WorkerEnv::local_world_size, 1},
    {"GROUP_RANK", &WorkerEnv::node_rank, 0},
    {"GROUP_WORLD_SIZE", &WorkerEnv::node_count, 1},
    {"ROLE_RANK", &WorkerEnv::role_rank, 0},
    {"ROLE_WORLD_SIZE", &WorkerEnv::role_world_size, 1},
    {"MASTER_PORT", &WorkerEnv::master_port, 0},
    {"TORCHELASTIC_RESTART_COUNT", &WorkerEnv::restart_count, 0},
    {"TORCHELASTIC_MAX_RESTARTS", &WorkerEnv::max_restarts, 0},
    {"DDRUN_ROUND", &WorkerEnv::round, 1},
}};

struct TextVariable {
    std::string_view name;
    std::string WorkerEnv::*field;
    bool always_set;  // otherwise an empty value leaves the variable out
};
// TORCHELASTIC_RUN_ID before DDRUN_JOB_ID: where they differ, ours is read last and wins.
constexpr std::array<TextVariable, 9> text_variables = {{
    {"MASTER_ADDR", &WorkerEnv::master_addr, true},
    {"ROLE_NAME", &WorkerEnv::role, true},
    {"TORCHELASTIC_RUN_ID", &WorkerEnv::job_id, true},
    {"DDRUN_JOB_ID", &WorkerEnv::job_id, true},
    {"DDRUN_INCARNATION", &WorkerEnv::incarnation, true},
    {"DDRUN_NODE_NAME", &WorkerEnv::node_name, true},
    {variable::agent_socket, &WorkerEnv::agent_socket, false},
    {"TORCHELASTIC_ERROR_FILE", &WorkerEnv::error_file, false},
    {"DDRUN_LOG_DIR", &WorkerEnv::log_dir, false},
}};

constexpr std::string_view console_variable = "DDRUN_CONSOLE";
constexpr std::string_view node_rank_variable = "DDRUN_NODE_RANK";
// Tells PyTorch's env:// rendezvous that rank 0 serves the store itself.
constexpr std::string_view agent_store_variable = "TORCHELASTIC_USE_AGENT_STORE";
constexpr int highest_port = 65535;

bool parse_number(std::string_view text, int& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

std::string assignment(std::string_view name, std::string_view value) {
    return std::string(name).append("=").append(value);
}

std::string assignment(std::string_view name, int value) {
    return assignment(name, std::to_string(value));
}

// Reads the numbers; the problem with the first bad one.
std::string read_numbers(const Lookup& lookup, WorkerEnv& env) {
    for (const NumberVariable& variable : number_variables) {
        const std::optional<std::string> text = lookup(variable.name);
        if (!text) continue;
        int& value = env.*variable.field;
        if (parse_number(*text, value) && value >= variable.least) continue;
        return assignment(variable.name, *text) + " is not a whole number of " +
               std::to_string(variable.least) + " or more";
    }
    return {};
}

std::string read_texts(const Lookup& lookup, WorkerEnv& env) {
    for (const TextVariable& variable : text_variables) {
        if (std::optional<std::string> text = lookup(variable.name)) {
            env.*variable.field = std::move(*text);
        }
    }
    const std::optional<std::string> console = lookup(console_variable);
    if (console && *console != "tty" && *console != "pipe") {
        return assignment(console_variable, *console) + " is neither \"tty\" nor \"pipe\"";
    }
    env.console_is_terminal = console == "tty";
    return {};
}

bool is_set(const Lookup& lookup, std::string_view name) {
    return lookup(name).has_value();
}

// "RANK is set but WORLD_SIZE is not": half a pair would silently mean another world.
std::string half_a_pair(const Lookup& lookup, std::string_view first, std::string_view second) {
    if (is_set(lookup, first) == is_set(lookup, second)) return {};
    const bool has_first = is_set(lookup, first);
    return std::string(has_first ? first : second) + " is set but " +
           std::string(has_first ? second : first) + " is not; set both or neither";
}

// What nobody set follows from what is set; where it does not follow, that is a problem.
std::string fill_gaps(const Lookup& lookup, WorkerEnv& env) {
    if (!is_set(lookup, "ROLE_RANK")) {
        env.role_rank = env.rank;
        env.role_world_size = env.world_size;
    }
    if (!is_set(lookup, "DDRUN_ROUND")) env.round = env.restart_count + 1;
    if (is_set(lookup, "LOCAL_RANK") || env.world_size == 1) return {};
    return assignment("WORLD_SIZE", env.world_size) +
           " but LOCAL_RANK is not set; set LOCAL_RANK and LOCAL_WORLD_SIZE too";
}

std::string check_below(std::string_view name, int value, std::string_view limit_name, int limit) {
    if (value < limit) return {};
    return assignment(name, value) + " must be below " + assignment(limit_name, limit);
}

std::string check_at_most(std::string_view name, int value, std::string_view limit_name,
                          int limit) {
    if (value <= limit) return {};
    return assignment(name, value) + " must not be above " + assignment(limit_name, limit);
}

std::string first_of(std::initializer_list<std::string> problems) {
    for (const std::string& problem : problems) {
        if (!problem.empty()) return problem;
    }
    return {};
}

std::string find_missing(const Lookup& lookup) {
    return first_of({half_a_pair(lookup, "RANK", "WORLD_SIZE"),
                     half_a_pair(lookup, "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
                     half_a_pair(lookup, "GROUP_RANK", "GROUP_WORLD_SIZE"),
                     half_a_pair(lookup, "ROLE_RANK", "ROLE_WORLD_SIZE")});
}

std::string find_contradiction(const WorkerEnv& env) {
    const int world = env.world_size;
    std::string port;
    if (env.master_port > highest_port) {
        port = assignment("MASTER_PORT", env.master_port) + " must not be above 65535";
    }
    return first_of({
        check_below("RANK", env.rank, "WORLD_SIZE", world),
        check_below("LOCAL_RANK", env.local_rank, "LOCAL_WORLD_SIZE", env.local_world_size),
        check_below("GROUP_RANK", env.node_rank, "GROUP_WORLD_SIZE", env.node_count),
        check_below("ROLE_RANK", env.role_rank, "ROLE_WORLD_SIZE", env.role_world_size),
        check_at_most("LOCAL_WORLD_SIZE", env.local_world_size, "WORLD_SIZE", world),
        check_at_most("GROUP_WORLD_SIZE", env.node_count, "WORLD_SIZE", world),
        check_at_most("ROLE_WORLD_SIZE", env.role_world_size, "WORLD_SIZE", world),
        port,
    });
}

}  // namespace

std::string WorkerEnv::tag() const {
    return incarnation + "." + std::to_string(round) + "." + std::to_string(rank);
}

Variables to_variables(const WorkerEnv& env) {
    Variables result;
    for (const NumberVariable& variable : number_variables) {
        result.emplace(variable.name, std::to_string(env.*variable.field));
    }
    for (const TextVariable& variable : text_variables) {
        const std::string& value = env.*variable.field;
        if (variable.always_set || !value.empty()) result.emplace(variable.name, value);
    }
    result.emplace(console_variable, env.console_is_terminal ? "tty" : "pipe");
    result.emplace(node_rank_variable, std::to_string(env.node_rank));
    result.emplace(variable::worker_tag, env.tag());
    result.emplace(agent_store_variable, env.agent_store ? "True" : "False");
    return result;
}

bool is_worker_variable(std::string_view name) {
    const auto is_it = [name](const auto& variable) { return variable.name == name; };
    return std::any_of(number_variables.begin(), number_variables.end(), is_it) ||
           std::any_of(text_variables.begin(), text_variables.end(), is_it) ||
           name == console_variable || name == node_rank_variable || name == variable::worker_tag ||
           name == agent_store_variable;
}

WorkerEnvResult worker_env_from(const Lookup& lookup) {
    WorkerEnvResult result;
    WorkerEnv& env = result.env;
    const auto problem = [&]() -> std::string {
        if (std::string words = find_missing(lookup); !words.empty()) return words;
        if (std::string words = read_numbers(lookup, env); !words.empty()) return words;
        if (std::string words = read_texts(lookup, env); !words.empty()) return words;
        if (std::string words = fill_gaps(lookup, env); !words.empty()) return words;
        return find_contradiction(env);
    };
    result.problem = problem();
    return result;
}

}  // namespace ddrun
