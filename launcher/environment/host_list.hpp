#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Slurm's notation for many host names, "rack[1-2]-n[01-03],login": without any program of Slurm,
// since containers have none.
namespace ddrun::launcher {

constexpr std::size_t max_hosts_in_list = 65536;  // Slurm's limit for one range, ours for a list

struct HostList {
    std::vector<std::string> hosts;  // order and duplicates as written
    std::string problem;             // what is not legal, with the place; then `hosts` is empty
};

// The names in the order of `scontrol show hostnames` (checked against Slurm 22.05). Numbers keep
// the width of the low end of their range. Of several brackets in one name the last varies fastest,
// the others from the left to the right ever slower. Refused: what Slurm refuses, and what it
// misreads: an open bracket, a ']' too many, blanks in brackets, a range without its end, letters
// in its low end, a name of several brackets one of which is bad (dropped in silence).
[[nodiscard]] HostList expand_host_list(std::string_view text);

}  // namespace ddrun::launcher
