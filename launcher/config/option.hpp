#pragma once

#include "launcher/config/draft.hpp"
#include "launcher/config/values.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Every option of ddrun stands once, in options.cpp. Command line, variables, job file, --help,
// --print-config, completions, suggestions, and (through tests) man page and README follow from it.
namespace ddrun::launcher {

enum class Shape {
    on_off,    // a flag alone means yes; a value only behind '='
    counted,   // a flag alone counts one up
    single,    // one value
    list,      // one value, comma-separated; a sequence in a job file
    repeated,  // one entry per mention; lines in a variable; a sequence or mapping in a job file
    command,   // acts at once and ends ddrun: --help, --version, --print-completion
};

enum class Group { program, size, rendezvous, failure, devices, output, about };
inline constexpr Group groups[] = {Group::program, Group::size,   Group::rendezvous, Group::failure,
                                   Group::devices, Group::output, Group::about};
[[nodiscard]] std::string_view title(Group group);

enum class Torchrun { absent, same, better, refused };  // beside torchrun's flag of the same name

enum class Completes { nothing, words, file, directory };

struct Codec {
    values::Refusal (*set)(Draft&, std::string_view text) = nullptr;
    // As `set` takes it; nothing where the option is not set. Repeated options: one text per entry.
    std::vector<std::string> (*get)(const Draft&) = nullptr;
    std::string (*form)() = nullptr;  // what would be right: "a whole number from 0 to 3"
};

struct Option {
    std::string_view name;  // long, without dashes, words joined by '-'
    char letter = 0;        // 'r' for -r
    Group group = Group::about;
    Shape shape = Shape::single;
    std::string_view metavar = {};  // of the value: "N|auto|gpu|cpu"
    std::string_view help = {};     // at most 60 characters
    std::string_view more = {};     // for the man page: whole sentences, after `help`
    Codec codec = {};
    std::string_view form = {};   // instead of the codec's
    std::string_view words = {};  // complete set or typical values, for completion, space-separated
    Completes completes = Completes::nothing;
    char joint = 0;  // repeated options as a mapping in a job file: between key and value
    Torchrun torchrun = Torchrun::absent;
    std::string_view difference = {};  // beside torchrun: how better, or why refused
    std::string_view no_effect = {};   // why the value changes nothing here; said at -v
    std::string_view variable = {};    // another variable of torchrun's, below PET_*
    bool featured = false;             // shown by the short --help
    bool in_job_file = true;
};

[[nodiscard]] std::span<const Option> options();
[[nodiscard]] const Option* find_option(std::string_view name);  // long name, '-' or '_'
[[nodiscard]] const Option* find_option(char letter);

[[nodiscard]] bool takes_value(const Option& option);
[[nodiscard]] bool is_refused(const Option& option);
// "DDRUN_NPROC_PER_NODE" for prefix "DDRUN_".
[[nodiscard]] std::string variable_name(std::string_view prefix, const Option& option);
[[nodiscard]] bool has_variable(const Option& option);
[[nodiscard]] std::string form_of(const Option& option);
// The default as it would be written; empty: not set.
[[nodiscard]] std::string preset_of(const Option& option);

}  // namespace ddrun::launcher
