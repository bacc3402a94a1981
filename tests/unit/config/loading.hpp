#pragma once

#include "launcher/config/config.hpp"
#include "tests/support/catch.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

// load_config with job files that exist in memory only.
namespace ddrun::launcher {

using Words = std::vector<std::string>;
using Files = std::map<std::string, std::string>;

inline ConfigResult load(const Words& words, const Variables& environment = {},
                         const Files& files = {}) {
    return load_config(words, environment, [&](const std::string& path, std::size_t) -> FileText {
        const auto found = files.find(path);
        if (found == files.end()) return {{}, "No such file or directory"};
        return {found->second, {}};
    });
}

inline JobConfig job(const Words& words, const Variables& environment = {},
                     const Files& files = {}) {
    const ConfigResult result = load(words, environment, files);
    if (const auto* error = std::get_if<UsageError>(&result)) FAIL(error->text);
    REQUIRE(std::holds_alternative<JobConfig>(result));
    return std::get<JobConfig>(result);
}

inline JobSpec spec(const Words& words, const Variables& environment = {},
                    const Files& files = {}) {
    return job(words, environment, files).spec;
}

inline std::string refusal(const Words& words, const Variables& environment = {},
                           const Files& files = {}) {
    const ConfigResult result = load(words, environment, files);
    const auto* error = std::get_if<UsageError>(&result);
    return error != nullptr ? error->text : "nothing was refused";
}

inline std::string printed(const Words& words, const Variables& environment = {},
                           const Files& files = {}) {
    const ConfigResult result = load(words, environment, files);
    if (const auto* error = std::get_if<UsageError>(&result)) FAIL(error->text);
    REQUIRE(std::holds_alternative<PrintAndExit>(result));
    return std::get<PrintAndExit>(result).text;
}

// A job file of one key.
inline Files file_of(const std::string& text) {
    return {{"job.yaml", text}};
}

}  // namespace ddrun::launcher
