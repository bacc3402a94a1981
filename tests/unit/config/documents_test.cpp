#include "launcher/config/exit_codes.hpp"
#include "tests/unit/config/loading.hpp"

#include "launcher/config/option.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

// What documents and completions say about flags is made from the table of options. After a change
// of the table: DDRUN_UPDATE_DOCUMENTS=1 unit_config "[documents]", and the difference is there to
// read.
using namespace ddrun;
using namespace ddrun::launcher;

namespace {

std::string path_of(const std::string& name) {
    return DDRUN_SOURCE_DIR "/" + name;
}

std::string read_whole(const std::string& name) {
    std::ifstream file(path_of(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// Replaces what stands between the two lines, or tells whether it is `expected`.
void check_block(const std::string& name, const std::string& begin, const std::string& end,
                 const std::string& expected) {
    const std::string whole = read_whole(name);
    const std::size_t first = whole.find(begin), last = whole.find(end);
    CAPTURE(name, begin);
    REQUIRE(first != std::string::npos);
    REQUIRE(last != std::string::npos);
    const std::size_t start = first + begin.size();
    if (std::getenv("DDRUN_UPDATE_DOCUMENTS") != nullptr) {
        std::ofstream(path_of(name)) << whole.substr(0, start) << expected << whole.substr(last);
    }
    CHECK(read_whole(name).substr(start, expected.size()) == expected);
    CHECK(read_whole(name).substr(start + expected.size(), end.size()) == end);
}

void check_file(const std::string& name, const std::string& expected) {
    if (std::getenv("DDRUN_UPDATE_DOCUMENTS") != nullptr) std::ofstream(path_of(name)) << expected;
    CAPTURE(name);
    CHECK(read_whole(name) == expected);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
    }
    return text;
}

// --- man page ---------------------------------------------------------------------------------

std::string roff(std::string_view text) {
    return replaced(replaced(replaced(std::string(text), "\\", "\\e"), "-", "\\-"), "'", "\\(aq");
}

std::string sentence(std::string_view text) {
    return std::string(text).append(text.ends_with('.') ? "" : ".");
}

std::string man_entry(const Option& option) {
    std::string text = ".TP\n.B ";
    if (option.letter != 0) text += roff(std::string{'-', option.letter}) + ", ";
    text += roff(std::string("--").append(option.name));
    if (takes_value(option)) text += "=" + roff(option.metavar);
    text += "\n" + roff(sentence(option.help)) + "\n";
    if (!option.more.empty()) text += roff(option.more) + "\n";
    if (takes_value(option) && !preset_of(option).empty()) {
        text += "Default: " + roff(preset_of(option)) + ".\n";
    }
    if (!option.no_effect.empty())
        text += roff("Changes nothing: " + std::string(option.no_effect)) + ".\n";
    if (!option.variable.empty())
        text += roff("Also read from " + std::string(option.variable)) + ".\n";
    return text;
}

std::string man_options() {
    std::string text;
    for (const Group group : groups) {
        text.append(".SS ").append(title(group)).append("\n");
        for (const Option& option : options()) {
            if (option.group == group) text += man_entry(option);
        }
    }
    return text;
}

std::string man_exit_codes() {
    std::string text;
    for (const ExitCode& code : exit_codes) {
        text += ".TP\n.B " + roff(code.code) + "\n" + roff(sentence(code.meaning)) + "\n";
        if (code.retry != "-")
            text += roff("Worth another try: " + std::string(code.retry)) + ".\n";
    }
    return text;
}

// --- README -----------------------------------------------------------------------------------

std::string cell(std::string_view text) {
    return replaced(std::string(text), "|", "\\|");
}

std::string flag_cell(const Option& option) {
    std::string text = "`--" + std::string(option.name) + "`";
    if (option.letter != 0) text += " `-" + std::string(1, option.letter) + "`";
    return text;
}

std::string variables_cell(const Option& option) {
    if (!has_variable(option) || is_refused(option)) return "";
    std::string text = "`" + variable_name("DDRUN_", option) + "`";
    if (option.torchrun != Torchrun::absent) text += " `" + variable_name("PET_", option) + "`";
    if (!option.variable.empty()) text += " `" + std::string(option.variable) + "`";
    return text;
}

std::string torchrun_cell(const Option& option) {
    const std::string why = option.difference.empty() ? "" : ": " + std::string(option.difference);
    switch (option.torchrun) {
        case Torchrun::absent:
            return "";
        case Torchrun::same:
            return "same" + why;
        case Torchrun::better:
            return "better" + why;
        case Torchrun::refused:
            return "refused" + why;
    }
    return "";
}

std::string readme_flags() {
    std::string text =
        "| flag | variables | default | what it does | beside torchrun |\n"
        "| --- | --- | --- | --- | --- |\n";
    for (const Group group : groups) {
        for (const Option& option : options()) {
            if (option.group != group) continue;
            const std::string preset =
                preset_of(option).empty() ? "" : "`" + preset_of(option) + "`";
            text += "| " + flag_cell(option) + " | " + variables_cell(option) + " | " +
                    cell(preset) + " | " + cell(option.help) + " | " + cell(torchrun_cell(option)) +
                    " |\n";
        }
    }
    return text;
}

std::string readme_exit_codes() {
    std::string text = "| code | meaning | retry? |\n| --- | --- | --- |\n";
    for (const ExitCode& code : exit_codes) {
        text += "| " + std::string(code.code) + " | " + std::string(code.meaning) + " | " +
                std::string(code.retry) + " |\n";
    }
    return text;
}

}  // namespace

TEST_CASE("the man page describes every flag and exit code", "[documents]") {
    check_block("packaging/man/ddrun.1", ".\\\" options: begin\n", ".\\\" options: end\n",
                man_options());
    check_block("packaging/man/ddrun.1", ".\\\" exit codes: begin\n", ".\\\" exit codes: end\n",
                man_exit_codes());
}

TEST_CASE("the flag and exit-code tables of launcher/README.md are those of the parser",
          "[documents]") {
    check_block("launcher/README.md", "<!-- flags: begin -->\n", "<!-- flags: end -->\n",
                readme_flags());
    check_block("launcher/README.md", "<!-- exit codes: begin -->\n", "<!-- exit codes: end -->\n",
                readme_exit_codes());
}

TEST_CASE("completions are what ddrun prints", "[documents]") {
    check_file("packaging/completions/ddrun.bash", printed({"--print-completion=bash"}));
    check_file("packaging/completions/_ddrun", printed({"--print-completion=zsh"}));
}
