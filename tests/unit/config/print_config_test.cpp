#include "tests/unit/config/loading.hpp"
#include "tests/unit/config/samples.hpp"

#include <random>

using namespace ddrun;
using namespace ddrun::launcher;
using Catch::Matchers::Contains;

namespace {

// A random set of right values by random ways in, and random bytes as arguments.
struct Scenario {
    Words words;
    Variables environment;
};

class Dice {
  public:
    explicit Dice(unsigned seed) : random_(seed) {}
    std::size_t below(std::size_t count) { return random_() % count; }

    std::string bytes() {
        std::string text(below(12), ' ');
        for (char& c : text) c = static_cast<char>(1 + below(255));
        return text;
    }

    Scenario scenario() {
        Scenario made;
        made.words = {"--nproc-per-node=4096"};
        for (const auto& [name, sample] : samples()) {
            if (sample.good.empty() || below(3) != 0 || excludes_others(name)) continue;
            const std::string& value = sample.good[below(sample.good.size())];
            if (below(2) == 0)
                made.words.push_back("--" + std::string(name) + "=" + value);
            else
                made.environment[variable_name("DDRUN_", *find_option(name))] = value;
        }
        made.words.push_back("--env=BYTES=" + bytes());
        made.words.push_back("--prefix-command=1:" + values::shell_quoted("x" + bytes()));
        made.words.push_back("x" + bytes());
        for (std::size_t i = below(4); i > 0; --i) made.words.push_back(bytes());
        return made;
    }

  private:
    static bool excludes_others(std::string_view name) {
        return name == "nproc-per-node" || name == "module" || name == "no-python";
    }
    std::mt19937 random_;
};

}  // namespace

TEST_CASE("every value stands with its source") {
    const std::string text =
        printed({"--print-config", "--tee=3", "--env=A=1", "--config=job.yaml", "x", "y"},
                {{"PET_ROLE", "r"}}, file_of("max-restarts: 2\n"));
    CHECK_THAT(text, Contains("tee: 3                                  # --tee\n"));
    CHECK_THAT(text, Contains("role: r                                 # PET_ROLE\n"));
    CHECK_THAT(text, Contains("max-restarts: 2                         # job.yaml:1:15\n"));
    CHECK_THAT(text, Contains("  A: 1                                  # --env\n"));
    CHECK_THAT(text, Contains("program: x                              # command line\n"));
    CHECK_THAT(text, Contains("# hang-timeout: off                     # default\n"));
    for (const Option& option : options()) {
        if (!option.in_job_file || is_refused(option)) continue;
        CAPTURE(option.name);
        CHECK_THAT(text, Contains(std::string(option.name) + ":"));
    }
}

TEST_CASE("a program is not needed to see the values") {
    CHECK_THAT(printed({"--print-config"}), Contains("# program: not given"));
}

TEST_CASE("what is printed gives the same job when it is given back") {
    for (unsigned seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        Scenario scenario = Dice(seed).scenario();
        const JobSpec meant = spec(scenario.words, scenario.environment);
        scenario.words.insert(scenario.words.begin(), "--print-config");
        const std::string text = printed(scenario.words, scenario.environment);
        CAPTURE(text);
        CHECK((spec({"--config=job.yaml"}, {}, file_of(text)) == meant));
        const std::string again =
            printed({"--config=job.yaml", "--print-config"}, {}, file_of(text));
        CHECK((spec({"--config=job.yaml"}, {}, file_of(again)) == meant));
    }
}

TEST_CASE("words that YAML could take for something else come back as text") {
    for (const char* word : {"null", "~",  "yes", "0x1F", "-",  "- a", "a: b", "#",    "*a",
                             "&a",   "!x", "%",   "@",    "`",  "[a]", "{a}",  "a #b", " a ",
                             "",     "'",  "\"",  "\\",   "<<", "?",   "a:",   "1_000"}) {
        CAPTURE(word);
        const std::string text = printed({"--print-config", "x", word});
        CHECK(spec({"--config=job.yaml"}, {}, file_of(text)).arguments == Words{word});
    }
}
