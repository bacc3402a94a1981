#include "launcher/runtime/machine_facts.hpp"

#include "launcher/keeper/program.hpp"
#include "launcher/runtime/cgroup.hpp"
#include "launcher/runtime/cpu_topology.hpp"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string_view>

namespace ddrun::launcher {
namespace {

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// The kernel wants a mask at least as large as its own, so it grows until it fits.
std::vector<int> allowed_cpus() {
    std::vector<int> cpus;
    for (std::size_t count = 1024; count <= 65536; count *= 2) {
        const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
            CPU_ALLOC(count), [](cpu_set_t* set) { CPU_FREE(set); });
        const std::size_t bytes = CPU_ALLOC_SIZE(count);
        if (::sched_getaffinity(0, bytes, mask.get()) != 0) {
            continue;
        }
        for (std::size_t cpu = 0; cpu < count; ++cpu) {
            if (CPU_ISSET_S(cpu, bytes, mask.get())) {
                cpus.push_back(static_cast<int>(cpu));
            }
        }
        break;
    }
    return cpus;
}

bool is_device_node(const char* name) {
    constexpr std::string_view stem = "nvidia";
    const std::string_view text(name);
    return text.size() > stem.size() && text.substr(0, stem.size()) == stem &&
           text.find_first_not_of("0123456789", stem.size()) == std::string_view::npos;
}

// /dev is listed only where a driver is: two look-ups decide that on a machine without one.
std::optional<int> count_device_nodes() {
    if (::access("/dev/nvidiactl", F_OK) != 0 && ::access("/dev/nvidia0", F_OK) != 0) {
        return std::nullopt;
    }
    int count = 0;
    const std::unique_ptr<DIR, int (*)(DIR*)> devices(::opendir("/dev"), ::closedir);
    while (const dirent* entry = devices ? ::readdir(devices.get()) : nullptr) {
        count += is_device_node(entry->d_name) ? 1 : 0;
    }
    return count;
}

// The Python that the user's shell would run: an active virtual environment comes first in PATH.
std::string find_python(const Variables& environment) {
    if (const auto named = environment.find("PYTHON_EXEC");
        named != environment.end() && !named->second.empty()) {
        return named->second;
    }
    for (const char* name : {"python3", "python"}) {
        if (const auto file = keeper::find_program(name, environment); file.error_number == 0) {
            return file.path;
        }
    }
    return "python3";  // for the refusal to name
}

}  // namespace

Variables own_environment() {
    Variables variables;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        if (const char* equals = std::strchr(*entry, '='); equals != nullptr) {
            // Of two entries with one name, getenv() sees the first.
            variables.emplace(std::string(*entry, static_cast<std::size_t>(equals - *entry)),
                              equals + 1);
        }
    }
    return variables;
}

MachineFacts read_machine_facts(const JobSpec& spec, Variables environment) {
    MachineFacts facts;
    facts.node_name = host_name();
    facts.allowed_cpus = allowed_cpus();
    facts.cgroup_cpu_limit = cgroup_cpu_limit();
    facts.device_nodes = count_device_nodes();
    facts.environment = std::move(environment);
    if (spec.numa_binding != NumaBinding::off) {
        read_cpu_topology(facts);
    }
    if (decided_kind(spec) != ProgramKind::execute) {
        facts.python = find_python(facts.environment);
    }
    return facts;
}

}  // namespace ddrun::launcher
