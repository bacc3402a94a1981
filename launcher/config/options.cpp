#include "launcher/config/option.hpp"
#include "launcher/config/option_codecs.hpp"

#include <algorithm>

// The one table of options. Its order is the order of --help, --print-config and the man page.
namespace ddrun::launcher {
namespace {

using namespace codecs;
// Laid out by hand: a row is one paragraph.
// clang-format off
constexpr Option table[] = {
    {.name = "module", .letter = 'm', .group = Group::program, .shape = Shape::on_off,
     .help = "PROGRAM is a Python module: python -u -m NAME", .codec = on_off<&Draft::module>,
     .torchrun = Torchrun::same, .featured = true},
    {.name = "no-python", .group = Group::program, .shape = Shape::on_off,
     .help = "execute PROGRAM itself, also when it ends in .py",
     .more = "Without it a program that ends in .py runs under the active Python, and anything "
         "else is executed.", .codec = on_off<&Draft::no_python>, .torchrun = Torchrun::better,
     .difference = "needed for .py files only: other programs are executed anyway"},
    {.name = "run-path", .group = Group::program, .shape = Shape::on_off,
     .help = "run PROGRAM under Python, whatever its name",
     .more = "Folders and archives with a __main__.py too.", .codec = on_off<&Draft::run_path>,
     .torchrun = Torchrun::same},
    {.name = "local-rank-flag", .group = Group::program, .metavar = "FLAG",
     .help = "workers' first argument is FLAG=LOCAL_RANK",
     .more = "For scripts that want --local-rank or --local_rank. Written with '=', since FLAG "
         "begins with '-'.", .codec = local_rank_flag, .words = "--local-rank --local_rank none"},
    {.name = "prefix-command", .group = Group::program, .shape = Shape::repeated,
     .metavar = "RANKS:CMD", .help = "start these ranks under CMD: 0:'gdb --args'",
     .more = "RANKS is a set of global ranks such as 0-3,7, or all; for a rank of several entries "
         "the last one counts. CMD is cut into words like a shell does; nothing is expanded.",
     .codec = prefix_commands, .joint = ':'},
    {.name = "stdin", .group = Group::program, .metavar = "RANK",
     .help = "this rank gets ddrun's stdin (the terminal)",
     .more = "The other workers read /dev/null; so do all when the value is none.",
     .codec = whole_or_none<&Draft::stdin_rank, 0, 999'999>},

    {.name = "nproc-per-node", .group = Group::size, .metavar = "N",
     .help = "workers here: a number, auto, gpu or cpu",
     .more = "gpu: one per visible GPU; cpu: one per usable CPU (affinity and cgroup quota "
         "count); auto: gpu where there are GPUs, else cpu.", .codec = value<&Draft::slots>,
     .form = "a whole number from 1 to 4096, or auto, gpu or cpu", .words = "auto gpu cpu",
     .torchrun = Torchrun::better,
     .difference = "no driver is touched to count; cpu honours the cgroup quota; xpu and other "
         "devices are refused", .featured = true},
    {.name = "nnodes", .group = Group::size, .metavar = "N", .help = "nodes of the job: N or MIN:MAX",
     .more = "With MIN:MAX the job starts when MAX nodes have come, or MIN and the last call is "
         "over, and goes on with those that are left while they are MIN.", .codec = nodes,
     .torchrun = Torchrun::better, .difference = "a lost node is noticed and replaced; all nodes "
         "end with one code", .featured = true},
    {.name = "node-rank", .group = Group::size, .metavar = "N", .help = "wished place of this node",
     .more = "Without it the endpoint's host comes first, then the others by their addresses.",
     .codec = whole_or_none<&Draft::node_rank, 0, 999'999>, .torchrun = Torchrun::better,
     .difference = "checked against --nnodes, and two nodes with one rank are refused"},
    {.name = "spares", .group = Group::size, .metavar = "N",
     .help = "more nodes, which wait to replace a lost one",
     .codec = whole<&Draft::spares, 0, 100'000>},
    {.name = "topology-group", .group = Group::size, .metavar = "NAME",
     .help = "nodes of one NAME (a rack) get neighbouring ranks",
     .codec = label_or_none<&Draft::topology_group>},
    {.name = "role", .group = Group::size, .metavar = "NAME", .help = "ROLE_NAME of the workers",
     .codec = label<&Draft::role>, .torchrun = Torchrun::same},

    {.name = "standalone", .group = Group::rendezvous, .shape = Shape::on_off,
     .help = "one node, a job id of its own, no endpoint", .codec = on_off<&Draft::standalone>,
     .torchrun = Torchrun::same, .difference = "--rdzv-id is kept when it is given"},
    {.name = "rdzv-id", .group = Group::rendezvous, .metavar = "ID", .help = "id of the job",
     .codec = label<&Draft::job_id>, .torchrun = Torchrun::better,
     .difference = "two jobs with one id on one machine never merge"},
    {.name = "rdzv-endpoint", .group = Group::rendezvous, .metavar = "HOST:PORT",
     .help = "where nodes meet; on one node: MASTER_PORT",
     .more = "HOST[:PORT], the same on all nodes; an IPv6 address with a port stands in brackets. "
         "The node that has the address of HOST serves the others, or a ddrun-rendezvous that "
         "stands there does.", .codec = endpoint, .torchrun = Torchrun::better,
     .difference = "the host is found by its addresses, not by names; on one node nothing listens",
     .featured = true},
    {.name = "rdzv-port", .group = Group::rendezvous, .metavar = "PORT",
     .help = "port of an endpoint that names none",
     .codec = whole<&Draft::rendezvous_port, 1, 65535>},
    {.name = "rdzv-backend", .group = Group::rendezvous, .metavar = "NAME",
     .help = "ddrun, c10d or static; all mean ddrun's own", .codec = backend,
     .words = "ddrun c10d static", .torchrun = Torchrun::same,
     .difference = "etcd and etcd-v2 are refused: no etcd is needed",
     .no_effect = "every backend is ddrun's own rendezvous"},
    {.name = "rdzv-conf", .group = Group::rendezvous, .metavar = "K=V,...",
     .help = "torchrun's rendezvous settings", .codec = rendezvous_conf,
     .torchrun = Torchrun::better,
     .difference = "keys and values are checked; an unknown key is refused; join_timeout, timeout "
         "and last_call_timeout are --join-timeout and --last-call, the others change nothing"},
    {.name = "master-addr", .group = Group::rendezvous, .metavar = "HOST",
     .help = "one node: MASTER_ADDR; several: where to meet",
     .more = "127.0.0.1 when it is not given. Of several nodes MASTER_ADDR is always that of rank "
         "0's node; without an endpoint they meet at HOST and the port of --rdzv-port, so that "
         "MASTER_PORT stays free for the workers.",
     .codec = host<&Draft::master_addr>, .torchrun = Torchrun::better,
     .difference = "several nodes: the host to meet at, while rank 0's node is told to workers"},
    {.name = "master-port", .group = Group::rendezvous, .metavar = "PORT",
     .help = "MASTER_PORT of the workers; none: a free one",
     .more = "A port that somebody else holds ends the job with 71 before any worker starts.",
     .codec = whole_or_none<&Draft::master_port, 1, 65535>, .torchrun = Torchrun::better,
     .difference = "a free port by default; a taken port is named with its holder"},
    {.name = "agent-store", .group = Group::rendezvous, .metavar = "MODE",
     .help = "who serves PyTorch's store at MASTER_PORT",
     .more = "auto: rank 0's ddrun, for programs run under Python; on: always; off: rank 0 itself, for "
         "which the port is kept free. The store begins empty in every round.",
     .codec = word<&Draft::agent_store, agent_store_words>, .words = "auto on off"},
    {.name = "local-addr", .group = Group::rendezvous, .metavar = "HOST",
     .help = "address of this node that the others are told",
     .more = "By default the one that reaches the endpoint. On one node: MASTER_ADDR.",
     .codec = host<&Draft::local_addr>, .torchrun = Torchrun::better,
     .difference = "refused where this node has no such address"},
    {.name = "interface", .group = Group::rendezvous, .metavar = "NAME",
     .help = "or the network interface that has it: ib0",
     .codec = label_or_none<&Draft::interface>},
    {.name = "secret-file", .group = Group::rendezvous, .metavar = "FILE",
     .help = "secret that the nodes of a job share",
     .more = "At least 16 characters, readable by its owner only. Without it DDRUN_SECRET, munge "
         "and ~/.config/ddrun/secret are tried, in this order.",
     .codec = optional_text<&Draft::secret_file>, .completes = Completes::file},
    {.name = "insecure", .group = Group::rendezvous, .shape = Shape::on_off,
     .help = "several nodes without any secret or encryption",
     .codec = on_off<&Draft::insecure>},
    {.name = "make-secret", .group = Group::rendezvous, .shape = Shape::command,
     .help = "make ~/.config/ddrun/secret for your jobs, once", .in_job_file = false},
    {.name = "join-timeout", .group = Group::rendezvous, .metavar = "TIME",
     .help = "give up (75) when the nodes are not there by then",
     .codec = duration<&Draft::join_timeout, 1>},
    {.name = "last-call", .group = Group::rendezvous, .metavar = "TIME",
     .help = "with MIN nodes there, wait so long for more of MAX",
     .codec = duration<&Draft::last_call>},
    {.name = "heartbeat", .group = Group::rendezvous, .metavar = "TIME",
     .help = "how often a node says that it is there",
     .codec = duration<&Draft::heartbeat, 10'000'000>},
    {.name = "lease", .group = Group::rendezvous, .metavar = "TIME",
     .help = "a node silent for so long is lost",
     .more = "Such a node has stopped its workers by itself before, so that they never run beside "
         "those of the next round.", .codec = duration<&Draft::lease, 1>},
    {.name = "rendezvous-grace", .group = Group::rendezvous, .metavar = "TIME",
     .help = "give up (75) after so long without the rendezvous",
     .codec = duration<&Draft::rendezvous_grace>},
    {.name = "status-listen", .group = Group::rendezvous, .metavar = "HOST:PORT",
     .help = "status page: /healthz, /status, /metrics",
     .more = "On the node that serves the rendezvous. Off by default; read-only, without "
         "authentication.", .codec = host_and_port_or_none<&Draft::status_listen>},

    {.name = "max-restarts", .group = Group::failure, .metavar = "N",
     .help = "restarts of all workers after a failure",
     .codec = whole<&Draft::max_restarts, 0, 1'000'000>, .torchrun = Torchrun::better,
     .difference = "one budget for the job, restart count equal on all ranks", .featured = true},
    {.name = "no-restart-on", .group = Group::failure, .shape = Shape::list, .metavar = "CODE,...",
     .help = "exit codes that end the job at once", .codec = exit_codes},
    {.name = "restart-backoff", .group = Group::failure, .metavar = "TIME",
     .help = "wait before the second restart, then doubling",
     .more = "Up to 30s. The first restart never waits; 0 means no restart does.",
     .codec = duration<&Draft::restart_backoff>},
    {.name = "crash-loop", .group = Group::failure, .metavar = "K",
     .help = "give up after K identical quick failures", .codec = crash_loop, .words = "off"},
    {.name = "shutdown-timeout", .group = Group::failure, .metavar = "TIME",
     .help = "first stop signal to SIGKILL, for all workers",
     .more = "25s under Slurm or Kubernetes, so that the summary is still written.",
     .codec = duration<&Draft::shutdown_timeout>, .torchrun = Torchrun::better,
     .difference = "holds on every way to stop; a duration such as 500ms or 5m",
     .variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", .featured = true},
    {.name = "hang-timeout", .group = Group::failure, .metavar = "TIME",
     .help = "end (124) after so long without output or step",
     .codec = duration_or_off<&Draft::hang_timeout>, .words = "off", .featured = true},
    {.name = "early-exit-timeout", .group = Group::failure, .metavar = "TIME",
     .help = "end (124) when others run on after an exit 0",
     .more = "From the first worker that exits 0 while others still run.",
     .codec = duration_or_off<&Draft::early_exit_timeout>, .words = "off"},
    {.name = "signals-to-handle", .group = Group::failure, .shape = Shape::list,
     .metavar = "SIG,...", .help = "signals that stop the job",
     .more = "The job then ends with 128 + the signal's number.", .codec = signals,
     .words = "SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2", .torchrun = Torchrun::better,
     .difference = "SIGUSR1, SIGUSR2 and SIGWINCH are forwarded without stopping unless listed"},
    {.name = "monitor-interval", .group = Group::failure, .metavar = "TIME",
     .help = "torchrun's polling interval", .codec = duration<&Draft::monitor_interval, 1>,
     .torchrun = Torchrun::better, .difference = "nothing polls: exits are noticed at once",
     .no_effect = "nothing polls"},
    {.name = "start-method", .group = Group::failure, .metavar = "METHOD",
     .help = "torchrun's way to start functions", .codec = start_method,
     .words = "spawn fork forkserver", .torchrun = Torchrun::same,
     .no_effect = "a program is always forked and executed, as under torchrun"},

    {.name = "env", .group = Group::devices, .shape = Shape::repeated, .metavar = "NAME=VALUE",
     .help = "set a variable for the workers; repeatable",
     .more = "Entries of several sources are merged by name. Workers inherit ddrun's own "
         "environment anyway.", .codec = assignments, .joint = '=', .featured = true},
    {.name = "gpus", .group = Group::devices, .shape = Shape::list, .metavar = "LIST",
     .help = "CUDA_VISIBLE_DEVICES: 2,4,7 or GPU-... names", .codec = gpu_list, .featured = true},
    {.name = "gpu-binding", .group = Group::devices, .metavar = "MODE",
     .help = "none; per-rank: each worker sees its own GPU only",
     .more = "CUDA_VISIBLE_DEVICES has one entry then, and LOCAL_RANK keeps its value.",
     .codec = word<&Draft::gpu_binding, gpu_binding_words>, .words = "none per-rank"},
    {.name = "virtual-local-rank", .group = Group::devices, .shape = Shape::on_off,
     .help = "each worker: LOCAL_RANK=0 and its own GPU only",
     .codec = on_off<&Draft::virtual_local_rank>, .torchrun = Torchrun::same},
    {.name = "require-gpus", .group = Group::devices, .shape = Shape::on_off,
     .help = "refuse to start more workers than visible GPUs",
     .codec = on_off<&Draft::require_gpus>},
    {.name = "numa-binding", .group = Group::devices, .metavar = "MODE",
     .help = "off, node, socket, exclusive or core-complex",
     .codec = word<&Draft::numa_binding, numa_words>,
     .words = "off node socket exclusive core-complex", .torchrun = Torchrun::better,
     .difference = "no numactl; memory policy too; works without GPUs; has a variable"},
    {.name = "strict-binding", .group = Group::devices, .shape = Shape::on_off,
     .help = "a refused binding ends the job with 71", .codec = on_off<&Draft::strict_binding>},

    {.name = "log-dir", .group = Group::output, .metavar = "DIR",
     .help = "output of each rank into files below DIR",
     .more = "It must be usable, or ddrun ends with 2. /dev/null: no files at all.",
     .codec = optional_text<&Draft::log_dir>, .completes = Completes::directory,
     .torchrun = Torchrun::better, .difference = "earlier runs are never deleted",
     .featured = true},
    {.name = "redirects", .letter = 'r', .group = Group::output, .metavar = "V",
     .help = "to files only: 0 none, 1 out, 2 err, 3 both",
     .more = "One value for all, or ranges of local ranks with theirs: 0-7:3,12:1.",
     .codec = value<&Draft::redirects>,
     .form = "0, 1, 2 or 3, or ranges of local ranks with such a value: 0-7:3,12:1",
     .words = "0 1 2 3", .torchrun = Torchrun::better,
     .difference = "ranges, and ranks of more than one digit", .featured = true},
    {.name = "tee", .letter = 't', .group = Group::output, .metavar = "V",
     .help = "to files and console; also by rank: 0-7:3,12:1", .more = "Values as for --redirects.",
     .codec = value<&Draft::tee>,
     .form = "0, 1, 2 or 3, or ranges of local ranks with such a value: 0-7:3,12:1",
     .words = "0 1 2 3", .torchrun = Torchrun::better,
     .difference = "whole lines; ranges, and ranks of more than one digit", .featured = true},
    {.name = "local-ranks-filter", .group = Group::output, .shape = Shape::list, .metavar = "RANKS",
     .help = "console shows these local ranks only: 0-3,7",
     .codec = value<&Draft::local_ranks_filter>,
     .form = "ranks and ranges separated by commas: 0-3,7", .torchrun = Torchrun::better,
     .difference = "ranges"},
    {.name = "ranks-filter", .group = Group::output, .shape = Shape::list, .metavar = "RANKS",
     .help = "console shows these global ranks only: 0-3,7", .codec = value<&Draft::ranks_filter>,
     .form = "ranks and ranges separated by commas: 0-3,7"},
    {.name = "log-line-prefix-template", .group = Group::output, .metavar = "TEXT",
     .help = "before each console line; ${rank} ${node} ...",
     .more = "Known: ${rank} ${local_rank} ${node} ${role_name} ${hostname} ${attempt} ${time}; "
         "$$ is a dollar sign; none: no prefix. The default is [${rank}] and a space.",
     .codec = line_prefix, .words = "none", .torchrun = Torchrun::better,
     .difference = "the default shows the global rank; an unknown macro is refused",
     .variable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"},
    {.name = "duplicate-stdout-filters", .group = Group::output, .shape = Shape::list,
     .metavar = "TEXT,...", .help = "copy stdout lines that hold a TEXT to one file",
     .codec = texts<&Draft::duplicate_stdout_filters>, .torchrun = Torchrun::same},
    {.name = "duplicate-stderr-filters", .group = Group::output, .shape = Shape::list,
     .metavar = "TEXT,...", .help = "copy stderr lines that hold a TEXT to one file",
     .codec = texts<&Draft::duplicate_stderr_filters>, .torchrun = Torchrun::same},
    {.name = "log-strict", .group = Group::output, .shape = Shape::on_off,
     .help = "an unwritable log file ends the job (71)", .codec = on_off<&Draft::log_strict>},
    {.name = "status-file", .group = Group::output, .metavar = "FILE",
     .help = "state of the job as JSON, kept up to date",
     .more = "Replaced as a whole at each change of state.",
     .codec = optional_text<&Draft::status_file>, .completes = Completes::file},
    {.name = "event-log-handler", .group = Group::output, .metavar = "null",
     .help = "torchrun's event sink; only null is known", .codec = event_log, .words = "null",
     .torchrun = Torchrun::refused, .difference = "use --status-file",
     .no_effect = "there are no event handlers"},
    {.name = "logs-specs", .group = Group::output, .metavar = "NAME",
     .help = "refused: torchrun's plug-in for logs", .torchrun = Torchrun::refused,
     .difference = "ddrun writes logs itself; use --log-dir, --redirects and --tee"},

    {.name = "config", .group = Group::about, .metavar = "FILE",
     .help = "YAML job file: flag names, program, args",
     .codec = optional_text<&Draft::config_file>, .completes = Completes::file, .featured = true,
     .in_job_file = false},
    {.name = "print-config", .group = Group::about, .shape = Shape::on_off,
     .help = "print every value with its source; run nothing",
     .codec = on_off<&Draft::print_config>, .featured = true, .in_job_file = false},
    {.name = "dry-run", .group = Group::about, .shape = Shape::on_off,
     .help = "print what each worker would get; run nothing", .codec = on_off<&Draft::dry_run>,
     .featured = true, .in_job_file = false},
    {.name = "verbose", .letter = 'v', .group = Group::about, .shape = Shape::counted,
     .metavar = "N", .help = "say more; -vv still more",
     .more = "-v: where values come from; -vv: what agent and job are at, whenever that changes; "
         "-vvv: also when they look again.", .codec = verbose, .featured = true},
    {.name = "quiet", .letter = 'q', .group = Group::about, .shape = Shape::on_off,
     .help = "say only what went wrong", .codec = quiet},
    {.name = "help", .letter = 'h', .group = Group::about, .shape = Shape::command,
     .metavar = "all", .help = "this help; --help=all shows every flag", .words = "all",
     .featured = true, .in_job_file = false},
    {.name = "version", .letter = 'V', .group = Group::about, .shape = Shape::command,
     .help = "version and how it was built", .featured = true, .in_job_file = false},
    {.name = "print-completion", .group = Group::about, .shape = Shape::command,
     .metavar = "bash|zsh", .help = "completion script for a shell", .words = "bash zsh",
     .torchrun = Torchrun::better, .difference = "needs no package; tcsh is refused",
     .in_job_file = false},
};
// clang-format on

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
