#include "launcher/config/help.hpp"

#include "launcher/config/exit_codes.hpp"
#include "launcher/config/option.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

constexpr std::string_view usage =
    "usage: ddrun [FLAGS] PROGRAM [ARGUMENTS...]\n"
    "Starts PROGRAM once per GPU or CPU slot, tells every worker its rank, restarts them\n"
    "after a failure, and ends with the code of the first cause.\n";
constexpr std::size_t text_column = 34;
constexpr std::size_t line_width = 80;

std::string flag_and_value(const Option& option) {
    std::string text =
        option.letter != 0 ? std::string{' ', ' ', '-', option.letter, ',', ' '} : "      ";
    text.append("--").append(option.name);
    if (takes_value(option)) text.append("=").append(option.metavar);
    return text;
}

// `text` from `text_column` on, wrapped; under `head` where that is too long to stand beside it.
std::string two_columns(std::string head, std::string_view text) {
    std::string lines;
    if (head.size() >= text_column) lines = std::exchange(head, std::string()) + "\n";
    head.resize(text_column, ' ');
    while (head.size() + text.size() > line_width) {
        const std::size_t cut = text.rfind(' ', line_width - head.size());
        if (cut == text.npos) break;
        lines.append(head).append(text.substr(0, cut)).append("\n");
        text.remove_prefix(cut + 1);
        head.assign(text_column, ' ');
    }
    return lines.append(head).append(text).append("\n");
}

std::string help_and_default(const Option& option) {
    std::string text(option.help);
    const std::string preset = takes_value(option) ? preset_of(option) : "";
    if (!preset.empty() && option.shape != Shape::repeated) text += " (default " + preset + ")";
    return text;
}

}  // namespace

std::string short_help() {
    std::string text = "usage: ddrun [FLAGS] PROGRAM [ARGUMENTS...]\n";
    for (const Option& option : options()) {
        if (option.featured) text += two_columns(flag_and_value(option), option.help);
    }
    return text + "Flags end at PROGRAM. All flags: ddrun --help=all, or man ddrun.\n";
}

std::string full_help() {
    std::string text(usage);
    for (const Group group : groups) {
        text.append("\n").append(title(group)).append(":\n");
        for (const Option& option : options()) {
            if (option.group == group)
                text += two_columns(flag_and_value(option), help_and_default(option));
        }
    }
    text +=
        "\nEach flag --some-flag is also --some_flag, the variable DDRUN_SOME_FLAG, and the key\n"
        "some-flag of a job file; torchrun's flags are read from PET_SOME_FLAG too.\n"
        "A flag counts more than DDRUN_*, then PET_*, then the job file.\n"
        "\nExit codes:\n";
    for (const ExitCode& code : exit_codes) {
        std::string head = "  " + std::string(code.code);
        head.resize(10, ' ');
        text += head.append(code.meaning).append("\n");
    }
    return text;
}

std::string version_line() {
    return "ddrun " DDRUN_VERSION;
}

std::string version_text() {
    return version_line() + "\nbuilt " DDRUN_BUILD_TYPE " with " DDRUN_COMPILER
                            " for " DDRUN_PLATFORM "; yaml-cpp " DDRUN_YAML_VERSION "\n";
}

}  // namespace ddrun::launcher
