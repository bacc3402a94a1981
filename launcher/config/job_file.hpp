#pragma once

#include "launcher/config/given.hpp"

#include <optional>
#include <string>
#include <vector>

// A job file: one YAML mapping. Keys are flag names ('-' or '_'), `program` and `args`; keys that
// begin with "x-" are free, for anchors. Anchors, aliases and merge keys (<<) work.
namespace ddrun::launcher {

// yaml-cpp takes up to two seconds for a MiB; a mistaken file is to be refused within one.
constexpr std::size_t largest_job_file = 256 * 1024;

struct JobFile {
    std::vector<Given> given;
    std::optional<Given> program;  // without an option
    std::optional<std::vector<std::string>> arguments;
    std::vector<std::string> problems;  // "job.yaml:3:1: unknown key 'teee'; did you mean tee?"
};

// `name` is the file's name in messages. Takes any bytes; never throws.
[[nodiscard]] JobFile parse_job_file(const std::string& name, const std::string& text);

}  // namespace ddrun::launcher
