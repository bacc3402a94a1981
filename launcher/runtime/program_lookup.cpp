#include "launcher/runtime/program_lookup.hpp"

#include "launcher/keeper/program.hpp"
#include "launcher/runtime/refusal.hpp"
#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/exit_status.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>

namespace ddrun::launcher {
namespace {

struct Found {
    std::string path;  // the file that decided; the name itself when PATH has none
    int error_number = 0;
    std::string reason;  // in words, when the error number alone would mislead
    bool searched = false;
};

// The interpreter a script asks for: what stands after "#!", up to a blank or the end of the line.
// A carriage return is part of the name, as it is for the kernel.
std::string script_interpreter(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::array<char, 256> head{};
    const ssize_t size = file ? ::read(file.get(), head.data(), head.size()) : -1;
    if (size < 2 || head[0] != '#' || head[1] != '!') {
        return {};
    }
    std::string_view line(head.data() + 2, static_cast<std::size_t>(size) - 2);
    line = line.substr(0, line.find('\n'));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return std::string(line.substr(0, line.find_first_of(" \t")));
}

std::string visible(const std::string& text) {
    std::string shown;
    for (const char byte : text) {
        shown += byte == '\r' ? std::string("\\r") : std::string(1, byte);
    }
    return shown;
}

Found probe(const std::string& path) {
    Found found{path, 0, {}, false};
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) {
        found.error_number = errno;
    } else if (S_ISDIR(facts.st_mode)) {
        found.error_number = EISDIR;
    } else if (::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) {
        found.error_number = errno;
    } else if (const std::string interpreter = script_interpreter(path);
               !interpreter.empty() && ::access(interpreter.c_str(), F_OK) != 0) {
        found.error_number = ENOENT;  // the kernel's answer too
        found.reason = "interpreter '" + visible(interpreter) + "' not found";
        if (interpreter.back() == '\r') {
            found.reason += " (the script has Windows line ends)";
        }
    }
    return found;
}

// The file that the keeper would execute, with the same PATH.
Found find_program(const std::string& name, const Variables& environment) {
    if (name.find('/') != std::string::npos) {
        return probe(name);
    }
    const std::string path = keeper::find_program(name, environment).path;
    Found found = path.empty() ? Found{name, ENOENT, {}, true} : probe(path);
    found.searched = true;
    return found;
}

std::string working_directory() {
    std::array<char, PATH_MAX> buffer{};
    return ::getcwd(buffer.data(), buffer.size()) != nullptr ? buffer.data() : std::string();
}

mode_t mode_of(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 ? facts.st_mode : 0;
}

// What a person most likely meant; empty: no idea.
std::string advice(const std::string& name, const Found& found) {
    if (found.searched && found.path == name && S_ISREG(mode_of("./" + name))) {
        return "; did you mean ./" + name + "?";
    }
    const mode_t mode = mode_of(found.path);
    if (found.error_number == EACCES && S_ISREG(mode) && (mode & 0111) == 0) {
        return "; it is not marked executable: chmod +x";
    }
    return {};
}

std::string sentence(const std::string& name, const Found& found) {
    const std::string directory = working_directory();
    const bool relative = found.path.empty() || found.path.front() != '/';
    std::string words = "cannot start '" + name + "': ";
    words += found.reason.empty() ? error_text(found.error_number) : found.reason;
    if (found.searched && found.path == name) {
        words += " in any directory of PATH";
    } else {
        words += " (" + (relative && !directory.empty() ? directory + "/" : "") + found.path + ")";
    }
    words += "; working directory " + (directory.empty() ? "was removed" : directory);
    words += found.searched ? "; PATH was searched" : "; PATH was not searched";
    return words + advice(name, found);
}

void require_executable(const std::string& name, const Variables& environment) {
    const Found found = find_program(name, environment);
    if (found.error_number != 0) {
        throw Refusal(exec_failure_code(found.error_number), sentence(name, found));
    }
}

// A script under an interpreter only has to be readable.
void require_script(const std::string& path) {
    Found found{path, 0, {}, false};
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0 || ::access(path.c_str(), R_OK) != 0) {
        found.error_number = errno;
        throw Refusal(exec_failure_code(found.error_number), sentence(path, found));
    }
}

}  // namespace

void require_program(const JobSpec& spec, const MachineFacts& facts) {
    if (working_directory().empty()) {
        throw Refusal(exit_code::not_found,
                      "cannot start '" + spec.program +
                          "': the working directory was removed or cannot be read (" +
                          error_text(errno) + "); change to another directory");
    }
    Variables environment = facts.environment;
    for (const auto& [name, value] : spec.extra_env) {
        environment[name] = value;
    }
    const ProgramKind kind = decided_kind(spec);
    if (kind == ProgramKind::script) {
        require_script(spec.program);
    }
    require_executable(kind == ProgramKind::execute ? spec.program : facts.python, environment);
    for (const PrefixCommand& prefix : spec.prefix_commands) {
        if (!prefix.words.empty()) {
            require_executable(prefix.words.front(), environment);
        }
    }
}

std::string exec_failure_words(const std::string& program, const Variables& environment,
                               int error_number) {
    Found found = find_program(program, environment);
    if (found.error_number != error_number) {
        found.error_number = error_number;
        found.reason.clear();
    }
    if (error_number == ENOEXEC) {
        found.reason = error_text(ENOEXEC) +
                       ": neither a program for this machine nor a script that starts with #!";
    }
    return sentence(program, found);
}

int exec_failure_code(int error_number) {
    return error_number == ENOENT || error_number == ENOTDIR ? exit_code::not_found
                                                             : exit_code::not_executable;
}

}  // namespace ddrun::launcher
