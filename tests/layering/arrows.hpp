#pragma once

#include <string>
#include <vector>

// The arrows of the house: what each folder may include. A folder not listed here may not exist.
namespace ddrun::layering {

struct Folder {
    std::string path;   // from the repository root
    bool pure = false;  // decisions only: no I/O, thread, clock, environment, chance
    std::vector<std::string> may_include;  // folders of ours, besides itself
    std::vector<std::string> owns;         // third-party header prefixes only this folder may use
};

inline const std::vector<Folder>& folders() {
    static const std::vector<Folder> all = {
        {"rendezvous/protocol", true, {}, {}},
        {"rendezvous/core", true, {"rendezvous/protocol"}, {}},
        {"rendezvous/tcpstore", true, {}, {}},
        {"rendezvous/transport",
         false,
         {"rendezvous/protocol", "rendezvous/platform"},
         {"boost/asio", "boost/system", "openssl/", "munge.h"}},
        {"rendezvous/server",
         false,
         {"rendezvous/transport", "rendezvous/core", "rendezvous/protocol", "rendezvous/platform",
          "rendezvous/tcpstore"},
         {"boost/asio", "boost/system", "boost/beast", "boost/json"}},
        {"rendezvous/client",
         false,
         {"rendezvous/transport", "rendezvous/core", "rendezvous/protocol", "rendezvous/platform"},
         {"boost/asio", "boost/system"}},
        {"rendezvous/platform", false, {"rendezvous/protocol"}, {"spdlog/", "fmt/"}},
        {"launcher/core", true, {"rendezvous/protocol"}, {}},
        {"launcher/environment", true, {"launcher/core", "rendezvous/protocol"}, {}},
        {"launcher/config",
         false,
         {"launcher/core", "launcher/environment", "rendezvous/protocol", "rendezvous/platform"},
         {"yaml-cpp/"}},
        {"launcher/keeper",
         false,
         {"launcher/core", "rendezvous/protocol", "rendezvous/platform"},
         {"boost/process", "boost/asio"}},
        {"launcher/runtime/output",
         false,
         {"launcher/core", "rendezvous/protocol", "rendezvous/platform"},
         {}},
        {"launcher/runtime",
         false,
         {"launcher/runtime/output", "launcher/core", "launcher/config", "launcher/environment",
          "launcher/keeper", "rendezvous/client", "rendezvous/server", "rendezvous/transport",
          "rendezvous/core", "rendezvous/protocol", "rendezvous/platform"},
         {"boost/asio", "boost/system"}},
        {"launcher",
         false,  // main.cpp
         {"launcher/runtime", "launcher/keeper", "launcher/config", "launcher/core",
          "rendezvous/platform", "rendezvous/protocol"},
         {}},
        {"worker_sdk/include", false, {}, {}},
        {"worker_sdk/core", true, {"worker_sdk/include", "rendezvous/protocol"}, {}},
        {"worker_sdk/src",
         false,
         {"worker_sdk/include", "worker_sdk/core", "rendezvous/protocol", "rendezvous/platform"},
         {}},
        {"examples", false, {"worker_sdk/include"}, {"cblas", "openblas"}},
    };
    return all;
}

// Headers a pure folder may not see: they bring the outside world in.
inline const std::vector<std::string>& impure_headers() {
    static const std::vector<std::string> all = {
        "boost/",
        "spdlog/",
        "fmt/",
        "yaml-cpp/",
        "cuda",
        "nccl",
        "sys/",
        "netinet/",
        "arpa/",
        "linux/",
        "unistd.h",
        "signal.h",
        "csignal",
        "fcntl.h",
        "poll.h",
        "dlfcn.h",
        "sched.h",
        "spawn.h",
        "pthread.h",
        "thread",
        "mutex",
        "shared_mutex",
        "condition_variable",
        "future",
        "atomic",
        "semaphore",
        "latch",
        "barrier",
        "stop_token",
        "random",
        "filesystem",
        "fstream",
        "iostream",
        "ctime",
        "time.h",
    };
    return all;
}

// Words a pure folder may not contain: a clock read, the environment, chance.
inline const std::vector<std::string>& impure_words() {
    static const std::vector<std::string> all = {"_clock::now", "getenv",     "random_device",
                                                 "std::rand",   "std::time(", "environ["};
    return all;
}

}  // namespace ddrun::layering
