#pragma once

#include "worker_sdk/src/log_file.hpp"

#include <ddrun/log.hpp>

#include <filesystem>
#include <mutex>

namespace ddrun {

struct Log::State {
    int rank = 0;
    int round = 1;
    bool console_is_terminal = false;

    std::mutex mutex = {};  // the rest
    bool has_directory = false;
    bool status_shown = false;
    detail::LogFile main_file = {};
    detail::LogFile rank_file = {};

    // Names the files; they are opened with their first lines.
    void use_directory(const std::filesystem::path& directory);
};

}  // namespace ddrun
