#pragma once

#include "tests/support/hosts.hpp"
#include "tests/support/program.hpp"

#include <memory>
#include <string>
#include <vector>

// A real Slurm on machines of this test's own: one controller, which is also where people log in,
// and nodes n1, n2, ... Authentication by a munge daemon of its own. Nothing of it is left however
// the test ends.
namespace ddrun::test {

class SlurmCluster {
  public:
    // Returns when all nodes are idle; throws with the daemons' words where they do not come up.
    explicit SlurmCluster(int nodes);

    // Why there can be none here; empty: there can. Tests skip with these words.
    [[nodiscard]] static std::string unavailable();

    // A command on the controller, in directory(): srun, sbatch, scancel ...
    [[nodiscard]] std::unique_ptr<Program> start(const std::vector<std::string>& argv) const;
    Finished run(const std::vector<std::string>& argv, Milliseconds limit = 60s) const;
    // srun with these words before ddrun's own.
    [[nodiscard]] std::vector<std::string> srun_ddrun(std::vector<std::string> srun,
                                                      std::vector<std::string> ddrun) const;
    // Every node is idle again: nothing of a job is left as far as Slurm knows.
    bool all_idle(Milliseconds limit) const;
    [[nodiscard]] const std::string& directory() const { return files_.path(); }
    [[nodiscard]] std::string logs() const;

  private:
    void write_configuration() const;
    void start_daemon(int host, std::vector<std::string> argv);

    int nodes_;
    TemporaryDirectory files_;
    Hosts hosts_;  // host 0 is the controller
    std::vector<std::unique_ptr<Program>> daemons_;
};

// Skips (passes with a remark) where there can be no Slurm.
#define DDRUN_NEEDS_SLURM()                                                  \
    if (const std::string why = SlurmCluster::unavailable(); !why.empty()) { \
        WARN("skipped: " << why);                                            \
        return;                                                              \
    }

}  // namespace ddrun::test
