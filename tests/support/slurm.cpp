#include "tests/support/slurm.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <stdexcept>

namespace ddrun::test {
namespace {

constexpr std::array programs = {"munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol"};

std::string path_of(const std::string& program) {
    for (const char* folder : {"/usr/sbin/", "/usr/bin/"})
        if (::access((folder + program).c_str(), X_OK) == 0) return folder + program;
    return {};
}

}  // namespace

std::string SlurmCluster::unavailable() {
    if (const std::string why = Hosts::unavailable(); !why.empty()) return why;
    for (const char* program : programs)
        if (path_of(program).empty())
            return std::string("no ") + program + " here (Debian: slurm-wlm, munge)";
    return {};
}

SlurmCluster::SlurmCluster(int nodes) : nodes_(nodes), hosts_(nodes + 1) {
    for (const char* folder : {"munge", "run", "log", "state", "spool"})
        std::filesystem::create_directory(files_.file(folder));
    ::chmod(files_.path().c_str(), 0755);
    write_configuration();
    // Every machine finds munge where programs look for it, and it is this cluster's.
    for (int host = 0; host <= nodes; ++host)
        hosts_.command(
            host, "mkdir -p /run/munge; mount --bind '" + files_.file("munge") + "' /run/munge");
    start_daemon(
        0, {path_of("munged"), "--foreground", "--force", "--key-file=" + files_.file("munge/key"),
            "--pid-file=" + files_.file("run/munged.pid"),
            "--log-file=" + files_.file("log/munged"), "--seed-file=" + files_.file("munge/seed")});
    start_daemon(0, {path_of("slurmctld"), "-D", "-f", files_.file("slurm.conf")});
    for (int host = 1; host <= nodes; ++host)
        start_daemon(host, {path_of("slurmd"), "-D", "-f", files_.file("slurm.conf"), "-N",
                            "n" + std::to_string(host)});
    if (!all_idle(20s)) throw std::runtime_error("no Slurm comes up: " + logs());
}

void SlurmCluster::write_configuration() const {
    Finished key =
        test::run({{"head", "-c", "1024", "/dev/urandom"}, {}, {}, "", false, false, {}});
    write_file(files_.file("munge/key"), key.output);
    ::chmod(files_.file("munge/key").c_str(), 0400);
    std::string text = "ClusterName=ddrun\nSlurmctldHost=n0(" + Hosts::address(0) + ")\n";
    text +=
        "SlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\nCredType=cred/munge\n"
        "AuthInfo=cred_expire=5\n"  // a requeued job waits twice as long
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
        "JobAcctGatherType=jobacct_gather/none\nSelectType=select/cons_tres\n"
        "SelectTypeParameters=CR_CPU\nMpiDefault=none\nReturnToService=2\nKillWait=5\n"
        "SlurmdParameters=config_overrides\n"
        "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,"
        "bf_interval=1,requeue_delay=0\n";
    text += "StateSaveLocation=" + files_.file("state") + "\n";
    text += "SlurmdSpoolDir=" + files_.file("spool") + "/%n\n";
    text += "SlurmctldPidFile=" + files_.file("run") + "/slurmctld.pid\n";
    text += "SlurmdPidFile=" + files_.file("run") + "/slurmd-%n.pid\n";
    text += "SlurmctldLogFile=" + files_.file("log") + "/slurmctld\n";
    text += "SlurmdLogFile=" + files_.file("log") + "/slurmd-%n\n";
    for (int node = 1; node <= nodes_; ++node) {
        const std::string name = "n" + std::to_string(node);
        text += "NodeName=" + name + " NodeAddr=" + Hosts::address(node) +
                " CPUs=8 RealMemory=2000 State=UNKNOWN\n";
        std::filesystem::create_directory(files_.file("spool") + "/" + name);
    }
    text += "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
    write_file(files_.file("slurm.conf"), text);
    write_file(files_.file("cgroup.conf"), "CgroupPlugin=cgroup/v1\n");
}

void SlurmCluster::start_daemon(int host, std::vector<std::string> argv) {
    Invocation invocation;
    invocation.argv = std::move(argv);
    invocation.env["SLURM_CONF"] = files_.file("slurm.conf");
    daemons_.push_back(std::make_unique<Program>(hosts_.on(host, std::move(invocation))));
}

std::unique_ptr<Program> SlurmCluster::start(const std::vector<std::string>& argv) const {
    Invocation invocation;
    // Entering a machine leads to its root folder.
    invocation.argv = {"sh", "-c", "cd \"$0\" && exec \"$@\"", files_.path()};
    invocation.argv.insert(invocation.argv.end(), argv.begin(), argv.end());
    invocation.env["SLURM_CONF"] = files_.file("slurm.conf");
    return std::make_unique<Program>(hosts_.on(0, std::move(invocation)));
}

Finished SlurmCluster::run(const std::vector<std::string>& argv, Milliseconds limit) const {
    const auto program = start(argv);
    Finished end;
    end.code = program->wait(limit).value_or(-1);
    end.output = program->output();
    end.errors = program->errors();
    end.left_nothing = program->leaves_nothing(2s);
    return end;
}

std::vector<std::string> SlurmCluster::srun_ddrun(std::vector<std::string> srun,
                                                  std::vector<std::string> ddrun) const {
    std::vector<std::string> words = {"srun", "--ntasks-per-node=1"};
    words.insert(words.end(), srun.begin(), srun.end());
    words.push_back(ddrun_path());
    words.insert(words.end(), ddrun.begin(), ddrun.end());
    return words;
}

bool SlurmCluster::all_idle(Milliseconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
        const Finished idle = run({"sinfo", "-h", "-t", "idle", "-o", "%D"}, 5s);
        if (idle.code == 0 &&
            lines_of(idle.output) == std::vector<std::string>{std::to_string(nodes_)}) {
            return true;
        }
        ::usleep(50'000);
    }
    return false;
}

std::string SlurmCluster::logs() const {
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(files_.file("log")))
        text += "--- " + entry.path().filename().string() + "\n" + read_file(entry.path());
    return text;
}

}  // namespace ddrun::test
