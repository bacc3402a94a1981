#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The command line of ddrun-rendezvous.
namespace ddrun::rendezvous {

constexpr int default_rendezvous_port = 29400;

struct Arguments {
    boost::asio::ip::tcp::endpoint listen;
    std::optional<std::string> secret_file;
    bool insecure = false;
    std::optional<boost::asio::ip::tcp::endpoint> status_listen;
    std::optional<std::string> state_file;
    bool quiet = false;
};
struct PrintAndExit {  // --help, --version
    std::string text;
};
struct UsageError {
    std::string words;
};
using ArgumentsResult = std::variant<Arguments, PrintAndExit, UsageError>;

// `words`: without the program's name. Both --some-flag and --some_flag, both `=` and a word of its
// own for the value; no abbreviations.
[[nodiscard]] ArgumentsResult parse_arguments(const std::vector<std::string>& words,
                                              std::string_view version);

struct Flag {
    std::string_view name;     // without the dashes
    std::string_view metavar;  // empty: takes no value
    std::string_view help;
};
[[nodiscard]] const std::vector<Flag>& flags();  // in the order of --help

}  // namespace ddrun::rendezvous
