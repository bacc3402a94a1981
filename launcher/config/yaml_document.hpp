#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

// The one document of a text, with yaml-cpp's weak spots covered: it takes the end of the text for
// the end of an open quote, ignores what follows a document, and finds endless documents in ",a".
namespace ddrun::launcher {

// Null for a text without content. Throws YAML::Exception, with the place, for anything that is not
// exactly one document.
[[nodiscard]] YAML::Node load_yaml_document(const std::string& text);

}  // namespace ddrun::launcher
