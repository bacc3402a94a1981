#include "launcher/config/exit_codes.hpp"
#include "tests/unit/config/loading.hpp"
#include "tests/unit/config/samples.hpp"

#include <algorithm>
#include <sstream>

using namespace ddrun;
using namespace ddrun::launcher;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

void check_width(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
        CAPTURE(line);
        CHECK(line.size() <= 80);
    }
}

}  // namespace

TEST_CASE("--help fits a screen of 80 columns and 24 lines, and leads on") {
    const std::vector<std::string> lines = lines_of(printed({"--help"}));
    CHECK(lines.size() <= 24);
    check_width(lines);
    CHECK_THAT(lines.back(), Contains("--help=all") && Contains("man ddrun"));
    CHECK(printed({"-h"}) == printed({"--help"}));
}

TEST_CASE("--help=all has every flag, its default, and the exit codes") {
    const std::string text = printed({"--help=all"});
    check_width(lines_of(text));
    for (const Option& option : options()) {
        CAPTURE(option.name);
        CHECK_THAT(text, Contains("--" + std::string(option.name)));
        CHECK(option.help.size() <= 50);
        CHECK_FALSE(option.help.empty());
    }
    CHECK_THAT(text, Contains("restarts of all workers after a failure (default"));
    for (const ExitCode& code : exit_codes)
        CHECK_THAT(text, Contains("\n  " + std::string(code.code) + " "));
}

TEST_CASE("--version names the version and how it was built") {
    const std::string text = printed({"--version"});
    CHECK_THAT(
        text, Catch::Matchers::StartsWith("ddrun ") && Contains("built ") && Contains("yaml-cpp "));
}

TEST_CASE("the table is sound") {
    std::vector<std::string_view> names;
    std::string letters;
    for (const Option& option : options()) {
        CAPTURE(option.name);
        names.push_back(option.name);
        if (option.letter != 0) letters += option.letter;
        CHECK(option.name.find('_') == option.name.npos);
        CHECK((takes_value(option) == !option.metavar.empty() || option.shape == Shape::counted ||
               option.name == "help"));
        CHECK((option.torchrun == Torchrun::same || option.torchrun == Torchrun::absent ||
               !option.difference.empty()));
        if (option.codec.get != nullptr) CHECK_FALSE(form_of(option).empty());
    }
    std::sort(names.begin(), names.end());
    std::sort(letters.begin(), letters.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    CHECK(std::adjacent_find(letters.begin(), letters.end()) == letters.end());
}

TEST_CASE("every default is a value that its option takes") {
    for (const Option& option : options()) {
        if (option.codec.get == nullptr) continue;
        CAPTURE(option.name, preset_of(option));
        Draft draft;
        if (!preset_of(option).empty()) CHECK_FALSE(option.codec.set(draft, preset_of(option)));
        CHECK((draft == Draft()));
    }
}
