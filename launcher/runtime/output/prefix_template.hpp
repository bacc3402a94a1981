#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace ddrun::launcher {

// What a line prefix may name: ${rank} ${local_rank} ${node} ${role_name} ${hostname} ${attempt}
// and
// ${time} (local time of the read, "2030-01-31 12:00:00.123"). "$$" is a dollar sign.
struct PrefixValues {
    int rank = 0;
    int local_rank = 0;
    int attempt = 0;  // 0 for the first round
    std::string node;
    std::string role_name;
    std::string hostname;
};

// Nothing when the template is right, else what is wrong with it and which names exist.
[[nodiscard]] std::optional<std::string> prefix_template_error(std::string_view text);

// Fills in everything but ${time}, which LinePrefix fills in for each read. The template is right.
[[nodiscard]] std::string expand_prefix(std::string_view text, const PrefixValues& values);

// An expanded prefix, ready to stand before a line.
class LinePrefix {
  public:
    explicit LinePrefix(std::string expanded);
    [[nodiscard]] bool has_time() const { return has_time_; }
    // Valid until the next call with another time of day.
    [[nodiscard]] std::string_view at(std::chrono::system_clock::time_point now);

  private:
    std::string expanded_;
    std::string rendered_;
    bool has_time_;
};

}  // namespace ddrun::launcher
