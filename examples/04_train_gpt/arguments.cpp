#include "examples/04_train_gpt/arguments.hpp"

#include "examples/04_train_gpt/setup_error.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace train_gpt {
namespace {

struct Flag {
    std::string_view name;
    std::string_view value_name;  // empty: the flag stands alone
    std::string_view meaning;
    std::function<void(Arguments&, std::string_view)> set;
    std::function<std::string(const Arguments&)> show;
};

template <typename Number>
std::string to_words(Number number) {
    std::ostringstream words;
    words << number;
    return words.str();
}

// A number within [least, most], stored through `place`.
template <typename Number, typename Place>
Flag number_flag(std::string_view name, Number least, Number most, std::string_view meaning,
                 Place place) {
    const auto set = [=](Arguments& arguments, std::string_view value) {
        Number number{};
        const char* end = value.data() + value.size();
        const auto [stop, error] = std::from_chars(value.data(), end, number);
        // Written so that a NaN is outside.
        const bool inside = number >= least && number <= most;
        if (error != std::errc{} || stop != end || !inside) {
            throw SetupError(std::string(name) + " " + std::string(value) +
                             ": give a number from " + to_words(least) + " to " + to_words(most));
        }
        place(arguments) = number;
    };
    const auto show = [=](const Arguments& arguments) {
        Arguments copy = arguments;
        return to_words(place(copy));
    };
    return {name, "N", meaning, set, show};
}

template <typename Place>
Flag path_flag(std::string_view name, std::string_view value_name, std::string_view meaning,
               std::string shown, Place place) {
    const auto set = [=](Arguments& arguments, std::string_view value) {
        if (value.empty()) throw SetupError(std::string(name) + ": give a path");
        place(arguments) = std::filesystem::path(value);
    };
    return {name, value_name, meaning, set, [=](const Arguments&) { return shown; }};
}

template <typename Place>
Flag switch_flag(std::string_view name, std::string_view meaning, Place place) {
    return {name, "", meaning,
            [=](Arguments& arguments, std::string_view) { place(arguments) = true; },
            [](const Arguments&) { return std::string("off"); }};
}

template <auto member>
constexpr auto field = [](Arguments& arguments) -> auto& {
    return arguments.*member;
};

template <auto member>
constexpr auto model_field = [](Arguments& arguments) -> auto& {
    return arguments.model.*member;
};

std::vector<Flag> make_flags() {
    using A = Arguments;
    using M = ModelConfig;
    constexpr auto most_steps = std::uint64_t{1'000'000'000};
    const Arguments defaults;
    return {
        path_flag("--data", "PATH", "text to learn: a file, or all files of a folder",
                  defaults.data.string(), field<&A::data>),
        number_flag<std::uint64_t>("--steps", 1, most_steps, "training steps in all",
                                   field<&A::steps>),
        number_flag<std::uint64_t>("--global-batch", 1, 65536,
                                   "samples per step, divided among the ranks",
                                   field<&A::global_batch>),
        number_flag("--context", 1, 4096, "bytes the model sees at once", model_field<&M::context>),
        number_flag("--layers", 1, 128, "transformer blocks", model_field<&M::layers>),
        number_flag("--heads", 1, 128, "attention heads", model_field<&M::heads>),
        number_flag("--width", 1, 8192, "numbers per token; a multiple of --heads",
                    model_field<&M::width>),
        number_flag("--learning-rate", 1e-9, 10.0, "its peak, after the warm-up",
                    field<&A::learning_rate>),
        number_flag<std::uint64_t>("--warmup", 0, most_steps, "steps until the peak",
                                   field<&A::warmup_steps>),
        number_flag("--weight-decay", 0.0, 10.0, "of matrices, per unit of learning rate",
                    field<&A::weight_decay>),
        number_flag("--clip", 1e-9, 1e9, "longest gradient that is applied unscaled",
                    field<&A::clip>),
        number_flag<std::uint64_t>("--seed", 0, ~std::uint64_t{0}, "of start values and samples",
                                   field<&A::seed>),
        path_flag("--checkpoint-dir", "DIR", "where the newest two checkpoints are kept",
                  defaults.checkpoint_folder.string(), field<&A::checkpoint_folder>),
        number_flag<std::uint64_t>("--checkpoint-every", 1, most_steps, "steps between two of them",
                                   field<&A::checkpoint_every>),
        switch_flag("--fresh", "delete the checkpoints there and begin at step 0",
                    field<&A::fresh>),
        path_flag("--loss-file", "FILE", "write the loss curve there: \"step loss\" per line",
                  "none", field<&A::loss_file>),
        number_flag<std::uint64_t>("--log-every", 1, most_steps,
                                   "steps between two lines of progress", field<&A::log_every>),
        number_flag("--sample", 0, 1'000'000, "bytes of text to generate at the end",
                    field<&A::sample_bytes>),
        number_flag("--temperature", 0.01, 100.0, "of that text; low is careful",
                    field<&A::temperature>),
        switch_flag("--help", "print this and exit", field<&A::help>),
    };
}

const std::vector<Flag>& all_flags() {
    static const auto flags = make_flags();
    return flags;
}

const Flag& find_flag(std::string_view name) {
    for (const Flag& flag : all_flags()) {
        if (flag.name == name) return flag;
    }
    throw SetupError("unknown argument " + std::string(name) + ": --help lists all of them");
}

void check_together(const Arguments& arguments) {
    if (arguments.model.width % arguments.model.heads != 0) {
        throw SetupError("--width " + to_words(arguments.model.width) +
                         " is not a multiple of --heads " + to_words(arguments.model.heads));
    }
    if (arguments.warmup_steps > arguments.steps) {
        throw SetupError("--warmup " + to_words(arguments.warmup_steps) +
                         " is longer than --steps " + to_words(arguments.steps));
    }
}

}  // namespace

Arguments parse_arguments(std::span<const char* const> words) {
    Arguments arguments;
    for (std::size_t index = 0; index < words.size(); ++index) {
        const std::string_view word = words[index];
        const std::size_t equals = word.find('=');
        const Flag& flag = find_flag(word.substr(0, equals));
        const bool attached = equals != std::string_view::npos;
        if (flag.value_name.empty() && attached) {
            throw SetupError(std::string(flag.name) + " takes no value");
        }
        std::string_view value;
        if (attached) {
            value = word.substr(equals + 1);
        } else if (!flag.value_name.empty()) {
            if (++index == words.size()) {
                throw SetupError(std::string(flag.name) + " needs a value");
            }
            value = words[index];
        }
        flag.set(arguments, value);
    }
    check_together(arguments);
    return arguments;
}

std::string usage_text() {
    std::ostringstream text;
    text << "Trains a small GPT on text. Alone it is a world of one; under ddrun the ranks share "
            "the\n"
            "work. A killed or stopped run goes on from its newest checkpoint.\n\n";
    for (const Flag& flag : all_flags()) {
        std::string left = "  " + std::string(flag.name) + " " + std::string(flag.value_name);
        left.resize(std::max<std::size_t>(left.size(), 26), ' ');
        text << left << flag.meaning;
        if (!flag.value_name.empty()) text << " (" << flag.show(Arguments{}) << ")";
        text << "\n";
    }
    return text.str();
}

}  // namespace train_gpt
