#pragma once

#include "examples/04_train_gpt/training/file_descriptor.hpp"

#include <cstdint>
#include <filesystem>

namespace train_gpt {

// The loss curve as text: one line "step loss" per step, in order, each step once, however often
// the run was killed and resumed. The loss has enough digits to give back the same float.
class LossFile {
  public:
    // Opens or makes the file and cuts off what a resumed run will write again: lines of steps >=
    // first_step, and a last line that was never finished. Throws SetupError if the file holds
    // anything else, std::system_error when the system refuses.
    LossFile(const std::filesystem::path& path, std::uint64_t first_step);

    // One write per line: a kill leaves at most one unfinished line, the last.
    void append(std::uint64_t step, float loss);

  private:
    FileDescriptor file_;
};

}  // namespace train_gpt
