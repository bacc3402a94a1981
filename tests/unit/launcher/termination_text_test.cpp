#include "launcher/core/termination_text.hpp"

#include "tests/support/catch.hpp"

#include <string>

using namespace ddrun::launcher;

TEST_CASE("a termination message begins with the cause, then the code, then the rest") {
    CHECK(termination_text("ddrun: ./train failed: rank 1 ended with exit code 3\n"
                           "ddrun: root cause: node n0\nddrun:   | DISK GONE\n",
                           3) ==
          "./train failed: rank 1 ended with exit code 3\nexit code 3\nroot cause: node n0\n"
          "  | DISK GONE\n");
    CHECK(termination_text("", 3).empty());
}

TEST_CASE("a termination message keeps whole lines within 4 KB") {
    std::string summary;
    for (int i = 0; i < 500; ++i) summary += "ddrun: line " + std::to_string(i) + "\n";
    const std::string text = termination_text(summary, 75);
    CHECK(text.size() <= largest_termination_text);
    CHECK(text.size() > largest_termination_text - 20);
    CHECK(text.starts_with("line 0\nexit code 75\nline 1\n"));
    CHECK(text.ends_with("\n"));
}

TEST_CASE("a long line of a termination message is cut between characters") {
    for (const std::size_t before : {0U, 1U, 2U}) {
        std::string line(before, 'a');
        while (line.size() < 5000) line += "\u20ac";  // three bytes
        const std::string text = termination_text("ddrun: " + line + "\nddrun: hint\n", 2);
        const std::string first = text.substr(0, text.find('\n'));
        CHECK(first.size() <= 1000);
        CHECK((first.size() - before) % 3 == 0);
        CHECK(text.ends_with("exit code 2\nhint\n"));
    }
}
