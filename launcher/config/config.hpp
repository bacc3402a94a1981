#pragma once

#include "launcher/core/job_spec.hpp"
#include "rendezvous/protocol/worker_env.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// Command line, DDRUN_* and PET_* variables, job file and defaults become one JobSpec.
// Precedence: flag > DDRUN_* > PET_* > job file > scheduler > default; on the command line the last
// mention wins. Whatever is malformed is refused wherever it stands, even where something else
// wins.
namespace ddrun::launcher {

// Where each value came from. An option is meant by its long name without dashes
// ("nproc-per-node"); "program" is the program, "env NAME" one variable of --env.
class Sources {
  public:
    void record(std::string_view option, std::string name, std::string place);

    // As the subject of a sentence: "--tee", "PET_TEE", "job.yaml:3:6: tee"; the flag for a
    // default.
    [[nodiscard]] std::string name_of(std::string_view option) const;
    // "--tee", "PET_TEE", "job.yaml:3:6"; "default" when nobody gave it.
    [[nodiscard]] std::string place_of(std::string_view option) const;
    [[nodiscard]] bool given(std::string_view option) const;

  private:
    struct Source {
        std::string name;
        std::string place;
    };
    std::map<std::string, Source, std::less<>> by_option_;
};

// A job to run, or with `dry_run` one whose plan is to be printed (plan_text.hpp), exit 0.
struct JobConfig {
    JobSpec spec;
    Sources sources;
    bool dry_run = false;
    std::vector<std::string> warnings;  // one line each, for stderr unless --quiet
    std::vector<std::string> notes;     // one line each, for stderr at -v: values from outside the
                                        // command line, flags without effect here
};
struct PrintAndExit {  // --help, --version, --print-config ...: exit 0
    std::string text;  // for stdout, whole lines
    std::vector<std::string> warnings;
};
struct UsageError {    // exit 2
    std::string text;  // for stderr, whole lines: each thing, its value, what would be right
};
struct MakeSecret {};  // --make-secret: make the user's secret, tell where it is, exit 0
using ConfigResult = std::variant<JobConfig, PrintAndExit, MakeSecret, UsageError>;

// Reads a whole text file of at most `limit` bytes: its text, or why not.
struct FileText {
    std::string text;
    std::string problem;  // not empty: could not be read; in words
};
using ReadFile = std::function<FileText(const std::string& path, std::size_t limit)>;
[[nodiscard]] FileText read_file(const std::string& path, std::size_t limit);

// `arguments` without ddrun's own name; `environment` is all of ddrun's own. Reads nothing but the
// job file, through `read`; does not look at the machine (see validate_ranks for what needs the
// number of workers). Never throws for bad input.
[[nodiscard]] ConfigResult load_config(const std::vector<std::string>& arguments,
                                       const Variables& environment,
                                       const ReadFile& read = read_file);

}  // namespace ddrun::launcher
