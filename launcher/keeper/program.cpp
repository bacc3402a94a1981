#include "launcher/keeper/program.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace ddrun::launcher::keeper {
namespace {

constexpr std::string_view default_path = "/bin:/usr/bin";

int why_not_executable(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return errno;
    if (!S_ISREG(facts.st_mode)) return EACCES;
    return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

}  // namespace

ProgramFile find_program(const std::string& name, const Variables& environment) {
    if (name.find('/') != std::string::npos) return {name, 0};
    const auto variable = environment.find("PATH");
    std::string_view rest = variable != environment.end() ? variable->second : default_path;
    ProgramFile best{"", ENOENT};
    while (!name.empty()) {
        const std::string_view directory = rest.substr(0, rest.find(':'));
        std::string path = (directory.empty() ? "." : std::string(directory)) + "/" + name;
        const int error_number = why_not_executable(path);
        if (error_number == 0) return {path, 0};
        const bool exists = error_number != ENOENT && error_number != ENOTDIR;
        if (exists && best.path.empty()) best = {path, error_number};
        if (directory.size() == rest.size()) break;
        rest.remove_prefix(directory.size() + 1);
    }
    return best;
}

}  // namespace ddrun::launcher::keeper
