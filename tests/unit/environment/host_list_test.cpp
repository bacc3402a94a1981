#include "launcher/environment/host_list.hpp"
#include "tests/support/catch.hpp"

#include <string>
#include <vector>

using namespace ddrun::launcher;

namespace {

std::string names(const std::string& list) {
    std::string text;
    const HostList expanded = expand_host_list(list);
    INFO(expanded.problem);
    CHECK(expanded.problem.empty());
    for (const std::string& host : expanded.hosts) text += (text.empty() ? "" : " ") + host;
    return text;
}

}  // namespace

TEST_CASE("SLURM-3: names, ranges, widths, as scontrol 22.05 expands them") {
    CHECK(names("").empty());
    CHECK(names("n1") == "n1");
    CHECK(names("a b,c\td") == "a b c d");
    CHECK(names(",a,,b,") == "a b");
    CHECK(names("n[09-10],m") == "n09 n10 m");
    CHECK(names("n[8-010]") == "n8 n9 n10");
    CHECK(names("n[1,02]") == "n1 n02");
    CHECK(names("tux[2,1-2]") == "tux2 tux1 tux2");
    CHECK(names("[1-3]") == "1 2 3");
    CHECK(names("tux0-5") == "tux0-5");
    CHECK(names("n]1") == "n]1");
    CHECK(names("n{a}") == "n{a}");
    CHECK(names("n[000000000000000001-2]") == "n000000000000000001 n000000000000000002");
}

TEST_CASE("SLURM-3: several brackets: the last one fastest, then from the left") {
    CHECK(names("n[1-2][3-4]") == "n13 n14 n23 n24");
    CHECK(names("a[1-2]b[3-4]c[5-6]") == "a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 a1b4c6 a2b4c5 a2b4c6");
    CHECK(names("a[1-2]b[3-4]c[5-6]d[7-8]") ==
          "a1b3c5d7 a1b3c5d8 a2b3c5d7 a2b3c5d8 a1b4c5d7 a1b4c5d8 a2b4c5d7 a2b4c5d8 "
          "a1b3c6d7 a1b3c6d8 a2b3c6d7 a2b3c6d8 a1b4c6d7 a1b4c6d8 a2b4c6d7 a2b4c6d8");
}

TEST_CASE("SLURM-3: what is not legal is refused, naming the part") {
    const std::string list = GENERATE(
        "n[3-1]", "n[]", "n[1--2]", "n[a-b]", "n[1,,2]", "n[1x2]", "n[[1]]", "n[1 ,2]",
        "n[1-70000]", "n[0-0x1]", "n[1-2]-ib", "a[1-2],b[1-2]x", "n[1-2", "n[1-2]x[1-", "n[-1]",
        "n[1-]", "n[99999999999999999999]", "n[1-1000][1-1000]", "a]n[1-2]", "n[1]x]y[2]");
    const HostList expanded = expand_host_list("good," + list);
    CAPTURE(list);
    CHECK(expanded.hosts.empty());
    CHECK(expanded.problem.find("host list") != std::string::npos);
}

TEST_CASE("SLURM-3: a list is bounded") {
    CHECK(expand_host_list("n[1-65536]").hosts.size() == max_hosts_in_list);
    CHECK_FALSE(expand_host_list("n[1-65536],m").problem.empty());
}
