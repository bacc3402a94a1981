#pragma once

#include "rendezvous/platform/unique_fd.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace ddrun::detail {

// A file that is only appended to, one write a line. A line that cannot be written is dropped; the
// first one is mentioned on stderr. Thread-unsafe.
class LogFile {
  public:
    // Opened with the first line.
    void name(std::filesystem::path path) {
        file_.reset();
        path_ = std::move(path);
    }
    // Opens it now; what is wrong, or "".
    [[nodiscard]] std::string open();
    void append(std::string_view line);

  private:
    void complain(const std::string& words);

    std::filesystem::path path_;
    UniqueFd file_;
    bool complained_ = false;
};

}  // namespace ddrun::detail
