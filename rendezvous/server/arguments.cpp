#include "rendezvous/server/arguments.hpp"

#include <algorithm>
#include <charconv>

namespace ddrun::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::string_view usage_head =
    R"(usage: ddrun-rendezvous --listen=ADDR[:PORT] [FLAGS]

The place where the nodes of jobs meet, for any number of jobs, on its own: it runs no worker.
Nodes come with: ddrun --nnodes=N --rdzv-id=JOB --rdzv-endpoint=HOST:PORT ...
All who meet here need the same secret: --secret-file, DDRUN_SECRET_FILE, DDRUN_SECRET or
~/.config/ddrun/secret, first hit wins.

)";
constexpr std::string_view usage_tail = R"(
Ends with 2 for wrong usage, 71 where the address cannot be had, 128+s by signal s.
)";

std::string spelled(const Flag& flag) {
    std::string text = std::string("--").append(flag.name);
    if (!flag.metavar.empty()) text.append("=").append(flag.metavar);
    return text;
}

std::string usage() {
    std::string text(usage_head);
    for (const Flag& flag : flags()) {
        std::string line = "  " + spelled(flag);
        line.resize(std::max<std::size_t>(line.size() + 2, 30), ' ');
        text += line.append(flag.help) + "\n";
    }
    return text.append(usage_tail);
}

const Flag* find_flag(std::string_view word) {
    std::string name(word.substr(0, word.find('=')));
    std::replace(name.begin(), name.end(), '_', '-');
    for (const Flag& flag : flags()) {
        if (name == std::string("--").append(flag.name)) return &flag;
    }
    return nullptr;
}

// "10.9.0.1:29400", "[::]:29400", "::1", "localhost" is none: an address is chosen, not looked up.
std::variant<tcp::endpoint, UsageError> endpoint_of(const Flag& flag, const std::string& value,
                                                    std::optional<int> default_port) {
    const auto wrong = [&](const std::string& why) {
        return UsageError{spelled(flag) + ": '" + value + "' " + why};
    };
    std::string host = value, port;
    const bool bracketed = !value.empty() && value.front() == '[';
    const std::size_t colon = value.rfind(':');
    const bool has_port = colon != std::string::npos &&
                          (bracketed ? value[colon - 1] == ']' : value.find(':') == colon);
    if (has_port) {
        host = value.substr(0, colon);
        port = value.substr(colon + 1);
    }
    if (bracketed && host.back() == ']') host = host.substr(1, host.size() - 2);
    boost::system::error_code error;
    const auto address = asio::ip::make_address(host, error);
    if (error) {
        return wrong(
            "is no numeric address and port, such as 10.9.0.1:29400; 0.0.0.0 is every "
            "IPv4 address of this machine, [::] every address");
    }
    if (!has_port) {
        if (!default_port) return wrong("has no port");
        return tcp::endpoint(address, static_cast<unsigned short>(*default_port));
    }
    unsigned number = 0;
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (failed != std::errc{} || end != port.data() + port.size() || number > 65535) {
        return wrong("has no port of 0 to 65535");
    }
    return tcp::endpoint(address, static_cast<unsigned short>(number));
}

// Takes one flag into `arguments`; words: what is wrong with it.
std::optional<UsageError> take(Arguments& arguments, const Flag& flag, const std::string& value) {
    const auto endpoint = [&](auto& into, std::optional<int> port) -> std::optional<UsageError> {
        auto result = endpoint_of(flag, value, port);
        if (auto* error = std::get_if<UsageError>(&result)) return std::move(*error);
        into = std::get<tcp::endpoint>(result);
        return std::nullopt;
    };
    if (!flag.metavar.empty() && value.empty()) return UsageError{spelled(flag) + ": it is empty"};
    if (flag.name == "listen") return endpoint(arguments.listen, default_rendezvous_port);
    if (flag.name == "status-listen") return endpoint(arguments.status_listen, std::nullopt);
    if (flag.name == "secret-file") arguments.secret_file = value;
    if (flag.name == "state-file") arguments.state_file = value;
    if (flag.name == "insecure") arguments.insecure = true;
    if (flag.name == "quiet") arguments.quiet = true;
    return std::nullopt;
}

}  // namespace

const std::vector<Flag>& flags() {
    static const std::vector<Flag> all = {
        {"listen", "ADDR[:PORT]", "listen on this address only (0.0.0.0, [::]: all); port 29400"},
        {"secret-file", "FILE", "the secret of all jobs that meet here"},
        {"insecure", "", "neither authentication nor encryption; nodes need it too"},
        {"status-listen", "ADDR:PORT",
         "GET /healthz, /status (JSON), /metrics (Prometheus); off by default"},
        {"state-file", "FILE", "remember over a restart which jobs are running"},
        {"quiet", "", "say only what is wrong"},
        {"help", "", "this text"},
        {"version", "", "the version"},
    };
    return all;
}

ArgumentsResult parse_arguments(const std::vector<std::string>& words, std::string_view version) {
    Arguments arguments;
    bool listens = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const Flag* flag = word == "-h" ? find_flag("--help") : find_flag(word);
        if (flag == nullptr) {
            return UsageError{"unknown argument '" + word + "'; see ddrun-rendezvous --help"};
        }
        if (flag->name == "help") return PrintAndExit{usage()};
        if (flag->name == "version") {
            return PrintAndExit{std::string("ddrun-rendezvous ").append(version) + "\n"};
        }
        const std::size_t equals = word.find('=');
        std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if (flag->metavar.empty() && equals != std::string::npos) {
            return UsageError{spelled(*flag) + ": it takes no value"};
        }
        if (!flag->metavar.empty() && equals == std::string::npos) {
            if (++i == words.size()) return UsageError{spelled(*flag) + ": the value is missing"};
            value = words[i];
        }
        if (auto error = take(arguments, *flag, value)) return std::move(*error);
        listens = listens || flag->name == "listen";
    }
    if (!listens) {
        return UsageError{
            "--listen=ADDR[:PORT] is missing: the address of this machine that the nodes' "
            "--rdzv-endpoint means, or 0.0.0.0 or [::] for every address it has"};
    }
    return arguments;
}

}  // namespace ddrun::rendezvous
