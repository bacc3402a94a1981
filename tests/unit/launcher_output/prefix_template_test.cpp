#include "launcher/runtime/output/prefix_template.hpp"

#include "tests/support/catch.hpp"

using namespace ddrun::launcher;

namespace {

PrefixValues example() {
    PrefixValues values;
    values.rank = 12;
    values.local_rank = 4;
    values.attempt = 2;
    values.node = "1";
    values.role_name = "actor";
    values.hostname = "gpu7";
    return values;
}

}  // namespace

TEST_CASE("LOG-6: a prefix names rank, local rank, node, role, host and attempt") {
    CHECK(expand_prefix("[${rank}] ", example()) == "[12] ");
    CHECK(expand_prefix("[${node}:${rank}] ", example()) == "[1:12] ");
    CHECK(expand_prefix("<${role_name}${local_rank}@${hostname}#${attempt}>", example()) ==
          "<actor4@gpu7#2>");
    CHECK(expand_prefix("", example()).empty());
}

TEST_CASE("dollars that name nothing stay") {
    CHECK(expand_prefix("$$ $ $x ${rank}$", example()) == "$ $ $x 12$");
}

TEST_CASE("a wrong template is refused with what would be right") {
    CHECK_FALSE(prefix_template_error("[${rank}:${time}] $5 $$"));
    const auto unknown = prefix_template_error("[${rnak}] ");
    REQUIRE(unknown);
    CHECK(unknown->find("${rnak}") != std::string::npos);
    CHECK(unknown->find("${rank}") != std::string::npos);
    const auto open = prefix_template_error("[${rank");
    REQUIRE(open);
    CHECK(open->find("'}'") != std::string::npos);
}

TEST_CASE("the time of a line is filled in late") {
    LinePrefix prefix(expand_prefix("${time} [${rank}] ", example()));
    CHECK(prefix.has_time());
    const auto text = prefix.at(
        std::chrono::system_clock::time_point(std::chrono::milliseconds(1'234'567'890'123)));
    CHECK(text.size() == std::string("2009-02-13 23:31:30.123 [12] ").size());
    CHECK(text.find(":30.123 [12] ") != std::string_view::npos);
    LinePrefix plain("[0] ");
    CHECK_FALSE(plain.has_time());
    CHECK(plain.at({}) == "[0] ");
}
