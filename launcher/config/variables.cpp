#include "launcher/config/variables.hpp"

#include "launcher/config/suggest.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

constexpr std::string_view own_prefix = "DDRUN_";
constexpr std::string_view torchrun_prefix = "PET_";
// Of jobs of several nodes; a job script may set them for one node too.
constexpr std::string_view used_elsewhere[] = {"DDRUN_SECRET", "DDRUN_SECRET_FILE"};

// An empty text is one empty line; a line break at the end ends nothing.
std::vector<std::string> split_lines(std::string_view text) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    std::vector<std::string> lines(1);
    for (const char c : text) {
        if (c == '\n')
            lines.emplace_back();
        else
            lines.back() += c;
    }
    return lines;
}

bool is_read(const Option& option, std::string_view prefix) {
    return has_variable(option) && (prefix == own_prefix || option.torchrun != Torchrun::absent);
}

const Option* option_of(std::string_view prefix, std::string_view name) {
    for (const Option& option : options()) {
        if (is_read(option, prefix) && variable_name(prefix, option) == name) return &option;
    }
    return nullptr;
}

class Reader {
  public:
    explicit Reader(const Variables& environment)
        : environment_(environment),
          inside_worker_(environment.contains(std::string(variable::worker_tag))) {}

    FromVariables read() {
        for (const Option& option : options()) {
            const auto found = environment_.find(std::string(option.variable));
            if (found != environment_.end() && !option.variable.empty()) {
                take(option, found->first, found->second);
            }
        }
        read_prefixed(torchrun_prefix);
        read_prefixed(own_prefix);
        return std::move(result_);
    }

  private:
    // Goes by what is there: most environments hold nothing of ours.
    void read_prefixed(std::string_view prefix) {
        for (auto at = environment_.lower_bound(std::string(prefix));
             at != environment_.end() && at->first.starts_with(prefix); ++at) {
            const Option* option = option_of(prefix, at->first);
            const bool of_worker = is_worker_variable(at->first);
            if (option != nullptr && !(of_worker && inside_worker_)) {
                take(*option, at->first, at->second);
            } else if (!of_worker) {
                warn_about(prefix, at->first);
            }
        }
    }

    void take(const Option& option, const std::string& name, const std::string& text) {
        if (option.shape != Shape::repeated) {
            result_.given.push_back({&option, text, name});
            return;
        }
        for (std::string& line : split_lines(text)) {
            result_.given.push_back({&option, std::move(line), name});
        }
    }

    void warn_about(std::string_view prefix, const std::string& name) {
        if (std::find(std::begin(used_elsewhere), std::end(used_elsewhere), name) !=
            std::end(used_elsewhere)) {
            return;
        }
        std::vector<std::string> names;
        for (const Option& option : options()) {
            if (is_read(option, prefix)) names.push_back(variable_name({}, option));
        }
        // Compared without the prefix, which would make any two short names look alike.
        const auto meant = nearest(std::string_view(name).substr(prefix.size()),
                                   std::vector<std::string_view>(names.begin(), names.end()));
        std::string words = name + " is not a variable of ddrun";
        if (meant) words.append("; did you mean ").append(prefix).append(*meant).append("?");
        // PET_ may belong to somebody else; DDRUN_ is ours.
        if (meant || prefix == own_prefix) result_.warnings.push_back(std::move(words));
    }

    const Variables& environment_;
    bool inside_worker_;
    FromVariables result_;
};

}  // namespace

FromVariables read_variables(const Variables& environment) {
    return Reader(environment).read();
}

}  // namespace ddrun::launcher
