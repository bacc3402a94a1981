#include "launcher/config/config.hpp"

#include "launcher/config/assembly.hpp"
#include "launcher/config/command_line.hpp"
#include "launcher/config/completion.hpp"
#include "launcher/config/help.hpp"
#include "launcher/config/job_file.hpp"
#include "launcher/config/print_config.hpp"
#include "launcher/config/variables.hpp"
#include "launcher/environment/placement.hpp"
#include "launcher/environment/scheduler.hpp"

#include <algorithm>

namespace ddrun::launcher {
namespace {

// Schedulers kill 30 s after the request to stop; the summary wants to be written before that.
constexpr std::string_view shutdown_timeout_under_scheduler = "25s";
constexpr std::size_t most_problems_shown = 10;
constexpr std::size_t largest_hosts_file = 64u << 10;

UsageError usage_error(const std::vector<std::string>& problems) {
    std::string text;
    for (std::size_t i = 0; i < std::min(problems.size(), most_problems_shown); ++i) {
        text += "ddrun: " + problems[i] + "\n";
    }
    if (problems.size() > most_problems_shown) {
        text += "ddrun: and " + std::to_string(problems.size() - most_problems_shown) + " more\n";
    }
    return {text + "Try 'ddrun --help'.\n"};
}

ConfigResult run_command(const Option& command, const std::string& text) {
    if (command.name == "version") return PrintAndExit{version_text(), {}};
    if (command.name == "make-secret") return MakeSecret{};
    if (command.name == "print-completion") {
        if (text == "bash") return PrintAndExit{bash_completion(), {}};
        if (text == "zsh") return PrintAndExit{zsh_completion(), {}};
        return usage_error(
            {"--print-completion: " + values::quoted(text) + " is not one of bash, zsh"});
    }
    if (text.empty()) return PrintAndExit{short_help(), {}};
    if (text == "all") return PrintAndExit{full_help(), {}};
    return usage_error(
        {"--help: " + values::quoted(text) + " is not all, the only value it takes"});
}

Lookup lookup_in(const Variables& environment) {
    return [&](std::string_view name) -> std::optional<std::string> {
        const auto found = environment.find(std::string(name));
        if (found == environment.end()) return std::nullopt;
        return found->second;
    };
}

std::vector<Given> from_scheduler(const Lookup& lookup) {
    const auto scheduler = find_scheduler(lookup);
    if (!scheduler) return {};
    std::string place(scheduler->name);
    place.append(" (").append(scheduler->variable).append(" is set)");
    return {
        {find_option("shutdown-timeout"), std::string(shutdown_timeout_under_scheduler), place}};
}

// A pod with a stable name finds it in the hosts file that its kubelet wrote.
std::string own_name_in_pod(const Lookup& lookup, const ReadFile& read) {
    const auto host_name = lookup("HOSTNAME");
    if (!host_name || !lookup("JOB_COMPLETION_INDEX")) return {};
    return full_name_in_hosts_file(read("/etc/hosts", largest_hosts_file).text, *host_name);
}

// The last mention, or nothing.
const Given* find_config_file(const std::vector<Given>& variables,
                              const std::vector<Given>& flags) {
    const Given* last = nullptr;
    for (const std::vector<Given>* source : {&variables, &flags}) {
        for (const Given& given : *source) {
            if (given.option->name == "config") last = &given;
        }
    }
    return last;
}

void add_job_file(const Given& config, const ReadFile& read, Assembly& assembly) {
    if (config.text.empty()) return;  // reported with the flag itself
    const FileText file = read(config.text, largest_job_file);
    if (!file.problem.empty()) {
        assembly.add_problems(
            {config.name() + ": cannot read " + values::quoted(config.text) + ": " + file.problem});
        return;
    }
    const JobFile job = parse_job_file(config.text, file.text);
    assembly.add_problems(job.problems);
    assembly.add(job.given);
    if (job.program)
        assembly.set_program(job.program->text, job.program->name(), job.program->place);
    if (job.arguments) assembly.set_arguments(*job.arguments);
}

ConfigResult finish(Assembly& assembly, std::vector<std::string> warnings) {
    const bool has_program = assembly.sources().given("program");
    // Where something else is wrong, the program may well have been in it.
    if (!has_program && !assembly.draft().print_config && assembly.problems().empty()) {
        assembly.add_problems({"no program given; usage: ddrun [FLAGS] PROGRAM [ARGUMENTS]"});
    }
    assembly.settle();
    if (!assembly.problems().empty()) return usage_error(assembly.problems());
    if (assembly.draft().print_config) {
        return PrintAndExit{print_config(assembly.draft(), assembly.sources()),
                            std::move(warnings)};
    }
    if (!assembly.advice().empty()) warnings.push_back(assembly.advice());
    return JobConfig{assembly.spec(), assembly.sources(), assembly.draft().dry_run,
                     std::move(warnings), assembly.notes()};
}

}  // namespace

ConfigResult load_config(const std::vector<std::string>& arguments, const Variables& environment,
                         const ReadFile& read) {
    CommandLine line = scan_command_line(arguments);
    if (!line.problem.empty()) return usage_error({line.problem});
    if (line.command != nullptr) return run_command(*line.command, line.command_text);

    FromVariables variables = read_variables(environment);
    Assembly assembly;
    const Lookup lookup = lookup_in(environment);
    assembly.add(from_scheduler(lookup));
    assembly.add(read_placement(lookup, own_name_in_pod(lookup, read)));
    if (const Given* config = find_config_file(variables.given, line.given)) {
        add_job_file(*config, read, assembly);
    }
    assembly.add(variables.given);
    assembly.add(line.given);
    if (line.program) {
        assembly.set_program(std::move(*line.program), "the program", "command line");
        assembly.set_arguments(std::move(line.arguments));
    }
    return finish(assembly, std::move(variables.warnings));
}

}  // namespace ddrun::launcher
