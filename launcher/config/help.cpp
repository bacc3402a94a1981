#include "launcher/config/help.hpp"

#include "launcher/config/exit_codes.hpp"
#include "launcher/config/option.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

constexpr std::string_view usage =
    "usage: ddrun [FLAGS] PROGRAM [ARGUMENTS...]\n"
    "Starts PROGRAM once per GPU or CPU slot and tells every worker its rank,\n"
    "restarts all after a failure, stops them together, ends with the first cause.\n";
constexpr std::size_t text_column = 32;
constexpr std::size_t exit_code_column = 10;
constexpr std::size_t line_width = 80;

std::string flag_and_value(const Option& option) {
    std::string text =
        option.letter != 0 ? std::string{' ', ' ', '-', option.letter, ',', ' '} : "      ";
    text.append("--").append(option.name);
    if (takes_value(option)) text.append("=").append(option.metavar);
    return text;
}

// `text` from `column` on, wrapped; under `head` where that is too long to stand beside it.
std::string two_columns(std::string head, std::string_view text, std::size_t column = text_column) {
    std::string lines;
    if (head.size() >= column) lines = std::exchange(head, std::string()) + "\n";
    head.resize(column, ' ');
    while (head.size() + text.size() > line_width) {
        const std::size_t cut = text.rfind(' ', line_width - head.size());
        if (cut == text.npos) break;
        lines.append(head).append(text.substr(0, cut)).append("\n");
        text.remove_prefix(cut + 1);
        head.assign(column, ' ');
    }
    return lines.append(head).append(text).append("\n");
}

std::string help_and_default(const Option& option) {
    std::string text(option.help);
    const std::string preset = takes_value(option) ? preset_of(option) : "";
    if (!preset.empty() && preset != "none" && option.shape != Shape::repeated)
        text += " (default " + preset + ")";
    return text;
}

}  // namespace

std::string short_help() {
    std::string text(usage);
    text += "example: ddrun --nproc-per-node=4 ./train --lr=0.1\n\n";
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
        "\nA flag --some-flag is also --some_flag, the variable DDRUN_SOME_FLAG and the\n"
        "job-file key some-flag; torchrun's flags are read from PET_SOME_FLAG too.\n"
        "A flag counts more than DDRUN_*, then PET_*, then the job file.\n"
        "\nExit codes:\n";
    for (const ExitCode& code : exit_codes) {
        text += two_columns("  " + std::string(code.code), code.meaning, exit_code_column);
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
