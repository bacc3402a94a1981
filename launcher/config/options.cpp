#include "launcher/config/codecs.hpp"
#include "launcher/config/option.hpp"

#include <algorithm>
#include <array>

// The one table of options. Its order is the order of --help, --print-config and the man page.
namespace ddrun::launcher {
namespace {

using namespace codecs;
using values::Refusal;
using Texts = std::vector<std::string>;

constexpr std::array<std::string_view, 5> numa_words = {"off", "node", "socket", "exclusive",
                                                        "core-complex"};
constexpr std::array<std::string_view, 2> gpu_binding_words = {"none", "per-rank"};

// --- codecs of a single option ----------------------------------------------------------------

constexpr Codec nodes = {[](Draft& draft, std::string_view text) {
                             return values::read_nodes(text, draft.min_nodes, draft.max_nodes);
                         },
                         [](const Draft& draft) {
                             const std::string min = std::to_string(draft.min_nodes);
                             return Texts{draft.min_nodes == draft.max_nodes
                                              ? min
                                              : min + ":" + std::to_string(draft.max_nodes)};
                         },
                         [] { return std::string("N or MIN:MAX, whole numbers above zero"); }};

constexpr Codec endpoint = {
    [](Draft& draft, std::string_view text) {
        values::Endpoint parsed;
        Refusal refusal = values::read(text, parsed);
        if (!refusal) draft.endpoint = text;
        return refusal;
    },
    [](const Draft& draft) { return draft.endpoint.empty() ? Texts() : Texts{draft.endpoint}; },
    [] { return std::string("HOST[:PORT]"); }};

template <auto Field>
constexpr Codec host = {
    [](Draft& draft, std::string_view text) { return values::read_host(text, draft.*Field); },
    [](const Draft& draft) { return draft.*Field ? Texts{*(draft.*Field)} : Texts(); },
    [] { return std::string("a host name or an address"); }};

constexpr Codec backend = {
    [](Draft& draft, std::string_view text) -> Refusal {
        if (text == "etcd" || text == "etcd-v2") {
            return "etcd is not used; ddrun brings its own rendezvous: leave the flag out";
        }
        if (text != "ddrun" && text != "c10d" && text != "static") return values::wrong_form;
        draft.rdzv_backend = text;
        return std::nullopt;
    },
    [](const Draft& draft) { return Texts{draft.rdzv_backend}; },
    [] { return std::string("one of ddrun, c10d, static"); }};

constexpr Codec rendezvous_conf = {
    [](Draft& draft, std::string_view text) {
        Refusal refusal = values::read_rendezvous_conf(text);
        if (!refusal) draft.rdzv_conf = text;
        return refusal;
    },
    [](const Draft& draft) { return draft.rdzv_conf ? Texts{*draft.rdzv_conf} : Texts(); },
    [] { return std::string("KEY=VALUE,... with torchrun's keys"); }};

constexpr Codec start_method = {[](Draft& draft, std::string_view text) -> Refusal {
                                    if (text != "spawn" && text != "fork" && text != "forkserver")
                                        return values::wrong_form;
                                    draft.start_method = text;
                                    return std::nullopt;
                                },
                                [](const Draft& draft) { return Texts{draft.start_method}; },
                                [] { return std::string("one of spawn, fork, forkserver"); }};

constexpr Codec event_log = {
    [](Draft&, std::string_view text) -> Refusal {
        if (text == "null") return std::nullopt;
        return "ddrun has no event handlers; use --status-file for the state of the job";
    },
    [](const Draft& draft) { return Texts{draft.event_log_handler}; },
    [] { return std::string("null"); }};

// 0 and "off" both mean off.
constexpr Codec crash_loop = {
    [](Draft& draft, std::string_view text) -> Refusal {
        if (text != "off") return values::read(text, draft.crash_loop, values::Bounds{0, 1000});
        draft.crash_loop = 0;
        return std::nullopt;
    },
    [](const Draft& draft) {
        return Texts{draft.crash_loop == 0 ? "off" : std::to_string(draft.crash_loop)};
    },
    [] { return std::string("a whole number from 1 to 1000, or off"); }};

constexpr Codec exit_codes = {
    [](Draft& draft, std::string_view text) -> Refusal {
        std::vector<int> codes;
        for (const std::string& item : values::split_list(text)) {
            int code = 0;
            if (values::read(item, code, {1, 255})) return values::wrong_form;
            codes.push_back(code);
        }
        draft.no_restart_on = std::move(codes);
        return std::nullopt;
    },
    [](const Draft& draft) {
        Texts items;
        for (const int code : draft.no_restart_on) items.push_back(std::to_string(code));
        return items.empty() ? Texts() : Texts{values::join_list(items)};
    },
    [] { return std::string("exit codes from 1 to 255, separated by commas"); }};

constexpr Codec signals = {
    [](Draft& draft, std::string_view text) {
        return values::read_signals(text, draft.stop_signals);
    },
    [](const Draft& draft) { return Texts{values::write_signals(draft.stop_signals)}; },
    [] { return std::string("signal names separated by commas, such as SIGTERM,SIGUSR1"); }};

// A later entry of the same name replaces the earlier one, in its place.
constexpr std::size_t most_assignments = 4096;
constexpr Codec assignments = {[](Draft& draft, std::string_view text) -> Refusal {
                                   std::pair<std::string, std::string> entry;
                                   if (Refusal refusal = values::read_assignment(text, entry))
                                       return refusal;
                                   for (auto& known : draft.extra_env) {
                                       if (known.first != entry.first) continue;
                                       known.second = std::move(entry.second);
                                       return std::nullopt;
                                   }
                                   if (draft.extra_env.size() >= most_assignments)
                                       return "more than 4096 variables";
                                   draft.extra_env.push_back(std::move(entry));
                                   return std::nullopt;
                               },
                               [](const Draft& draft) {
                                   Texts texts;
                                   for (const auto& [name, value] : draft.extra_env)
                                       texts.push_back(name + "=" + value);
                                   return texts;
                               },
                               [] { return std::string("NAME=VALUE"); }};

constexpr Codec gpu_list = {
    [](Draft& draft, std::string_view text) { return values::read_gpus(text, draft.gpus); },
    [](const Draft& draft) { return draft.gpus ? Texts{*draft.gpus} : Texts(); },
    [] { return std::string("device indexes, GPU-... or MIG-... names, separated by commas"); }};

constexpr Codec prefix_commands = {
    [](Draft& draft, std::string_view text) -> Refusal {
        PrefixCommand command;
        if (Refusal refusal = values::read(text, command)) return refusal;
        draft.prefix_commands.push_back(std::move(command));
        return std::nullopt;
    },
    [](const Draft& draft) {
        Texts texts;
        for (const PrefixCommand& command : draft.prefix_commands) {
            texts.push_back(values::write(command));
        }
        return texts;
    },
    [] { return std::string("RANKS:COMMAND, for example 0:'gdb --args'"); }};

constexpr Codec local_rank_flag = {
    [](Draft& draft, std::string_view text) -> Refusal {
        if (text == "none") {
            draft.local_rank_flag.reset();
            return std::nullopt;
        }
        const bool fits =
            text.size() >= 2 && text.front() == '-' && text.find_first_of("= \t\n") == text.npos;
        if (!fits) return values::wrong_form;
        draft.local_rank_flag = std::string(text);
        return std::nullopt;
    },
    [](const Draft& draft) { return Texts{draft.local_rank_flag.value_or("none")}; },
    [] { return std::string("a flag such as --local-rank or --local_rank, or none"); }};

constexpr Codec line_prefix = {
    [](Draft& draft, std::string_view text) -> Refusal {
        draft.line_prefix = text == "none" ? std::string() : std::string(text);
        return std::nullopt;
    },
    [](const Draft& draft) {
        if (!draft.line_prefix) return Texts();
        return Texts{draft.line_prefix->empty() ? "none" : *draft.line_prefix};
    },
    [] {
        return std::string(
            "a text with ${rank}, ${local_rank}, ${role_name}, ${hostname}, or none");
    }};

// Two words for one field: what is said last counts.
constexpr Codec verbose = {
    [](Draft& draft, std::string_view text) {
        return values::read(text, draft.verbosity, values::Bounds{0, 3});
    },
    [](const Draft& draft) { return Texts{std::to_string(std::max(0, draft.verbosity))}; },
    [] { return std::string("a whole number from 0 to 3"); }};
constexpr Codec quiet = {
    [](Draft& draft, std::string_view text) -> Refusal {
        const std::optional<bool> answer = values::yes_or_no(text);
        if (!answer) return values::wrong_form;
        if (*answer || draft.verbosity < 0) draft.verbosity = *answer ? -1 : 0;
        return std::nullopt;
    },
    [](const Draft& draft) { return Texts{draft.verbosity < 0 ? "true" : "false"}; },
    on_off<&Draft::log_strict>.form};

// --- the table --------------------------------------------------------------------------------

constexpr Option table[] = {
    {.name = "module",
     .letter = 'm',
     .group = Group::program,
     .shape = Shape::on_off,
     .help = "the program is a Python module: python -u -m NAME",
     .codec = on_off<&Draft::module>,
     .torchrun = Torchrun::same,
     .featured = true},
    {.name = "no-python",
     .group = Group::program,
     .shape = Shape::on_off,
     .help = "execute the program itself, also when it ends in .py",
     .more = "Without it a program that ends in .py runs under the active Python, and anything "
             "else is executed.",
     .codec = on_off<&Draft::no_python>,
     .torchrun = Torchrun::better,
     .difference = "needed for .py files only: other programs are executed anyway"},
    {.name = "run-path",
     .group = Group::program,
     .shape = Shape::on_off,
     .help = "run the program under Python whatever its name",
     .more = "Folders and archives with a __main__.py too.",
     .codec = on_off<&Draft::run_path>,
     .torchrun = Torchrun::same},
    {.name = "local-rank-flag",
     .group = Group::program,
     .metavar = "FLAG",
     .help = "pass FLAG=LOCAL_RANK as first argument to every worker",
     .more = "For scripts that want --local-rank or --local_rank. Written with '=', since FLAG "
             "begins with '-'.",
     .codec = local_rank_flag,
     .words = "--local-rank --local_rank none"},
    {.name = "prefix-command",
     .group = Group::program,
     .shape = Shape::repeated,
     .metavar = "RANKS:CMD",
     .help = "start these global ranks under CMD: 0:'gdb --args'",
     .more = "RANKS is a set such as 0-3,7 or all. CMD is cut into words like a shell does; "
             "nothing is expanded.",
     .codec = prefix_commands,
     .joint = ':'},
    {.name = "stdin",
     .group = Group::program,
     .metavar = "RANK",
     .help = "give ddrun's stdin (the terminal) to this rank",
     .more = "The other workers read /dev/null; so do all when the value is none.",
     .codec = whole_or_none<&Draft::stdin_rank, 0, 999'999>,
     .featured = true},

    {.name = "nproc-per-node",
     .group = Group::size,
     .metavar = "N|auto|gpu|cpu",
     .help = "workers on this node",
     .more = "gpu: one per visible GPU; cpu: one per usable CPU (affinity and cgroup quota count); "
             "auto: gpu where "
             "there are GPUs, else cpu.",
     .codec = value<&Draft::slots>,
     .form = "a whole number from 1 to 4096, or auto, gpu or cpu",
     .words = "auto gpu cpu",
     .torchrun = Torchrun::better,
     .difference = "no driver is touched to count; cpu honours the cgroup quota; xpu and other "
                   "devices are refused",
     .featured = true},
    {.name = "nnodes",
     .group = Group::size,
     .metavar = "N|MIN:MAX",
     .help = "nodes of the job",
     .more = "This version runs one node; more are refused.",
     .codec = nodes,
     .torchrun = Torchrun::refused,
     .difference = "more than one node is refused in this version"},
    {.name = "node-rank",
     .group = Group::size,
     .metavar = "N",
     .help = "wished place of this node",
     .codec = whole_or_none<&Draft::node_rank, 0, 999'999>,
     .torchrun = Torchrun::better,
     .difference = "checked against --nnodes"},
    {.name = "role",
     .group = Group::size,
     .metavar = "NAME",
     .help = "ROLE_NAME of the workers",
     .codec = label<&Draft::role>,
     .torchrun = Torchrun::same},

    {.name = "standalone",
     .group = Group::rendezvous,
     .shape = Shape::on_off,
     .help = "one node, its own job id, any endpoint ignored",
     .codec = on_off<&Draft::standalone>,
     .torchrun = Torchrun::same,
     .difference = "--rdzv-id is kept when it is given"},
    {.name = "rdzv-id",
     .group = Group::rendezvous,
     .metavar = "ID",
     .help = "id of the job",
     .codec = label<&Draft::job_id>,
     .torchrun = Torchrun::better,
     .difference = "two jobs with one id on one machine never merge"},
    {.name = "rdzv-endpoint",
     .group = Group::rendezvous,
     .metavar = "HOST[:PORT]",
     .help = "where the nodes meet; one node: PORT becomes MASTER_PORT",
     .more = "An IPv6 address with a port stands in brackets.",
     .codec = endpoint,
     .torchrun = Torchrun::better,
     .difference =
         "nothing listens on one node, so HOST needs no resolving; PORT 0 or none: a free port"},
    {.name = "rdzv-backend",
     .group = Group::rendezvous,
     .metavar = "NAME",
     .help = "ddrun, c10d or static: all mean ddrun's own",
     .codec = backend,
     .words = "ddrun c10d static",
     .torchrun = Torchrun::same,
     .difference = "etcd and etcd-v2 are refused: no etcd is needed",
     .no_effect = "every backend is ddrun's own rendezvous"},
    {.name = "rdzv-conf",
     .group = Group::rendezvous,
     .metavar = "K=V,...",
     .help = "torchrun's rendezvous settings",
     .codec = rendezvous_conf,
     .torchrun = Torchrun::better,
     .difference = "keys and values are checked; an unknown key is refused",
     .no_effect = "one node has nobody to wait for"},
    {.name = "master-addr",
     .group = Group::rendezvous,
     .metavar = "HOST",
     .help = "MASTER_ADDR of the workers",
     .more = "127.0.0.1 when it is not given.",
     .codec = host<&Draft::master_addr>,
     .torchrun = Torchrun::same},
    {.name = "master-port",
     .group = Group::rendezvous,
     .metavar = "PORT",
     .help = "MASTER_PORT of the workers; none: a free one",
     .more = "A port that somebody else holds ends the job with 71 before any worker starts.",
     .codec = whole_or_none<&Draft::master_port, 1, 65535>,
     .torchrun = Torchrun::better,
     .difference = "a free port by default; a taken port is named with its holder"},
    {.name = "local-addr",
     .group = Group::rendezvous,
     .metavar = "HOST",
     .help = "address of this node; one node: MASTER_ADDR",
     .codec = host<&Draft::local_addr>,
     .torchrun = Torchrun::same},

    {.name = "max-restarts",
     .group = Group::failure,
     .metavar = "N",
     .help = "restarts of all workers after a failure",
     .codec = whole<&Draft::max_restarts, 0, 1'000'000>,
     .torchrun = Torchrun::better,
     .difference = "one budget for the job, restart count equal on all ranks",
     .featured = true},
    {.name = "no-restart-on",
     .group = Group::failure,
     .shape = Shape::list,
     .metavar = "CODE,...",
     .help = "exit codes that end the job at once",
     .codec = exit_codes},
    {.name = "restart-backoff",
     .group = Group::failure,
     .metavar = "TIME",
     .help = "wait before the second restart, then doubling to 30s",
     .more = "The first restart never waits; 0 means no restart does.",
     .codec = duration<&Draft::restart_backoff>},
    {.name = "crash-loop",
     .group = Group::failure,
     .metavar = "K|off",
     .help = "give up after K identical quick failures",
     .codec = crash_loop,
     .words = "off"},
    {.name = "shutdown-timeout",
     .group = Group::failure,
     .metavar = "TIME",
     .help = "from the first stop signal to SIGKILL, all workers",
     .more = "25s under Slurm or Kubernetes, so that the summary is still written.",
     .codec = duration<&Draft::shutdown_timeout>,
     .torchrun = Torchrun::better,
     .difference = "holds on every way to stop; a duration such as 500ms or 5m",
     .variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
     .featured = true},
    {.name = "hang-timeout",
     .group = Group::failure,
     .metavar = "TIME|off",
     .help = "no progress and no output for so long: 124",
     .codec = duration_or_off<&Draft::hang_timeout>,
     .words = "off",
     .featured = true},
    {.name = "early-exit-timeout",
     .group = Group::failure,
     .metavar = "TIME|off",
     .help = "others still run so long after the first exit 0: 124",
     .codec = duration_or_off<&Draft::early_exit_timeout>,
     .words = "off"},
    {.name = "signals-to-handle",
     .group = Group::failure,
     .shape = Shape::list,
     .metavar = "SIG,...",
     .help = "signals that stop the job",
     .more = "The job then ends with 128 + the signal's number.",
     .codec = signals,
     .words = "SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2",
     .torchrun = Torchrun::better,
     .difference = "SIGUSR1, SIGUSR2 and SIGWINCH are forwarded without stopping unless listed"},
    {.name = "monitor-interval",
     .group = Group::failure,
     .metavar = "TIME",
     .help = "torchrun's polling interval",
     .codec = duration<&Draft::monitor_interval, 1>,
     .torchrun = Torchrun::better,
     .difference = "nothing polls: exits are noticed at once",
     .no_effect = "nothing polls"},
    {.name = "start-method",
     .group = Group::failure,
     .metavar = "METHOD",
     .help = "torchrun's way to start functions",
     .codec = start_method,
     .words = "spawn fork forkserver",
     .torchrun = Torchrun::same,
     .no_effect = "a program is always forked and executed, as under torchrun"},

    {.name = "env",
     .group = Group::devices,
     .shape = Shape::repeated,
     .metavar = "NAME=VALUE",
     .help = "set a variable for the workers; may be repeated",
     .more = "Entries of several sources are merged by name. Workers inherit ddrun's own "
             "environment anyway.",
     .codec = assignments,
     .joint = '=',
     .featured = true},
    {.name = "gpus",
     .group = Group::devices,
     .shape = Shape::list,
     .metavar = "LIST",
     .help = "CUDA_VISIBLE_DEVICES of the job: 2,4,7 or GPU-... names",
     .codec = gpu_list,
     .featured = true},
    {.name = "gpu-binding",
     .group = Group::devices,
     .metavar = "none|per-rank",
     .help = "per-rank: each worker sees only its own GPU",
     .more = "CUDA_VISIBLE_DEVICES has one entry then, and LOCAL_RANK keeps its value.",
     .codec = word<&Draft::gpu_binding, gpu_binding_words>,
     .words = "none per-rank"},
    {.name = "virtual-local-rank",
     .group = Group::devices,
     .shape = Shape::on_off,
     .help = "each worker: LOCAL_RANK=0 and only its own GPU",
     .codec = on_off<&Draft::virtual_local_rank>,
     .torchrun = Torchrun::same},
    {.name = "require-gpus",
     .group = Group::devices,
     .shape = Shape::on_off,
     .help = "refuse to start more workers than visible GPUs",
     .codec = on_off<&Draft::require_gpus>},
    {.name = "numa-binding",
     .group = Group::devices,
     .metavar = "MODE",
     .help = "off, node, socket, exclusive or core-complex",
     .codec = word<&Draft::numa_binding, numa_words>,
     .words = "off node socket exclusive core-complex",
     .torchrun = Torchrun::better,
     .difference = "no numactl; memory policy too; works without GPUs; has a variable"},
    {.name = "strict-binding",
     .group = Group::devices,
     .shape = Shape::on_off,
     .help = "a refused binding ends the job with 71",
     .codec = on_off<&Draft::strict_binding>},

    {.name = "log-dir",
     .group = Group::output,
     .metavar = "DIR",
     .help = "keep output, one file per rank and stream, below DIR",
     .more = "It must be usable, or ddrun ends with 2. /dev/null: no files at all.",
     .codec = optional_text<&Draft::log_dir>,
     .completes = Completes::directory,
     .torchrun = Torchrun::better,
     .difference = "earlier runs are never deleted",
     .featured = true},
    {.name = "redirects",
     .letter = 'r',
     .group = Group::output,
     .metavar = "V|RANKS:V,...",
     .help = "to files only: 0 none, 1 stdout, 2 stderr, 3 both",
     .more = "One value for all, or ranges of local ranks with theirs: 0-7:3,12:1.",
     .codec = value<&Draft::redirects>,
     .form = "0, 1, 2 or 3, or ranges of local ranks with such a value: 0-7:3,12:1",
     .words = "0 1 2 3",
     .torchrun = Torchrun::better,
     .difference = "ranges, and ranks of more than one digit",
     .featured = true},
    {.name = "tee",
     .letter = 't',
     .group = Group::output,
     .metavar = "V|RANKS:V,...",
     .help = "to files and to the console; values as for -r",
     .codec = value<&Draft::tee>,
     .form = "0, 1, 2 or 3, or ranges of local ranks with such a value: 0-7:3,12:1",
     .words = "0 1 2 3",
     .torchrun = Torchrun::better,
     .difference = "whole lines; ranges, and ranks of more than one digit",
     .featured = true},
    {.name = "local-ranks-filter",
     .group = Group::output,
     .shape = Shape::list,
     .metavar = "RANKS",
     .help = "console shows only these local ranks: 0-3,7",
     .codec = value<&Draft::local_ranks_filter>,
     .form = "ranks and ranges separated by commas: 0-3,7",
     .torchrun = Torchrun::better,
     .difference = "ranges"},
    {.name = "ranks-filter",
     .group = Group::output,
     .shape = Shape::list,
     .metavar = "RANKS",
     .help = "console shows only these global ranks: 0-3,7",
     .codec = value<&Draft::ranks_filter>,
     .form = "ranks and ranges separated by commas: 0-3,7"},
    {.name = "log-line-prefix-template",
     .group = Group::output,
     .metavar = "TEXT|none",
     .help = "before each console line; ${rank} ${local_rank} ...",
     .more = "Also ${role_name} and ${hostname}. none: no prefix.",
     .codec = line_prefix,
     .words = "none",
     .torchrun = Torchrun::better,
     .difference = "the default shows the global rank; an unknown macro is refused",
     .variable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"},
    {.name = "duplicate-stdout-filters",
     .group = Group::output,
     .shape = Shape::list,
     .metavar = "TEXT,...",
     .help = "copy stdout lines that hold a TEXT to one file",
     .codec = texts<&Draft::duplicate_stdout_filters>,
     .torchrun = Torchrun::same},
    {.name = "duplicate-stderr-filters",
     .group = Group::output,
     .shape = Shape::list,
     .metavar = "TEXT,...",
     .help = "copy stderr lines that hold a TEXT to one file",
     .codec = texts<&Draft::duplicate_stderr_filters>,
     .torchrun = Torchrun::same},
    {.name = "log-strict",
     .group = Group::output,
     .shape = Shape::on_off,
     .help = "a log file that cannot be written ends the job (71)",
     .codec = on_off<&Draft::log_strict>},
    {.name = "status-file",
     .group = Group::output,
     .metavar = "FILE",
     .help = "state of the job as JSON, rewritten at each change",
     .codec = optional_text<&Draft::status_file>,
     .completes = Completes::file},
    {.name = "event-log-handler",
     .group = Group::output,
     .metavar = "null",
     .help = "torchrun's event sink: null only",
     .codec = event_log,
     .words = "null",
     .torchrun = Torchrun::refused,
     .difference = "use --status-file",
     .no_effect = "there are no event handlers"},
    {.name = "logs-specs",
     .group = Group::output,
     .metavar = "NAME",
     .help = "refused: torchrun's plug-in for logs",
     .torchrun = Torchrun::refused,
     .difference = "ddrun writes logs itself; use --log-dir, --redirects and --tee"},

    {.name = "config",
     .group = Group::about,
     .metavar = "FILE",
     .help = "job file (YAML): keys are flag names, program, args",
     .codec = optional_text<&Draft::config_file>,
     .completes = Completes::file,
     .featured = true,
     .in_job_file = false},
    {.name = "print-config",
     .group = Group::about,
     .shape = Shape::on_off,
     .help = "print every value with its source, as a job file",
     .codec = on_off<&Draft::print_config>,
     .featured = true,
     .in_job_file = false},
    {.name = "dry-run",
     .group = Group::about,
     .shape = Shape::on_off,
     .help = "print what each worker would get; start nothing",
     .codec = on_off<&Draft::dry_run>,
     .featured = true,
     .in_job_file = false},
    {.name = "verbose",
     .letter = 'v',
     .group = Group::about,
     .shape = Shape::counted,
     .metavar = "N",
     .help = "say more; -vv still more",
     .codec = verbose,
     .featured = true},
    {.name = "quiet",
     .letter = 'q',
     .group = Group::about,
     .shape = Shape::on_off,
     .help = "say only what went wrong",
     .codec = quiet},
    {.name = "help",
     .letter = 'h',
     .group = Group::about,
     .shape = Shape::command,
     .metavar = "all",
     .help = "this help; --help=all shows every flag",
     .words = "all",
     .featured = true,
     .in_job_file = false},
    {.name = "version",
     .letter = 'V',
     .group = Group::about,
     .shape = Shape::command,
     .help = "version and how it was built",
     .featured = true,
     .in_job_file = false},
    {.name = "print-completion",
     .group = Group::about,
     .shape = Shape::command,
     .metavar = "bash|zsh",
     .help = "completion script for a shell",
     .words = "bash zsh",
     .torchrun = Torchrun::better,
     .difference = "needs no package; tcsh is refused",
     .in_job_file = false},
};

bool same_name(std::string_view canonical, std::string_view given) {
    return canonical.size() == given.size() &&
           std::equal(canonical.begin(), canonical.end(), given.begin(),
                      [](char ours, char theirs) {
                          return ours == theirs || (ours == '-' && theirs == '_');
                      });
}

}  // namespace

std::span<const Option> options() {
    return table;
}

const Option* find_option(std::string_view name) {
    for (const Option& option : table) {
        if (same_name(option.name, name)) return &option;
    }
    return nullptr;
}

const Option* find_option(char letter) {
    for (const Option& option : table) {
        if (letter != 0 && option.letter == letter) return &option;
    }
    return nullptr;
}

}  // namespace ddrun::launcher
