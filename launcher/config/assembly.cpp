#include "launcher/config/assembly.hpp"

#include "launcher/core/validate.hpp"

namespace ddrun::launcher {
namespace {

std::string name_before_joint(const Given& given) {
    return given.text.substr(0, given.text.find(given.option->joint));
}

// What a source speaks of: the option, or one variable of --env.
std::string subject(const Given& given) {
    const std::string option(given.option->name);
    return given.option->joint == '=' ? option + " " + name_before_joint(given) : option;
}

}  // namespace

void Assembly::add(std::span<const Given> source) {
    for (const Given& given : source) {
        std::string problem = apply(given, draft_);
        if (!problem.empty()) {
            problems_.push_back(std::move(problem));
            continue;
        }
        sources_.record(given.option->name, given.name(), given.place);
        sources_.record(subject(given), given.name(), given.place);
        taken_.push_back(given);
    }
}

void Assembly::add(const Placement& placement) {
    placement_ = placement;
    std::vector<Given> values;
    for (const Placement::Value& value : placement.values) {
        values.push_back({find_option(value.option), value.text,
                          placement.scheduler + " (" + value.variable + ")"});
    }
    add(values);
}

void Assembly::set_program(std::string program, std::string name, std::string place) {
    if (program.empty()) problems_.push_back(name + ": the program's name is empty");
    draft_.program = std::move(program);
    draft_.arguments.clear();
    sources_.record("program", std::move(name), std::move(place));
}

void Assembly::set_arguments(std::vector<std::string> arguments) {
    draft_.arguments = std::move(arguments);
}

void Assembly::add_problems(const std::vector<std::string>& problems) {
    problems_.insert(problems_.end(), problems.begin(), problems.end());
}

void Assembly::settle() {
    settle_placement();
    spec_ = draft_;
    settle_kind();
    settle_addresses();
    settle_times();
    if (!problems_.empty()) return;
    add_problems(
        validate(spec_, [this](std::string_view option) { return sources_.name_of(option); }));
}

// By the scheduler, and by nobody who counts more.
bool Assembly::is_placed(std::string_view option) const {
    return !placement_.scheduler.empty() &&
           sources_.place_of(option).starts_with(placement_.scheduler + " (");
}

bool Assembly::is_said(std::string_view option) const {
    return sources_.given(option) && !is_placed(option);
}

// What the scheduler says of several nodes means nothing to a job of one; a node beyond the job's
// number is one of its spares, which have no place.
void Assembly::settle_placement() {
    if (draft_.standalone && is_placed("nnodes")) draft_.min_nodes = draft_.max_nodes = 1;
    const bool several = !draft_.standalone && has_several_nodes(draft_);
    if (!several && is_placed("rdzv-endpoint")) draft_.endpoint.clear();
    if (is_placed("rdzv-endpoint") && is_said("rdzv-port")) {
        draft_.endpoint = draft_.endpoint.substr(0, draft_.endpoint.rfind(':'));
    }
    const int rank = draft_.node_rank.value_or(0);
    const bool spare = rank >= draft_.max_nodes && rank < draft_.max_nodes + draft_.spares;
    if ((!several || spare) && is_placed("node-rank")) draft_.node_rank.reset();
    if (draft_.standalone && is_placed("rdzv-id")) draft_.job_id.clear();
    if (!placement_.advice.empty() && !is_said("nnodes") && !draft_.standalone) {
        advice_ = placement_.advice;
    }
    check_placement();
}

void Assembly::check_placement() {
    const bool alone = draft_.standalone || (is_said("nnodes") && !has_several_nodes(draft_));
    if (alone) return;
    if (!placement_.unreadable.empty() && !(is_said("nnodes") && is_said("rdzv-endpoint"))) {
        problems_.push_back(placement_.unreadable +
                            "; give --nnodes and --rdzv-endpoint, or --standalone for one node");
        return;
    }
    if (placement_.copies_here > 1) {
        problems_.push_back("srun started " + std::to_string(placement_.copies_here) +
                            " ddrun per node, and one is enough; use --ntasks-per-node=1 and "
                            "--nproc-per-node=N (--standalone if each is a job of its own)");
    }
    const int wanted = draft_.max_nodes + draft_.spares;
    if (is_placed("rdzv-endpoint") && placement_.nodes > 0 && wanted > placement_.nodes) {
        problems_.push_back(
            sources_.name_of("nnodes") + ": " + std::to_string(draft_.max_nodes) + " nodes" +
            (draft_.spares > 0 ? " and " + std::to_string(draft_.spares) + " spares"
                               : std::string()) +
            ", but " + placement_.scheduler + " gave this job " + std::to_string(placement_.nodes));
    }
}

void Assembly::settle_kind() {
    struct Word {
        std::string_view option;
        bool said;
        ProgramKind kind;
    };
    const Word words[] = {{"module", draft_.module, ProgramKind::module},
                          {"no-python", draft_.no_python, ProgramKind::execute},
                          {"run-path", draft_.run_path, ProgramKind::script}};
    const Word* chosen = nullptr;
    for (const Word& word : words) {
        if (!word.said) continue;
        if (chosen != nullptr) {
            problems_.push_back(sources_.name_of(chosen->option) + " and " +
                                sources_.name_of(word.option) +
                                " contradict each other; leave one out");
        }
        chosen = &word;
        spec_.kind = word.kind;
    }
}

// Several nodes meet at the endpoint, or, in a static launch, at the master's host.
void Assembly::settle_rendezvous() {
    values::Endpoint endpoint;
    if (!spec_.endpoint.empty() && !values::read(spec_.endpoint, endpoint)) {
        spec_.rendezvous_host = endpoint.host;
        spec_.rendezvous_port = endpoint.port.value_or(spec_.rendezvous_port);
    } else {
        spec_.rendezvous_host = spec_.master_addr.value_or("");
    }
}

void Assembly::settle_times() {
    if (!draft_.rdzv_conf) return;
    const values::RendezvousTimes times = values::rendezvous_times(*draft_.rdzv_conf);
    if (times.join && !sources_.given("join-timeout")) spec_.join_timeout = *times.join;
    if (times.last_call && !sources_.given("last-call")) spec_.last_call = *times.last_call;
}

// One node: its workers meet at MASTER_ADDR:MASTER_PORT and nowhere else, so torchrun's words for
// the rendezvous only choose these two.
void Assembly::settle_addresses() {
    if (draft_.standalone) {
        spec_.endpoint.clear();
        if (!sources_.given("rdzv-id")) spec_.job_id.clear();
    }
    if (has_several_nodes(spec_)) return settle_rendezvous();
    if (!spec_.master_addr) spec_.master_addr = draft_.local_addr;
    values::Endpoint endpoint;
    const bool has_port = !spec_.endpoint.empty() && !values::read(spec_.endpoint, endpoint) &&
                          endpoint.port.value_or(0) != 0;
    if (has_port && !spec_.master_port) spec_.master_port = endpoint.port;
}

std::vector<std::string> Assembly::notes() const {
    std::vector<std::string> notes;
    for (const Given& given : taken_) {
        if (sources_.place_of(subject(given)) != given.place) continue;
        const std::string said = std::string(given.option->name) + "=" + given.text;
        if (!given.place.starts_with('-')) notes.push_back(said + " from " + given.place);
        if (!given.option->no_effect.empty()) {
            notes.push_back(said + " changes nothing: " + std::string(given.option->no_effect));
        }
    }
    if (draft_.standalone && !draft_.endpoint.empty()) {
        notes.push_back(sources_.name_of("rdzv-endpoint") +
                        " is ignored: " + sources_.name_of("standalone") + " was given");
    }
    return notes;
}

}  // namespace ddrun::launcher
