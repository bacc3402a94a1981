#pragma once

#include <optional>
#include <string>
#include <string_view>

// What a child says to the keeper between its fork and its exec, through a pipe.
namespace ddrun::launcher::keeper {

enum class SpawnStage : int {
    descriptors,
    session,
    limits,
    affinity,
    memory_policy,
    exec,
};

struct SpawnFailure {
    std::string stage;  // "fork", "descriptors", "session", "affinity", "memory policy", "exec" ...
    int error_number = 0;
    std::string path;  // stage "exec": the file that was tried; empty: PATH has none
};

// In the child. A refusal that is not `fatal` is a remark: the child goes on.
void report_refusal(int pipe, SpawnStage stage, int error_number, bool fatal,
                    std::string_view path = {});

// In the keeper; does not block.
struct SpawnNews {
    std::optional<SpawnFailure> failure;
    std::string refused_binding;  // "affinity: Invalid argument"
    bool over = false;            // executed, or ended
};
[[nodiscard]] SpawnNews read_spawn_report(int pipe);

}  // namespace ddrun::launcher::keeper
