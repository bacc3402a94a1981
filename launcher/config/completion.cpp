#include "launcher/config/completion.hpp"

#include "launcher/config/option.hpp"

namespace ddrun::launcher {
namespace {

std::string spellings(const Option& option, std::string_view between) {
    std::string text = std::string("--").append(option.name);
    if (option.letter != 0) text.append(between).append({'-', option.letter});
    return text;
}

// What bash offers as the value of each flag: words, files or folders.
std::string bash_values() {
    std::string cases;
    for (const Option& option : options()) {
        std::string action;
        if (option.completes == Completes::file)
            action = "mapfile -t COMPREPLY < <(compgen -f -- \"$value\")";
        if (option.completes == Completes::directory)
            action = "mapfile -t COMPREPLY < <(compgen -d -- \"$value\")";
        if (!option.words.empty()) {
            action = "mapfile -t COMPREPLY < <(compgen -W '" + std::string(option.words) +
                     "' -- \"$value\")";
        }
        if (action.empty()) continue;
        cases += "    " + spellings(option, " | ") + ")\n        " + action + "\n        ;;\n";
    }
    return cases;
}

constexpr std::string_view bash_head =
    R"(# bash completion for ddrun, made by: ddrun --print-completion bash
_ddrun_value() { # FLAG BEGINNING
    local value=$2
    case $1 in
)";
constexpr std::string_view bash_middle = "    esac\n}\n\n";
constexpr std::string_view bash_tail = R"(
_ddrun() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word at=1
    COMPREPLY=()
    # Flags end at the first word that is neither a flag nor the value of one; '=' is a word of its own.
    while ((at < COMP_CWORD)); do
        word=${COMP_WORDS[at]}
        if [[ $word == -- ]]; then
            at=$((at + 1))
            break
        elif [[ $word != -* ]]; then
            break
        elif [[ ${COMP_WORDS[at + 1]} == = ]]; then
            at=$((at + 3))
        elif [[ $_ddrun_valued == *" $word "* ]]; then
            at=$((at + 2))
        else
            at=$((at + 1))
        fi
    done
    compopt -o filenames 2>/dev/null
    if ((at < COMP_CWORD)); then
        if declare -F _command_offset >/dev/null; then
            _command_offset "$at"
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
    elif [[ $current == = ]]; then
        _ddrun_value "$previous" ""
    elif [[ $previous == = ]]; then
        _ddrun_value "${COMP_WORDS[COMP_CWORD - 2]}" "$current"
    elif ((at > COMP_CWORD)); then
        _ddrun_value "$previous" "$current"
    elif [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$_ddrun_flags" -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current"; compgen -c -- "$current")
    fi
}

complete -F _ddrun ddrun
)";

// Brackets end a description, colons a field, quotes the word.
std::string zsh_text(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        if (c == '\'') {
            escaped += "'\\''";
            continue;
        }
        if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
        escaped += c;
    }
    return escaped;
}

std::string zsh_action(const Option& option) {
    if (option.completes == Completes::file) return "_files";
    if (option.completes == Completes::directory) return "_files -/";
    return option.words.empty() ? " " : "(" + std::string(option.words) + ")";
}

std::string zsh_line(const Option& option) {
    const bool valued = takes_value(option);
    const std::string many =
        option.shape == Shape::repeated || option.shape == Shape::counted ? "*" : "";
    std::string description = "[" + zsh_text(option.help) + "]";
    if (valued) description += ":" + zsh_text(option.metavar) + ":" + zsh_action(option);
    const std::string name = std::string("--").append(option.name).append(valued ? "=" : "");
    if (option.letter == 0) return "    '" + many + name + description + "' \\\n";
    const std::string letter = std::string{'-', option.letter} + (valued ? "+" : "");
    const std::string head = many.empty() ? "'(" + spellings(option, " ") + ")'" : "'*'";
    return "    " + head + "{" + letter + "," + name + "}'" + description + "' \\\n";
}

}  // namespace

std::string bash_completion() {
    std::string flags, valued = " ";
    for (const Option& option : options()) {
        if (is_refused(option)) continue;
        flags.append(flags.empty() ? "" : " ").append(spellings(option, " "));
        if (takes_value(option)) valued += spellings(option, " ") + " ";
    }
    std::string text(bash_head);
    text.append(bash_values()).append(bash_middle);
    text += "_ddrun_flags='" + flags + "'\n_ddrun_valued='" + valued + "'\n";
    return text.append(bash_tail);
}

std::string zsh_completion() {
    std::string text =
        "#compdef ddrun\n# zsh completion for ddrun, made by: ddrun --print-completion zsh\n"
        "_arguments -s -S -A '-*' \\\n";
    for (const Option& option : options()) {
        if (!is_refused(option)) text += zsh_line(option);
    }
    return text + "    '(-)1:program:_command_names -e' \\\n    '*::arguments:_normal'\n";
}

}  // namespace ddrun::launcher
