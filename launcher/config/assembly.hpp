#pragma once

#include "launcher/config/config.hpp"
#include "launcher/config/given.hpp"
#include "launcher/environment/placement.hpp"

#include <span>
#include <string>
#include <vector>

namespace ddrun::launcher {

// Puts together what the sources said; those that count less are added first.
class Assembly {
  public:
    void add(std::span<const Given> source);
    // Before all others: what stands where nothing is given.
    void add(const Placement& placement);
    void set_program(std::string program, std::string name, std::string place);
    void set_arguments(std::vector<std::string> arguments);
    void add_problems(const std::vector<std::string>& problems);

    // Checks that one value contradicts another; then `spec` is what all of it means.
    void settle();

    [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
    [[nodiscard]] const Draft& draft() const { return draft_; }
    [[nodiscard]] const Sources& sources() const { return sources_; }
    [[nodiscard]] const JobSpec& spec() const { return spec_; }
    [[nodiscard]] std::vector<std::string> notes() const;                // for -v; see JobConfig
    [[nodiscard]] const std::string& advice() const { return advice_; }  // a warning; empty: none

  private:
    [[nodiscard]] bool is_placed(std::string_view option) const;
    [[nodiscard]] bool is_said(std::string_view option) const;
    void settle_placement();
    void check_placement();
    void settle_kind();
    void settle_addresses();
    void settle_rendezvous();
    void settle_times();

    Draft draft_;
    JobSpec spec_;
    Sources sources_;
    std::vector<Given> taken_;
    std::vector<std::string> problems_;
    Placement placement_;
    std::string advice_;
};

}  // namespace ddrun::launcher
