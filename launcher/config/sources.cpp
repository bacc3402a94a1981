#include "launcher/config/config.hpp"

namespace ddrun::launcher {

void Sources::record(std::string_view option, std::string name, std::string place) {
    by_option_.insert_or_assign(std::string(option), Source{std::move(name), std::move(place)});
}

std::string Sources::name_of(std::string_view option) const {
    const auto found = by_option_.find(option);
    if (found != by_option_.end()) return found->second.name;
    return option == "program" ? "the program" : "--" + std::string(option);
}

std::string Sources::place_of(std::string_view option) const {
    const auto found = by_option_.find(option);
    return found != by_option_.end() ? found->second.place : "default";
}

bool Sources::given(std::string_view option) const {
    return by_option_.contains(option);
}

}  // namespace ddrun::launcher
