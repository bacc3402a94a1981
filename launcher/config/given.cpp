#include "launcher/config/given.hpp"

namespace ddrun::launcher {

std::string apply(const Given& given, Draft& draft) {
    const Option& option = *given.option;
    const std::string name = given.name();
    if (is_refused(option)) {
        return name + " is refused: " + std::string(option.difference);
    }
    if (given.text.empty()) {
        return name + ": the value is empty (was a variable unset?); give " + form_of(option);
    }
    const values::Refusal refusal = option.codec.set(draft, given.text);
    if (!refusal) return {};
    return name + ": " + values::quoted(given.text) + " is not " + form_of(option) +
           (refusal->empty() ? "" : "; " + *refusal);
}

}  // namespace ddrun::launcher
