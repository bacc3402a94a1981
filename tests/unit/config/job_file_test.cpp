#include "tests/unit/config/loading.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using Catch::Matchers::Contains;

namespace {

std::string file_refusal(const std::string& text) {
    return refusal({"--config=job.yaml", "x"}, {}, file_of(text));
}
JobSpec file_spec(const std::string& text) {
    return spec({"--config", "job.yaml"}, {}, file_of(text));
}

}  // namespace

TEST_CASE("a job file holds the whole job") {
    const JobSpec job = file_spec(
        "# four workers\n"
        "program: ./train\n"
        "args: [--lr, 0.1, \"a b\", '']\n"
        "nproc_per_node: 4\n"
        "tee: 0-1:3,3:1\n"
        "log-strict: yes\n"
        "no-restart-on: [2, 126]\n"
        "env:\n  A: 1\n  B: \"\"\n"
        "prefix-command:\n  - \"0:gdb --args\"\n");
    CHECK(job == spec({"--nproc-per-node=4", "--tee=0-1:3,3:1", "--log-strict",
                       "--no-restart-on=2,126", "--env=A=1", "--env=B=",
                       "--prefix-command=0:gdb --args", "./train", "--lr", "0.1", "a b", ""}));
}

TEST_CASE("a program on the command line takes its own arguments") {
    const JobSpec job =
        spec({"--config=job.yaml", "other"}, {}, file_of("program: p\nargs: [a]\n"));
    CHECK(job.program == "other");
    CHECK(job.arguments.empty());
}

TEST_CASE("mistakes have a line, a column, and a way out") {
    CHECK_THAT(file_refusal("tee: 3\nteee: 3\n"),
               Contains("job.yaml:2:1: unknown key 'teee'; did you mean tee?"));
    CHECK_THAT(file_refusal("nproc: 3"), Contains("did you mean nproc-per-node?"));
    CHECK_THAT(file_refusal("zzzzzz: 3"), Contains("keys are the names of flags"));
    CHECK_THAT(file_refusal("arg: [1]"), Contains("did you mean args?"));
    CHECK_THAT(file_refusal("tee: 1\nrole: a\ntee: 2\n"),
               Contains("job.yaml:3:1: key 'tee' stands here and in line 1"));
    CHECK_THAT(file_refusal("nproc-per-node: 1\nnproc_per_node: 2\n"),
               Contains("stands here and in line 1"));
    CHECK_THAT(file_refusal("tee: [1, 2]"),
               Contains("job.yaml:1:6: tee: expected a single value, found a list"));
    CHECK_THAT(file_refusal("tee: {a: 1}"),
               Contains("tee: expected a single value, found a mapping"));
    CHECK_THAT(file_refusal("tee:\nrole: a"), Contains("job.yaml:1:1: tee: the value is empty"));
    CHECK_THAT(file_refusal("args: a b"), Contains("args: expected a list, one item per argument"));
    CHECK_THAT(file_refusal("args: [[1]]"), Contains("expected a single value, found a list"));
    CHECK_THAT(file_refusal("env: {A: [1]}"),
               Contains("env: expected a single value, found a list"));
    CHECK_THAT(file_refusal("env: {A: }"), Contains("env: A has no value; write \"\""));
    CHECK_THAT(file_refusal("env: {\"A=B\": 1}"), Contains("the name 'A=B' holds '='"));
    CHECK_THAT(file_refusal("env: {A: 1, A: 2}"), Contains("key 'A' stands here"));
    CHECK_THAT(file_refusal("no-restart-on: [1, [2]]"), Contains("found a list"));
    CHECK_THAT(file_refusal("config: other.yaml"), Contains("config cannot stand in a job file"));
    CHECK_THAT(file_refusal("dry-run: true"), Contains("give --dry-run on the command line"));
    CHECK_THAT(file_refusal("program: \"\""), Contains("the program's name is empty"));
    CHECK_THAT(file_refusal("- a\n- b\n"),
               Contains("job.yaml:1:1: expected a mapping of flag names"));
    CHECK_THAT(file_refusal("just text"), Contains("expected a mapping"));
    CHECK_THAT(file_refusal("[a]: 1"), Contains("a key must be a name, found a list"));
    CHECK_THAT(file_refusal("tee: 1\n---\ntee: 2\n"), Contains("one document, not several"));
    CHECK_THAT(file_refusal("tee: 1\n...\ntee: 2\n"), Contains("one document, not several"));
    CHECK_THAT(file_refusal("a: b: c"), Contains("job.yaml:1:5: not YAML: "));
    CHECK_THAT(file_refusal("x-a: " + std::string(5000, '[')), Contains("nested too deeply"));
    CHECK_THAT(file_refusal(",rogram: p"), Contains("job.yaml:1:1: "));
    CHECK_THAT(file_refusal("tee: !mine 1\n"), Contains("the tag '!mine' is not known"));
    CHECK_THAT(file_refusal("role: \"open\n"),
               Contains("job.yaml:2:1: not YAML: a quote is never closed"));
    CHECK_THAT(file_refusal("role: \"open\ntee: 1"), Contains("job.yaml:3:1: "));
    CHECK_THAT(file_refusal("role: 'open"), Contains("job.yaml:2:1: "));
    CHECK_THAT(file_refusal("args: [a, b\n"), Contains("job.yaml:2:1: "));
    CHECK_THAT(file_refusal("role: *nothing\n"), Contains("job.yaml:1:7: "));
    CHECK_THAT(file_refusal("\ttee: 1"), Contains("job.yaml:1:"));
}

