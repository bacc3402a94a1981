#include "launcher/config/variables.hpp"

#include "launcher/config/suggest.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

constexpr std::string_view own_prefix = "DDRUN_";
constexpr std::string_view torchrun_prefix = "PET_";
// Of jobs of several nodes; a job script may set them for one node too.
constexpr std::string_view used_elsewhere[] = {"DDRUN_SECRET", "DDRUN_SECRET_FILE"};

// Every DDRUN_ name that a worker can find in its environment.
std::vector<std::string> worker_names() {
    WorkerEnv env;
    env.agent_socket = env.error_file = env.log_dir = env.incarnation = env.node_name = "x";
    std::vector<std::string> names;
    for (const auto& [name, value] : to_variables(env)) {
        if (name.starts_with(own_prefix)) names.push_back(name);
    }
    return names;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

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

class Reader {
  public:
    explicit Reader(const Variables& environment)
        : environment_(environment),
          worker_names_(worker_names()),
          inside_worker_(environment.contains(std::string(variable::worker_tag))) {}

    FromVariables read() {
        for (const Option& option : options()) {
            if (!option.variable.empty()) take(option, std::string(option.variable));
        }
        for (const Option& option : options()) {
            if (has_variable(option) && option.torchrun != Torchrun::absent) {
                take_known(option, variable_name(torchrun_prefix, option));
            }
        }
        for (const Option& option : options()) {
            if (has_variable(option)) take_known(option, variable_name(own_prefix, option));
        }
        for (const auto& [name, value] : environment_) warn_if_unknown(name);
        return std::move(result_);
    }

  private:
    void take_known(const Option& option, std::string name) {
        if (!inside_worker_ || !contains(worker_names_, name)) take(option, name);
        known_.push_back(std::move(name));
    }

    void take(const Option& option, const std::string& name) {
        const auto found = environment_.find(name);
        if (found == environment_.end()) return;
        if (option.shape != Shape::repeated) {
            result_.given.push_back({&option, found->second, name});
            return;
        }
        for (std::string& line : split_lines(found->second)) {
            result_.given.push_back({&option, std::move(line), name});
        }
    }

    void warn_if_unknown(const std::string& name) {
        const bool ours = name.starts_with(own_prefix);
        if (!ours && !name.starts_with(torchrun_prefix)) return;
        if (contains(known_, name) || contains(worker_names_, name)) return;
        if (std::find(std::begin(used_elsewhere), std::end(used_elsewhere), name) !=
            std::end(used_elsewhere)) {
            return;
        }
        // Compared without the prefix, which would make any two short names look alike.
        const std::string_view prefix = ours ? own_prefix : torchrun_prefix;
        std::vector<std::string_view> names;
        for (const std::string_view known : known_) {
            if (known.starts_with(prefix)) names.push_back(known.substr(prefix.size()));
        }
        const auto meant = nearest(std::string_view(name).substr(prefix.size()), names);
        std::string words = name + " is not a variable of ddrun";
        if (meant) words.append("; did you mean ").append(prefix).append(*meant).append("?");
        if (meant || ours) result_.warnings.push_back(std::move(words));
    }

    const Variables& environment_;
    std::vector<std::string> worker_names_;
    bool inside_worker_;
    std::vector<std::string> known_;
    FromVariables result_;
};

}  // namespace

FromVariables read_variables(const Variables& environment) {
    return Reader(environment).read();
}

}  // namespace ddrun::launcher
