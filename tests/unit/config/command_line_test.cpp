#include "launcher/config/command_line.hpp"
#include "tests/unit/config/loading.hpp"

using namespace ddrun;
using namespace ddrun::launcher;
using Catch::Matchers::Contains;

TEST_CASE("ARG-1 whatever follows the program is the program's") {
    const Words own = {"--r=16", "--nnodes=9", "-t", "--log", "x", "--help", "--", "--version"};
    Words words = {"--nproc-per-node=1", "printargs.sh"};
    words.insert(words.end(), own.begin(), own.end());
    const JobSpec job = spec(words);
    CHECK(job.program == "printargs.sh");
    CHECK(job.arguments == own);
    CHECK(job.max_nodes == 1);
}

TEST_CASE("ARG-1 no abbreviations; the nearest flag is named") {
    CHECK_THAT(refusal({"--nproc", "4", "x"}), Contains("did you mean --nproc-per-node?"));
    CHECK_THAT(refusal({"--r=16", "x"}), Contains("unknown flag '--r'"));
    CHECK_THAT(refusal({"--log", "x"}), Contains("did you mean --log-dir?"));
    CHECK_THAT(refusal({"--max-restart=1", "x"}), Contains("did you mean --max-restarts?"));
    CHECK_THAT(refusal({"--nproc_per_nod=1", "x"}), Contains("did you mean --nproc-per-node?"));
    CHECK_THAT(refusal({"--hepl"}), Contains("did you mean --help?"));
    CHECK_THAT(refusal({"-np", "4", "x"}), Contains("did you mean --nproc-per-node?"));
    CHECK_THAT(refusal({"-n", "4", "x"}), Contains("did you mean --nproc-per-node?"));
    CHECK_THAT(refusal({"-nproc_per_node=4", "x"}), Contains("did you mean --nproc-per-node?"));
    CHECK_THAT(refusal({"-tee=3", "x"}), Contains("did you mean --tee?"));
    CHECK_THAT(refusal({"--qwertyuiop", "x"}), Contains("ddrun --help=all lists the flags"));
    CHECK_THAT(refusal({"--Tee=3", "x"}), Contains("unknown flag '--Tee'"));
}

TEST_CASE("ARG-2 arguments are kept byte for byte") {
    const Words own = {"",        "a b",   "I'm", "72\" tall", "x\ny",
                       "*",       "$HOME", "-4C", "--p=a b",   std::string(100'000, 'z'),
                       "\xff\xfe"};
    Words words = {"prog"};
    words.insert(words.end(), own.begin(), own.end());
    CHECK(spec(words).arguments == own);
}

TEST_CASE("dashes and underscores, '=' and a following word") {
    const JobSpec expected = spec({"--nproc-per-node=3", "--max-restarts=2", "x"});
    CHECK(spec({"--nproc_per_node", "3", "--max_restarts", "2", "x"}) == expected);
    CHECK(spec({"--nproc_per-node=3", "--max-restarts", "2", "x"}) == expected);
}

TEST_CASE("a value is kept as it is, with its own '=' and dashes") {
    CHECK(spec({"--log-dir=a=b_c", "x"}).log_dir == "a=b_c");
    CHECK(spec({"--local-rank-flag=--local_rank", "x"}).local_rank_flag == "--local_rank");
    CHECK(spec({"--gpus", "-1", "x"}).gpus == "-1");
}

TEST_CASE("letters stand alone, together, and with a value") {
    CHECK(spec({"-r3", "x"}).redirects.otherwise == Streams::both);
    CHECK(spec({"-r=3", "x"}).redirects.otherwise == Streams::both);
    CHECK(spec({"-r", "3", "x"}).redirects.otherwise == Streams::both);
    CHECK(spec({"-vv", "x"}).verbosity == 2);
    CHECK(spec({"-v", "-v", "x"}).verbosity == 2);
    CHECK(spec({"-v", "--verbose=3", "x"}).verbosity == 3);
    CHECK(spec({"-vq", "x"}).verbosity == -1);
    const JobSpec job = spec({"-mv", "-t1", "pkg.train"});
    CHECK(job.kind == ProgramKind::module);
    CHECK(job.verbosity == 1);
    CHECK(job.tee.otherwise == Streams::out);
    CHECK_THAT(refusal({"-x", "y"}), Contains("unknown flag '-x'"));
    CHECK_THAT(refusal({"-vx", "y"}), Contains("unknown flag '-vx'"));
}

TEST_CASE("an on/off flag does not take the next word") {
    const JobSpec job = spec({"--log-strict", "true"});
    CHECK(job.log_strict);
    CHECK(job.program == "true");
    CHECK_FALSE(spec({"--log-strict", "--log-strict=no", "x"}).log_strict);
}

TEST_CASE("a missing value is told apart from a wrong one") {
    CHECK_THAT(refusal({"--max-restarts"}),
               Contains("--max-restarts needs a value: a whole number"));
    CHECK_THAT(refusal({"--log-dir", "--tee", "3", "x"}),
               Contains("--log-dir needs a value: a path; '--tee' looks like a flag"));
    CHECK_THAT(refusal({"-t"}), Contains("-t needs a value"));
    CHECK_THAT(refusal({"--print-completion"}),
               Contains("--print-completion needs a value: bash|zsh"));
}

TEST_CASE("two dashes end the flags") {
    const JobSpec job = spec({"--tee=1", "--", "--odd-program", "--tee=2"});
    CHECK(job.program == "--odd-program");
    CHECK(job.arguments == Words{"--tee=2"});
    CHECK(spec({"-", "a"}).program == "-");
    CHECK_THAT(refusal({"--tee=1", "--"}), Contains("no program given"));
}

TEST_CASE("no program, or one without a name") {
    CHECK_THAT(refusal({}), Contains("no program given; usage: ddrun [FLAGS] PROGRAM"));
    CHECK_THAT(refusal({"--tee=1"}), Contains("no program given"));
    CHECK_THAT(refusal({""}), Contains("the program's name is empty"));
}

TEST_CASE("--help and --version act where they stand") {
    CHECK_THAT(printed({"--tee=9", "--help", "--bogus"}), Contains("usage: ddrun"));
    CHECK_THAT(refusal({"--bogus", "--help"}), Contains("unknown flag '--bogus'"));
    CHECK_THAT(printed({"-V"}), Contains("ddrun "));
    CHECK_THAT(refusal({"--help=most"}), Contains("--help: 'most' is not all"));
    CHECK_THAT(refusal({"--print-completion=tcsh"}), Contains("'tcsh' is not one of bash, zsh"));
}

TEST_CASE("the last mention of a flag counts") {
    CHECK(spec({"--tee=1", "--tee=2", "x"}).tee.otherwise == Streams::err);
}

TEST_CASE("a flag with any bytes is refused, not trusted") {
    CHECK_THAT(refusal({"--\xff\xff", "x"}), Contains("unknown flag '--\\xff\\xff'"));
    CHECK_THAT(refusal({std::string("--") + std::string(100'000, 'n'), "x"}),
               Contains("unknown flag"));
    CHECK_THAT(refusal({"---", "x"}), Contains("unknown flag '---'"));
    CHECK_THAT(refusal({"-=3", "x"}), Contains("unknown flag '-'"));
}
