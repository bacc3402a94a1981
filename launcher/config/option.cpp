#include "launcher/config/option.hpp"

#include "launcher/config/codecs.hpp"

#include <algorithm>
#include <cctype>

namespace ddrun::launcher {

std::string_view title(Group group) {
    switch (group) {
        case Group::program:
            return "Program";
        case Group::size:
            return "Size";
        case Group::rendezvous:
            return "Rendezvous and addresses";
        case Group::failure:
            return "Failure and stopping";
        case Group::devices:
            return "Environment and devices";
        case Group::output:
            return "Output";
        case Group::about:
            return "About this call";
    }
    return {};
}

bool takes_value(const Option& option) {
    switch (option.shape) {
        case Shape::on_off:
        case Shape::counted:
            return false;
        case Shape::single:
        case Shape::list:
        case Shape::repeated:
            return true;
        case Shape::command:
            return option.name == "print-completion";
    }
    return false;
}

bool is_refused(const Option& option) {
    return option.codec.set == nullptr && option.shape != Shape::command;
}

std::string variable_name(std::string_view prefix, const Option& option) {
    std::string name(prefix);
    for (const char c : option.name) {
        name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return name;
}

bool has_variable(const Option& option) {
    return option.shape != Shape::command;
}

std::string form_of(const Option& option) {
    if (!option.form.empty() || option.codec.form == nullptr) return std::string(option.form);
    return option.codec.form();
}

std::string preset_of(const Option& option) {
    if (option.codec.get == nullptr) return {};
    const std::vector<std::string> texts = option.codec.get(Draft());
    return texts.empty() ? std::string() : texts.front();
}

values::Refusal codecs::check_label(std::string_view text) {
    constexpr std::size_t longest_label = 255;
    const bool visible = std::none_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (visible && !text.empty() && text.size() <= longest_label) return std::nullopt;
    return values::wrong_form;
}

}  // namespace ddrun::launcher
