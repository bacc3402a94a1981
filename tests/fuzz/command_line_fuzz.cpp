#include "launcher/config/config.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

// Command line and variables from any bytes: words end at zero bytes, and a word that begins with
// byte 1 is a variable. Whatever is accepted must come back the same from --print-config.
using namespace ddrun;
using namespace ddrun::launcher;

namespace {

struct Input {
    std::vector<std::string> words;
    Variables environment;
};

Input cut(std::string_view bytes) {
    Input input;
    while (!bytes.empty()) {
        const std::size_t end = std::min(bytes.find('\0'), bytes.size());
        const std::string word(bytes.substr(0, end));
        bytes.remove_prefix(std::min(end + 1, bytes.size()));
        const std::size_t equals = word.find('=');
        if (!word.starts_with('\1'))
            input.words.push_back(word);
        else if (equals != word.npos)
            input.environment[word.substr(1, equals - 1)] = word.substr(equals + 1);
    }
    return input;
}

ConfigResult load(const Input& input, const std::string& file) {
    return load_config(input.words, input.environment,
                       [&](const std::string&, std::size_t) -> FileText {
                           return file.empty() ? FileText{{}, "no file"} : FileText{file, {}};
                       });
}

void require(bool condition) {
    if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input = cut({reinterpret_cast<const char*>(data), size});
    const ConfigResult result = load(input, {});
    if (const auto* error = std::get_if<UsageError>(&result)) {
        require(error->text.starts_with("ddrun: ") && error->text.ends_with("\n"));
    }
    const auto* job = std::get_if<JobConfig>(&result);
    if (job == nullptr) return 0;
    input.words.insert(input.words.begin(), "--print-config");
    input.environment["DDRUN_PRINT_CONFIG"] = "1";
    const ConfigResult printed = load(input, {});
    const auto* text = std::get_if<PrintAndExit>(&printed);
    if (text == nullptr) return 0;  // --print-config=0 followed
    const ConfigResult again = load({{"--config=x"}, {}}, text->text);
    require(std::holds_alternative<JobConfig>(again));
    require(std::get<JobConfig>(again).spec == job->spec);
    return 0;
}
