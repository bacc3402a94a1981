#pragma once

#include "launcher/config/option.hpp"

#include <string>
#include <vector>

namespace ddrun::launcher {

// One value as some source gave it; not yet looked at.
struct Given {
    const Option* option = nullptr;
    std::string text;
    std::string place;     // "--tee", "PET_TEE", "job.yaml:3:6"
    std::string key = {};  // in a job file: the key as written

    // How messages name it: "--tee", "PET_TEE", "job.yaml:3:6: tee".
    [[nodiscard]] std::string name() const { return key.empty() ? place : place + ": " + key; }
};

// Takes the value into the draft. Empty: done; otherwise the sentence for the user.
[[nodiscard]] std::string apply(const Given& given, Draft& draft);

}  // namespace ddrun::launcher
