#include "launcher/config/config.hpp"
#include "launcher/core/validate.hpp"
#include "launcher/keeper/keeper.hpp"
#include "launcher/runtime/dry_run.hpp"
#include "launcher/runtime/job.hpp"
#include "launcher/runtime/line_prefix.hpp"
#include "launcher/runtime/machine_facts.hpp"
#include "launcher/runtime/master_port.hpp"
#include "launcher/runtime/process_setup.hpp"
#include "launcher/runtime/program_lookup.hpp"
#include "launcher/runtime/refusal.hpp"
#include "launcher/runtime/remote_job.hpp"
#include "launcher/runtime/run_agent.hpp"
#include "launcher/runtime/run_logs.hpp"
#include "launcher/runtime/status_file.hpp"
#include "launcher/runtime/termination_message.hpp"
#include "rendezvous/protocol/exit_status.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

using namespace ddrun;
using namespace ddrun::launcher;

namespace {

// No stream library on the way to the first worker: its start-up costs more than a fork.
// 0, or the error number; a reader that has had enough is none.
int print(int descriptor, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
        if (written >= 0) {
            done += static_cast<std::size_t>(written);
        } else if (errno == EAGAIN) {  // somebody else's flag on a pipe that we share
            pollfd room{descriptor, POLLOUT, 0};
            ::poll(&room, 1, -1);
        } else if (errno != EINTR) {
            return errno == EPIPE ? 0 : errno;
        }
    }
    return 0;
}

// What was asked for is the whole purpose of this run, so half of it is a failure.
int print_and_succeed(const std::string& text) {
    if (const int error_number = print(STDOUT_FILENO, text); error_number != 0) {
        throw std::system_error(error_number, std::generic_category(), "write to stdout");
    }
    return exit_code::success;
}

int end_with(int code, const std::string& text) {
    print(STDERR_FILENO, text);
    leave_termination_message(own_environment(), text, code);
    return code;
}

void print_lines(const std::vector<std::string>& lines, const char* before) {
    for (const std::string& line : lines) {
        print(STDERR_FILENO, before + line + "\n");
    }
}

void say_warnings(const JobSpec& spec, const std::vector<std::string>& warnings,
                  const std::vector<std::string>& notes) {
    if (spec.verbosity >= 0) {
        print_lines(warnings, "ddrun: warning: ");
    }
    if (spec.verbosity > 0) {
        print_lines(notes, "ddrun: ");
    }
}

void check_ranks(const Job& job, const Sources& sources) {
    const auto name_of = [&](std::string_view option) { return sources.name_of(option); };
    std::string text;
    for (const std::string& problem : validate_ranks(job.spec, job.slots, name_of)) {
        text += (text.empty() ? "" : "\nddrun: ") + problem;
    }
    if (!text.empty()) {
        throw Refusal(exit_code::usage, text);
    }
}

void check_line_prefix(const JobSpec& spec, const Sources& sources) {
    if (const auto problem = line_prefix_problem(spec)) {
        throw Refusal(exit_code::usage,
                      sources.name_of("log-line-prefix-template") + ": " + *problem);
    }
}

void check_status_file(const JobSpec& spec, const Sources& sources) {
    const auto problem = spec.status_file ? status_file_problem(*spec.status_file) : std::nullopt;
    if (problem) {
        throw Refusal(exit_code::usage, sources.name_of("status-file") + ": " + *problem);
    }
}

// The same --master-port is given on all nodes, of which several may be on one machine: it belongs
// to the one that asks for the first place.
MasterPort reserve_master_port(const JobSpec& spec) {
    if (has_several_nodes(spec) && spec.master_port && spec.node_rank.value_or(0) > 0) {
        return MasterPort::unreserved(*spec.master_port);
    }
    return MasterPort::reserve(spec.master_port, master_address(spec));
}

// Everything this process owns, in the order in which it comes to be; it goes in the reverse order.
int run_job(JobConfig config, const Variables& environment) {
    check_line_prefix(config.spec, config.sources);
    const InheritedState inherited = prepare_process();
    MachineFacts facts = read_machine_facts(config.spec, environment);
    const Job job =
        decide_job(std::move(config.spec), std::move(facts), inherited, config.warnings);
    check_ranks(job, config.sources);
    const std::optional<RemoteJob> remote =
        decide_remote_job(job.spec, environment, config.warnings);
    if (!job.facts.python.empty()) {
        config.notes.push_back("scripts run under " + job.facts.python);
    }
    say_warnings(job.spec, config.warnings, config.notes);
    if (config.dry_run) {
        return print_and_succeed(dry_run_text(job));
    }
    require_program(job.spec, job.facts);
    check_status_file(job.spec, config.sources);
    RunLogs logs(job.spec, job.facts.node_name, job.job_id, job.incarnation);
    const MasterPort port = reserve_master_port(job.spec);

    block_signals(watched_signals(job.spec.stop_signals, inherited));
    const keeper::KeeperProcess keeper =
        keeper::start_keeper({inherited.hangup_ignored, inherited.nofile_soft});
    return run_agent(job, remote, logs, port, keeper);
}

int run(std::vector<std::string> arguments) {
    const Variables environment = own_environment();
    ConfigResult result = load_config(arguments, environment);
    if (const auto* text = std::get_if<PrintAndExit>(&result)) {
        print_lines(text->warnings, "ddrun: warning: ");
        return print_and_succeed(text->text);
    }
    if (std::holds_alternative<MakeSecret>(result)) {
        return print_and_succeed(make_user_secret(environment));
    }
    if (const auto* error = std::get_if<UsageError>(&result)) {
        return end_with(exit_code::usage, error->text);
    }
    return run_job(std::get<JobConfig>(std::move(result)), environment);
}

}  // namespace

int main(int argc, char** argv) {
    open_missing_standard_streams();
    try {
        return run({argv + std::min(argc, 1), argv + argc});
    } catch (const Refusal& refusal) {
        return end_with(refusal.exit_code, std::string("ddrun: ") + refusal.what() + "\n");
    } catch (const std::system_error& error) {
        return end_with(exit_code::system_refused,
                        std::string("ddrun: the system refused: ") + error.what() + "\n");
    } catch (const std::exception& error) {
        return end_with(exit_code::internal_error,
                        std::string("ddrun: internal error: ") + error.what() + "\n");
    }
}
