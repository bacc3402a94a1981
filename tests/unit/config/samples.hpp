#pragma once

#include "launcher/config/option.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

// For every option some values that are right (none of them its default) and some that are wrong.
namespace ddrun::launcher {

struct Sample {
    std::vector<std::string> good;
    std::vector<std::string> bad;  // an empty value is wrong for every option and not listed
};

inline const std::map<std::string_view, Sample>& samples() {
    static const std::vector<std::string> not_yes_or_no = {"2", "maybe", "y", "TRUEE", "-1", "1.0"};
    static const std::vector<std::string> not_streams = {
        "4", "-1", "3x", "out", "0:", ":1", "0:4", "1-0:1", "0-1", "0:1,", "0:1:1", "a:1"};
    static const std::vector<std::string> not_ranks = {"-1", "a",   "0,",  ",0",     "3-1",
                                                       "0-", "0:1", "1.5", "1000000"};
    static const std::vector<std::string> not_a_duration = {"x",   "5x",    "-1", "1e3",  "1 s",
                                                            "s",   ".5",    "5.", "1,5",  "inf",
                                                            "nan", "9999h", "+1", "0x10", "1d"};
    static const std::map<std::string_view, Sample> all = {
        {"module", {{"true"}, not_yes_or_no}},
        {"no-python", {{"1"}, not_yes_or_no}},
        {"run-path", {{"yes"}, not_yes_or_no}},
        {"local-rank-flag",
         {{"--local-rank", "--local_rank"}, {"local_rank", "-", "--a=b", "--a b"}}},
        {"prefix-command",
         {{"0:gdb --args", "all:strace -f", "0-3,7:'a b' c\\ d"},
          {"gdb", "0:", "x:gdb", "0:'open", "0: ", "0:\\", "-1:gdb"}}},
        {"stdin", {{"0"}, {"x", "-1", "1.5", "0,1", "99999999999"}}},
        {"nproc-per-node",
         {{"8", "4096", "auto", "gpu", "cpu"},
          {"0", "-1", "4097", "2x", "x", "1.5", "+2", " 2", "xpu", "all", "99999999999999999999"}}},
        {"nnodes", {{}, {"0", "-1", "2x", "1:2:3", "2:1", ":", "1:", ":1", "0:1", "x"}}},
        {"node-rank", {{"0"}, {"-1", "x", "1.0"}}},
        {"spares", {{}, {"-1", "x", "1.5", "100001"}}},
        {"topology-group", {{"rack-7"}, {"a\nb"}}},
        {"role", {{"trainer"}, {std::string(256, 'r'), "a\nb"}}},
        {"standalone", {{"on"}, not_yes_or_no}},
        {"rdzv-id", {{"job-7"}, {"a\tb"}}},
        {"rdzv-endpoint",
         {{"localhost:29400", "localhost", "10.0.0.1:0", "[fd00:9::1]:29400", "fd00:9::1", "[::1]"},
          {":29400", "host:", "host:x", "host:65536", "host:-1", "fd00:9::1:29400", "[fd00::1",
           "[]:1", "a b:1", "[::1]29400", "[10.0.0.1]:1", "http://h:1"}}},
        {"rdzv-port", {{"29500"}, {"0", "-1", "65536", "x"}}},
        {"rdzv-backend", {{"c10d", "static"}, {"etcd", "etcd-v2", "zeus", "C10D"}}},
        {"rdzv-conf",
         {{"join_timeout=60", "timeout=900,is_host=true,store_type=file"},
          {"join_timeout", "join_timeout=", "join_timeout=x", "is_host=2x", "store_type=etcd",
           "jon=1", "join_timeout=-1", ",", "a=1"}}},
        {"master-addr",
         {{"10.0.0.1", "node-1.example", "[::1]"}, {"10.0.0.1:5", "a b", "[::1", "a/b"}}},
        {"master-port", {{"29500", "65535"}, {"0", "-1", "65536", "x", "29500-29510"}}},
        {"local-addr", {{"10.0.0.2"}, {"10.0.0.2:1", "a b"}}},
        {"interface", {{}, {"a\nb"}}},
        {"secret-file", {{"/run/secret"}, {}}},
        {"insecure", {{"1"}, not_yes_or_no}},
        {"join-timeout", {{"30s", "1h"}, {"0", "x", "-5s"}}},
        {"last-call", {{"0", "5s"}, not_a_duration}},
        {"heartbeat", {{"200ms", "2"}, {"0", "1ms", "x", "-5s"}}},
        {"lease", {{"10s", "1m"}, {"0", "x", "-5s"}}},
        {"rendezvous-grace", {{"0", "5m"}, not_a_duration}},
        {"status-listen", {{"127.0.0.1:9400", "[::1]:9400"}, {"127.0.0.1", ":1", "a b:1"}}},
        {"max-restarts", {{"3", "1000000"}, {"-1", "x", "1.5", "1000001", "3 ", "three"}}},
        {"no-restart-on", {{"2,126,127", "93"}, {"0", "256", "-1", "x", "1,,2", "1,", "SIGTERM"}}},
        {"restart-backoff", {{"0", "500ms", "2m"}, not_a_duration}},
        {"crash-loop", {{"3"}, {"-1", "1001", "x", "on"}}},
        {"shutdown-timeout", {{"0", "500ms", "1.5s", "10", "1h"}, not_a_duration}},
        {"hang-timeout", {{"30s", "0.5"}, {"0", "0s", "-1", "x", "none", "5x"}}},
        {"early-exit-timeout", {{"10s"}, {"0", "x", "-5s"}}},
        {"signals-to-handle",
         {{"SIGTERM", "SIGTERM,SIGUSR1", "term,15,INT"},
          {"SIGFOO", "SIGKILL", "STOP", "SIGCHLD", "SIGTERM,", "0", "65", "SIGTERM SIGINT"}}},
        {"monitor-interval", {{"0.5", "5"}, {"0", "x", "-1"}}},
        {"start-method", {{"fork", "forkserver"}, {"thread"}}},
        {"env", {{"A=1", "B=", "C=a=b c"}, {"A", "=1", "A B=1"}}},
        {"gpus",
         {{"2,4,7", " 2, 3 ", "GPU-8932f937-d72c,GPU-1", "MIG-cfb2a8ae", "-1", "0,0"},
          {"0-3", "x", "0,", "gpu0", "GPU-", "0;1"}}},
        {"agent-store", {{"on", "off"}, {"True", "1", "agent"}}},
        {"gpu-binding", {{"per-rank"}, {"per_rank", "all", "1"}}},
        {"virtual-local-rank", {{"1"}, not_yes_or_no}},
        {"require-gpus", {{"1"}, not_yes_or_no}},
        {"numa-binding",
         {{"node", "socket", "exclusive", "core-complex"}, {"numa", "1", "core_complex"}}},
        {"strict-binding", {{"1"}, not_yes_or_no}},
        {"log-dir", {{"/tmp/logs", "-dash", "with space"}, {}}},
        {"redirects", {{"3", "0:1", "0-7:3,12:1", "0-7,12:1", "10:1"}, not_streams}},
        {"tee", {{"1", "0-1:2"}, not_streams}},
        {"local-ranks-filter", {{"0", "0-3,7"}, not_ranks}},
        {"ranks-filter", {{"0", "0-3,7"}, not_ranks}},
        {"log-line-prefix-template", {{"none", "[${rank}] ", "x: "}, {}}},
        {"duplicate-stdout-filters", {{"error", "a,,b,c"}, {"a,", ",a"}}},
        {"duplicate-stderr-filters", {{"error,warning"}, {"a,"}}},
        {"log-strict", {{"1"}, not_yes_or_no}},
        {"status-file", {{"/tmp/status.json"}, {}}},
        {"event-log-handler", {{}, {"console", "dynamic_rendezvous"}}},
        {"config", {{}, {}}},
        {"print-config", {{}, not_yes_or_no}},
        {"dry-run", {{}, not_yes_or_no}},
        {"verbose", {{"1", "3"}, {"4", "-1", "x"}}},
        {"quiet", {{"1"}, not_yes_or_no}},
    };
    return all;
}

}  // namespace ddrun::launcher