TEST_CASE("one wrong key does not hide the next") {
    const std::string text = file_refusal("aaaaaa: 1\nbbbbbb: 2\ntee: 9\n");
    CHECK_THAT(text, Contains("aaaaaa") && Contains("bbbbbb") && Contains("tee: '9'"));
}

TEST_CASE("an empty file says nothing, and a missing one is named") {
    CHECK(spec({"--config=job.yaml", "x"}, {}, file_of("# nothing\n")) == spec({"x"}));
    CHECK_THAT(refusal({"--config=none.yaml", "x"}),
               Contains("--config: cannot read 'none.yaml': No such file or directory"));
    CHECK_THAT(refusal({"x"}, {{"DDRUN_CONFIG", "none.yaml"}}),
               Contains("DDRUN_CONFIG: cannot read"));
}

TEST_CASE("anchors, aliases and merge keys work; x- keys are free") {
    const JobSpec job = file_spec(
        "x-common: &common {A: 1, B: 2}\n"
        "x-more: &more {C: 3, B: 9}\n"
        "program: &name ./train\n"
        "args: [*name]\n"
        "env: {<<: [*common, *more], A: own}\n");
    CHECK(job.arguments == Words{"./train"});
    CHECK(job.extra_env == decltype(job.extra_env){{"A", "own"}, {"B", "2"}, {"C", "3"}});
    CHECK(file_spec("x-base: &base {program: p, tee: 1}\n<<: *base\ntee: 3\n") ==
          spec({"--tee=3", "p"}));
    CHECK_THAT(file_refusal("<<: 3\n"), Contains("<< merges mappings, found a single value"));
}

TEST_CASE("a file that names itself without end is refused") {
    CHECK_THAT(file_refusal("&a\nrole: r\n<<: *a\n"), Contains("<< is nested too deeply"));
    std::string doubling = "x-0: &a0 {A: 1}\n";
    for (int i = 1; i <= 15; ++i) {
        const std::string before = std::to_string(i - 1);
        doubling += "x-" + std::to_string(i) + ": &a" + std::to_string(i) + " {<<: [*a" + before +
                    ", *a" + before + "]}\n";
    }
    CHECK_THAT(file_refusal(doubling + "env: *a15\n"), Contains("more than 4096 keys"));
}

TEST_CASE("bytes that are no text can be written as !!binary") {
    CHECK(file_spec("program: p\nargs: [!!binary /w==]\n").arguments == Words{"\xff"});
    CHECK_THAT(file_refusal("args: [!!binary \"!\"]"),
               Contains("!!binary is not followed by base64"));
}

TEST_CASE("a zero byte cannot reach a program") {
    CHECK_THAT(file_refusal("log-dir: \"a\\0b\""), Contains("holds a zero byte"));
    CHECK_THAT(file_refusal("args: [\"a\\0b\"]"), Contains("holds a zero byte"));
    CHECK_THAT(file_refusal("program: \"a\\0b\""), Contains("holds a zero byte"));
}

TEST_CASE("a hundred thousand keys are refused at once") {
    std::string many;
    for (int i = 0; i < 100'000; ++i) many += "k" + std::to_string(i) + ": 1\n";
    CHECK_THAT(file_refusal("env:\n  A: 1\n" + many), Contains("more than 4096 keys"));
}
