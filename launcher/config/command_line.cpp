#include "launcher/config/command_line.hpp"

#include "launcher/config/suggest.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

constexpr std::string_view other_launchers[] = {"n", "np", "c", "nprocs",
                                                "num-workers"};  // all: workers here

bool looks_like_flag(std::string_view token) {
    return token.size() >= 2 && token[0] == '-' && (token[1] < '0' || token[1] > '9');
}

std::string canonical(std::string_view name) {
    std::string text(name);
    for (char& c : text) {
        if (c == '_') c = '-';
    }
    return text;
}

std::optional<std::string_view> meant_option(std::string_view name) {
    for (const std::string_view foreign : other_launchers) {
        if (name == foreign) return "nproc-per-node";
    }
    std::vector<std::string_view> names;
    for (const Option& option : options()) names.push_back(option.name);
    return nearest(canonical(name), names);
}

// `token` with its dashes, without a value.
std::string unknown_flag(std::string_view token) {
    std::string text = "unknown flag " + values::quoted(token);
    const std::string_view name =
        token.substr(std::min(token.find_first_not_of('-'), token.size()));
    if (const auto meant = meant_option(name)) {
        text.append("; did you mean --").append(*meant).append("?");
    } else {
        text += "; ddrun --help=all lists the flags";
    }
    return text + " (flags of the program go behind its name)";
}

class Scanner {
  public:
    explicit Scanner(const std::vector<std::string>& tokens) : tokens_(tokens) {}

    CommandLine scan() {
        while (next_ < tokens_.size() && !over()) {
            const std::string& token = tokens_[next_++];
            if (token == "--") return take_program();
            if (token.size() < 2 || token[0] != '-') {
                --next_;
                return take_program();
            }
            if (token[1] == '-')
                take_long(token);
            else
                take_letters(token);
        }
        return std::move(line_);
    }

  private:
    [[nodiscard]] bool over() const { return line_.command != nullptr || !line_.problem.empty(); }

    CommandLine take_program() {
        if (next_ < tokens_.size()) {
            line_.program = tokens_[next_++];
            line_.arguments.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(next_),
                                   tokens_.end());
        }
        return std::move(line_);
    }

    void take_long(std::string_view token) {
        const std::size_t equals = token.find('=');
        const std::string_view name = token.substr(0, equals);
        const Option* option = find_option(name.substr(2));
        if (option == nullptr) {
            line_.problem = unknown_flag(name);
            return;
        }
        std::optional<std::string> value;
        if (equals != token.npos) value = token.substr(equals + 1);
        take(*option, std::string(name), std::move(value));
    }

    // "-r3", "-r=3", "-r 3", "-vv", "-mv".
    void take_letters(std::string_view token) {
        const std::string_view name = token.substr(0, token.find('='));
        const bool long_name_with_one_dash =
            name.size() > 2 && find_option(name.substr(1)) != nullptr;
        for (std::size_t i = 1; i < token.size() && !over(); ++i) {
            const Option* option = find_option(token[i]);
            if (option == nullptr || long_name_with_one_dash) {
                line_.problem = unknown_flag(name);
                return;
            }
            std::string_view rest = token.substr(i + 1);
            std::optional<std::string> value;
            const bool explicit_value = rest.starts_with('=');
            if (explicit_value) rest.remove_prefix(1);
            if (explicit_value || (takes_value(*option) && !rest.empty())) {
                value = rest;
                i = token.size();
            }
            take(*option, std::string{'-', option->letter}, std::move(value));
        }
    }

    void take(const Option& option, std::string where, std::optional<std::string> value) {
        if (!value && takes_value(option)) {
            value = following_value(option, where);
            if (!value) return;
        }
        if (option.shape == Shape::command) {
            line_.command = &option;
            line_.command_text = value.value_or("");
            return;
        }
        if (option.shape == Shape::counted) {
            mentions_ = value ? 0 : mentions_ + 1;
            if (!value) value = std::to_string(mentions_);
        }
        line_.given.push_back({&option, value.value_or("true"), std::move(where)});
    }

    std::optional<std::string> following_value(const Option& option, const std::string& where) {
        const std::string form = form_of(option);
        const std::string wanted = form.empty() ? std::string(option.metavar) : form;
        if (next_ == tokens_.size()) {
            line_.problem = where + " needs a value: " + wanted;
        } else if (looks_like_flag(tokens_[next_])) {
            line_.problem = where + " needs a value: " + wanted + "; " +
                            values::quoted(tokens_[next_]) +
                            " looks like a flag (if it is the value, join them with '=')";
        } else {
            return tokens_[next_++];
        }
        return std::nullopt;
    }

    const std::vector<std::string>& tokens_;
    std::size_t next_ = 0;
    int mentions_ = 0;  // of -v
    CommandLine line_;
};

}  // namespace

CommandLine scan_command_line(const std::vector<std::string>& arguments) {
    return Scanner(arguments).scan();
}

}  // namespace ddrun::launcher
