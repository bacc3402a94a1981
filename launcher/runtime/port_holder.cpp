#include "launcher/runtime/port_holder.hpp"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

namespace ddrun::launcher {
namespace {

using Inodes = std::set<std::string>;
using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

// Columns of /proc/net/tcp: slot, local address:port in hex, remote, state, ..., inode as the
// tenth.
void add_tcp_inodes(const char* table, int port, Inodes& inodes) {
    constexpr auto listening = "0A";
    std::ifstream lines(table);
    std::string line;
    while (std::getline(lines, line)) {
        std::istringstream columns(line);
        std::string slot, local, remote, state, skipped, inode;
        columns >> slot >> local >> remote >> state;
        for (int i = 0; i < 5; ++i) {
            columns >> skipped;
        }
        columns >> inode;
        const std::size_t colon = local.find(':');
        if (colon != std::string::npos && state == listening &&
            std::strtol(local.c_str() + colon + 1, nullptr, 16) == port) {
            inodes.insert(inode);
        }
    }
}

// Columns of /proc/net/unix: number, references, protocol, flags, type, state, inode, path ('@' for
// zero).
void add_claim_inodes(int port, Inodes& inodes) {
    const std::string wanted = std::string("@").append(master_port_claim(port));
    std::ifstream lines("/proc/net/unix");
    std::string line;
    while (std::getline(lines, line)) {
        std::istringstream columns(line);
        std::string skipped, inode, path;
        for (int i = 0; i < 6; ++i) {
            columns >> skipped;
        }
        if (columns >> inode >> path && path == wanted) {
            inodes.insert(inode);
        }
    }
}

bool holds_one_of(const std::string& process, const Inodes& inodes) {
    const std::string folder = process + "/fd";
    const Directory descriptors(::opendir(folder.c_str()), ::closedir);
    while (const dirent* entry = descriptors ? ::readdir(descriptors.get()) : nullptr) {
        std::array<char, 64> target{};
        const std::string link = folder + "/" + entry->d_name;
        if (::readlink(link.c_str(), target.data(), target.size() - 1) <= 0) {
            continue;
        }
        const std::string text(target.data());
        if (text.rfind("socket:[", 0) == 0 && inodes.count(text.substr(8, text.size() - 9)) != 0) {
            return true;
        }
    }
    return false;
}

std::string command_of(const std::string& process) {
    std::ifstream file(process + "/cmdline", std::ios::binary);
    std::string command;
    std::getline(file, command, '\n');
    for (char& byte : command) {
        byte = byte == '\0' ? ' ' : byte;
    }
    command.resize(std::min<std::size_t>(command.size(), 120));
    while (!command.empty() && command.back() == ' ') {
        command.pop_back();
    }
    return command;
}

}  // namespace

std::string master_port_claim(int port) {
    return "ddrun/master-port/" + std::to_string(port);
}

std::string describe_port_holder(int port) {
    Inodes inodes;
    add_tcp_inodes("/proc/net/tcp", port, inodes);
    add_tcp_inodes("/proc/net/tcp6", port, inodes);
    add_claim_inodes(port, inodes);
    const std::string self = std::to_string(::getpid());
    const Directory processes(::opendir("/proc"), ::closedir);
    while (const dirent* entry =
               processes && !inodes.empty() ? ::readdir(processes.get()) : nullptr) {
        const std::string pid = entry->d_name;
        const bool process = pid.find_first_not_of("0123456789") == std::string::npos;
        if (process && pid != self && holds_one_of("/proc/" + pid, inodes)) {
            return "pid " + pid + " (" + command_of("/proc/" + pid) + ")";
        }
    }
    return {};
}

}  // namespace ddrun::launcher
