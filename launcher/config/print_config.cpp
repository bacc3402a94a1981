#include "launcher/config/print_config.hpp"

#include "launcher/config/base64.hpp"
#include "launcher/config/help.hpp"
#include "launcher/config/option.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

constexpr std::size_t comment_column = 40;

bool is_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t length = lead < 0x80   ? 1
                                   : lead < 0xc2 ? 0
                                   : lead < 0xe0 ? 2
                                   : lead < 0xf0 ? 3
                                   : lead < 0xf5 ? 4
                                                 : 0;
        if (length == 0 || i + length > text.size()) return false;
        for (std::size_t j = 1; j < length; ++j) {
            if ((static_cast<unsigned char>(text[i + j]) & 0xc0) != 0x80) return false;
        }
        i += length;
    }
    return true;
}

std::string double_quoted(std::string_view text) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string yaml = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            yaml.append(1, '\\').append(1, c);
        } else if (c == '\n') {
            yaml += "\\n";
        } else if (byte < 0x20 || byte == 0x7f) {
            yaml.append("\\x").append(1, hex[byte >> 4]).append(1, hex[byte & 15]);
        } else {
            yaml += c;
        }
    }
    return yaml + "\"";
}

// Plain where no reader could take it for anything but this text.
std::string yaml_scalar(std::string_view text) {
    constexpr std::string_view safe =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=,";
    const bool plain = !text.empty() && text.front() != '-' && text.front() != '=' &&
                       text.front() != ',' && text.find_first_not_of(safe) == text.npos &&
                       text != "null" && text != "Null" && text != "NULL";
    if (plain) return std::string(text);
    if (!is_utf8(text)) return "!!binary " + encode_base64(text);
    return double_quoted(text);
}

class Printer {
  public:
    Printer(const Draft& draft, const Sources& sources) : draft_(draft), sources_(sources) {}

    std::string print() {
        text_ =
            "# " + version_line() + ": every value with its source; --config FILE takes it back\n";
        print_program();
        for (const Group group : groups) {
            for (const Option& option : options()) {
                if (option.group == group && option.in_job_file && !is_refused(option))
                    print(option);
            }
        }
        return std::move(text_);
    }

  private:
    void add(std::string line, std::string source) {
        line.resize(std::max(line.size() + 1, comment_column), ' ');
        // A path may hold a line break; a comment may not.
        std::replace_if(
            source.begin(), source.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
        text_ += line + "# " + source + "\n";
    }

    void print_program() {
        if (!sources_.given("program")) {
            add("# program: not given", "default");
            return;
        }
        const std::string source = sources_.place_of("program");
        add("program: " + yaml_scalar(draft_.program), source);
        if (draft_.arguments.empty()) {
            add("args: []", source);
            return;
        }
        add("args:", source);
        for (const std::string& argument : draft_.arguments) {
            text_ += "  - " + yaml_scalar(argument) + "\n";
        }
    }

    // What nobody gave stands in a comment: given back, it is still the default.
    void print(const Option& option) {
        const std::vector<std::string> texts = option.codec.get(draft_);
        const std::string name(option.name);
        const std::string source = sources_.place_of(name);
        if (texts.empty()) {
            add("# " + name + ": not set", source);
        } else if (!sources_.given(name)) {
            add("# " + name + ": " + yaml_scalar(texts.front()), source);
        } else if (option.shape != Shape::repeated) {
            add(name + ": " + yaml_scalar(texts.front()), source);
        } else if (option.joint == '=') {
            print_mapping(option, texts);
        } else {
            text_ += name + ":\n";
            for (const std::string& entry : texts) add("  - " + yaml_scalar(entry), source);
        }
    }

    void print_mapping(const Option& option, const std::vector<std::string>& texts) {
        const std::string name(option.name);
        text_ += name + ":\n";
        for (const std::string& entry : texts) {
            const std::size_t joint = entry.find(option.joint);
            const std::string key = entry.substr(0, joint);
            add("  " + yaml_scalar(key) + ": " + yaml_scalar(entry.substr(joint + 1)),
                sources_.place_of(name + " " + key));
        }
    }

    const Draft& draft_;
    const Sources& sources_;
    std::string text_;
};

}  // namespace

std::string print_config(const Draft& draft, const Sources& sources) {
    return Printer(draft, sources).print();
}

}  // namespace ddrun::launcher
