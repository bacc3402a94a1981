// The environment a worker is started with may hold anything: either a problem in words, or a place
// in the world that makes sense and that survives being written and read again.

#include "rendezvous/protocol/worker_env.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace ddrun;

namespace {

void expect(bool holds) {
    if (!holds) std::abort();
}

WorkerEnvResult parse(const Variables& variables) {
    return worker_env_from([&](std::string_view name) -> std::optional<std::string> {
        const auto found = variables.find(std::string(name));
        if (found == variables.end()) return std::nullopt;
        return found->second;
    });
}

// "NAME=value" lines laid over a good environment; "NAME" alone removes the variable. A single
// letter stands for one of ours, so that chance finds the names.
Variables variables_from(std::string_view lines) {
    Variables variables = to_variables(WorkerEnv{});
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(lines.size(), line.size() + 1));
        const auto equals = line.find('=');
        std::string name(line.substr(0, equals));
        if (name.size() == 1) {
            auto chosen = to_variables(WorkerEnv{});
            const auto step = static_cast<unsigned char>(name[0]) % chosen.size();
            name = std::next(chosen.begin(), static_cast<std::ptrdiff_t>(step))->first;
        }
        if (equals == std::string_view::npos) {
            variables.erase(name);
        } else {
            variables[name] = line.substr(equals + 1);
        }
    }
    return variables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const WorkerEnvResult result =
        parse(variables_from({reinterpret_cast<const char*>(data), size}));
    if (!result.problem.empty()) return 0;
    const WorkerEnv& env = result.env;
    expect(0 <= env.rank && env.rank < env.world_size);
    expect(0 <= env.local_rank && env.local_rank < env.local_world_size);
    expect(0 <= env.node_rank && env.node_rank < env.node_count);
    expect(env.local_world_size <= env.world_size && env.round >= 1);
    expect(env.master_port >= 0 && env.master_port <= 65535);
    const WorkerEnvResult again = parse(to_variables(env));
    expect(again.problem.empty() && again.env == env);
    return 0;
}
