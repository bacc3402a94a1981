#include "tests/unit/config/loading.hpp"
#include "tests/unit/config/samples.hpp"

// Every flag, variable and job-file key with wrong values: exit 2, and the text names the thing,
// the value, and what would be right.
using namespace ddrun;
using namespace ddrun::launcher;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string yaml_quoted(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '\n' || c == '\t')
            quoted += c == '\n' ? "\\n" : "\\t";
        else
            quoted.append(c == '"' || c == '\\' ? 1 : 0, '\\').append(1, c);
    }
    return quoted + "\"";
}

// The same wrong value by every way in; `refuse` gets the name the message must show.
template <typename Refused>
void for_every_way(const Option& option, const std::string& value, Refused check) {
    const std::string name(option.name);
    check("--" + name, refusal({"--" + name + "=" + value, "true"}));
    const std::string ours = variable_name("DDRUN_", option);
    check(ours, refusal({"true"}, {{ours, value}}));
    if (option.torchrun != Torchrun::absent) {
        const std::string theirs = variable_name("PET_", option);
        check(theirs, refusal({"true"}, {{theirs, value}}));
    }
    if (option.in_job_file) {
        const Files files = file_of(name + ": " + yaml_quoted(value) + "\n");
        check("job.yaml:1:" + std::to_string(name.size() + 3) + ": " + name,
              refusal({"--config=job.yaml", "true"}, {}, files));
    }
}

}  // namespace

TEST_CASE("every option has samples, or is refused as such") {
    for (const Option& option : options()) {
        CAPTURE(option.name);
        CHECK((samples().count(option.name) == 1 || is_refused(option) ||
               option.shape == Shape::command));
    }
}

TEST_CASE("a wrong value is refused with its place, the value and what would be right") {
    for (const Option& option : options()) {
        const auto sample = samples().find(option.name);
        if (sample == samples().end()) continue;
        for (const std::string& value : sample->second.bad) {
            for_every_way(option, value, [&](const std::string& name, const std::string& text) {
                CAPTURE(name, value, text);
                CHECK(contains(text, "ddrun: " + name + ": " + values::quoted(value) + " is not "));
                CHECK(contains(text, form_of(option)));
            });
        }
    }
}

TEST_CASE("ARG-5 an empty value is refused by name, wherever it stands") {
    for (const Option& option : options()) {
        if (option.shape == Shape::command || is_refused(option)) continue;
        for_every_way(option, "", [&](const std::string& name, const std::string& text) {
            CAPTURE(name, text);
            CHECK(contains(text, "ddrun: " + name + ": the value is empty"));
            CHECK(contains(text, form_of(option)));
        });
    }
}

TEST_CASE("a refused flag of torchrun says what to use instead") {
    for (const Option& option : options()) {
        if (!is_refused(option)) continue;
        for_every_way(option, "x", [&](const std::string& name, const std::string& text) {
            CAPTURE(name, text);
            CHECK(contains(text, name + " is refused: " + std::string(option.difference)));
        });
    }
}

TEST_CASE("a right value is the same job by flag, variable and job file") {
    for (const auto& [name, sample] : samples()) {
        const Option& option = *find_option(name);
        for (const std::string& value : sample.good) {
            CAPTURE(name, value);
            Words flag = {"--nproc-per-node=4096", "--" + std::string(name) + "=" + value, "prog"};
            if (name == "nproc-per-node") flag.erase(flag.begin());
            Variables only = {{variable_name("DDRUN_", option), value}};
            if (name != "nproc-per-node") only.emplace("DDRUN_NPROC_PER_NODE", "4096");
            std::string text = std::string(name) + ": " + yaml_quoted(value) + "\nprogram: prog\n";
            if (name != "nproc-per-node") text += "nproc-per-node: 4096\n";
            const JobSpec by_flag = spec(flag);
            CHECK(by_flag == spec({"prog"}, only));
            CHECK(by_flag == spec({"--config=job.yaml"}, {}, file_of(text)));
            CHECK((by_flag != spec({"--nproc-per-node=4096", "prog"}) || name == "nproc-per-node" ||
                   !option.no_effect.empty()));
        }
    }
}

TEST_CASE("a value that is overridden must be right all the same") {
    CHECK(contains(refusal({"--tee=3", "true"}, {{"PET_TEE", "9"}}), "PET_TEE: '9' is not"));
}

TEST_CASE("several mistakes are told at once, but not without end") {
    const std::string text =
        refusal({"--tee=9", "--max-restarts=x", "true"}, {{"DDRUN_STDIN", "y"}});
    CHECK(contains(text, "--tee: '9'"));
    CHECK(contains(text, "--max-restarts: 'x'"));
    CHECK(contains(text, "DDRUN_STDIN: 'y'"));
    Words many(50, "--tee=9");
    many.push_back("true");
    CHECK(contains(refusal(many), "ddrun: and 40 more\n"));
}

TEST_CASE("values in messages are visible and short") {
    const std::string text = refusal({"--tee=\xff\x1b[31m" + std::string(500, 'x'), "true"});
    CHECK(contains(text, "'\\xff\\x1b[31m"));
    CHECK(contains(text, "...'"));
    CHECK(text.size() < 400);
}
