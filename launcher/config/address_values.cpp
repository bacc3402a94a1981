#include "launcher/config/suggest.hpp"
#include "launcher/config/values.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

// Values that name something outside: addresses, devices, variables, torchrun's rendezvous keys.
namespace ddrun::launcher::values {
namespace {

constexpr Bounds port_numbers = {0, 65535};

bool is_ipv6(std::string_view text) {
    in6_addr address;
    const std::string without_scope(text.substr(0, text.find('%')));
    return ::inet_pton(AF_INET6, without_scope.c_str(), &address) == 1;
}

bool is_host_name(std::string_view text) {
    constexpr std::size_t longest_name = 253;
    return !text.empty() && text.size() <= longest_name &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '.' || c == '_';
           });
}

Refusal read_port(std::string_view text, std::optional<int>& port) {
    int number = 0;
    if (read(text, number, port_numbers)) {
        return "port " + quoted(text) + " is not a number from 0 to 65535";
    }
    port = number;
    return std::nullopt;
}

// "[addr]" or "[addr]:port".
Refusal read_bracketed(std::string_view text, Endpoint& value) {
    const std::size_t close = text.find(']');
    if (close == text.npos) return "a bracket is left open";
    value.host = text.substr(1, close - 1);
    if (!is_ipv6(value.host)) return quoted(value.host) + " is not an IPv6 address";
    const std::string_view rest = text.substr(close + 1);
    if (rest.empty()) return std::nullopt;
    if (rest.front() != ':') return wrong_form;
    return read_port(rest.substr(1), value.port);
}

enum class KeyKind { seconds, count, on_off, store };
struct ConfKey {
    std::string_view name;
    KeyKind kind;
};
constexpr std::array<ConfKey, 10> conf_keys = {{{"join_timeout", KeyKind::seconds},
                                                {"last_call_timeout", KeyKind::seconds},
                                                {"close_timeout", KeyKind::seconds},
                                                {"heartbeat_timeout", KeyKind::seconds},
                                                {"keep_alive_interval", KeyKind::seconds},
                                                {"keep_alive_max_attempt", KeyKind::count},
                                                {"read_timeout", KeyKind::seconds},
                                                {"timeout", KeyKind::seconds},
                                                {"is_host", KeyKind::on_off},
                                                {"store_type", KeyKind::store}}};

Refusal check_conf_value(const ConfKey& key, std::string_view text) {
    int number = 0;
    const std::string name(key.name);
    switch (key.kind) {
        case KeyKind::seconds:
        case KeyKind::count:
            if (!read(text, number, {0, 31'536'000})) return std::nullopt;
            return name + " is a whole number" + (key.kind == KeyKind::count ? "" : " of seconds");
        case KeyKind::on_off:
            if (yes_or_no(text)) return std::nullopt;
            return name + " is true or false";
        case KeyKind::store:
            if (text == "tcp" || text == "file") return std::nullopt;
            return name + " is tcp or file";
    }
    return wrong_form;
}

Refusal check_conf_pair(std::string_view pair) {
    const std::size_t equals = pair.find('=');
    if (equals == pair.npos) return quoted(pair) + " is not KEY=VALUE";
    const std::string_view name = pair.substr(0, equals);
    for (const ConfKey& key : conf_keys) {
        if (key.name == name) return check_conf_value(key, pair.substr(equals + 1));
    }
    std::vector<std::string_view> names;
    for (const ConfKey& key : conf_keys) names.push_back(key.name);
    const std::optional<std::string_view> near = nearest(name, names);
    return "there is no key " + quoted(name) +
           (near ? "; did you mean " + std::string(*near) + "?" : "");
}

bool is_variable_name(std::string_view text) {
    constexpr std::size_t longest_name = 255;
    return text.size() <= longest_name &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool is_gpu_entry(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    if (text.starts_with("GPU-") || text.starts_with("MIG-")) return text.size() > 4;
    int number = 0;
    return !read(text, number, {-1, 4095});
}

}  // namespace

Refusal read(std::string_view text, Endpoint& value) {
    Endpoint endpoint;
    if (text.starts_with('[')) {
        if (const Refusal refusal = read_bracketed(text, endpoint)) return refusal;
    } else if (std::count(text.begin(), text.end(), ':') > 1) {
        if (!is_ipv6(text)) return "write an IPv6 address with a port as [addr]:port";
        endpoint.host = text;
    } else {
        const std::size_t colon = text.find(':');
        endpoint.host = text.substr(0, colon);
        if (endpoint.host.empty()) return "the host is empty; was a variable unset?";
        if (!is_host_name(endpoint.host)) return quoted(endpoint.host) + " is not a host name";
        if (colon != text.npos) {
            if (const Refusal refusal = read_port(text.substr(colon + 1), endpoint.port))
                return refusal;
        }
    }
    value = std::move(endpoint);
    return std::nullopt;
}

Refusal read_host(std::string_view text, std::optional<std::string>& value) {
    Endpoint endpoint;
    if (const Refusal refusal = read(text, endpoint)) return refusal;
    if (endpoint.port) return "a port belongs into --master-port";
    value = endpoint.host;
    return std::nullopt;
}

Refusal read_rendezvous_conf(std::string_view text) {
    for (const std::string& pair : split_list(text)) {
        if (const Refusal refusal = check_conf_pair(pair)) return refusal;
    }
    return std::nullopt;
}

RendezvousTimes rendezvous_times(std::string_view text) {
    RendezvousTimes times;
    std::optional<Duration> timeout;
    for (const std::string& pair : split_list(text)) {
        const std::size_t equals = pair.find('=');
        const std::string key = pair.substr(0, equals);
        Duration value{};
        if (equals == pair.npos || read(pair.substr(equals + 1), value)) continue;
        if (key == "join_timeout") times.join = value;
        if (key == "timeout") timeout = value;
        if (key == "last_call_timeout") times.last_call = value;
    }
    if (!times.join) times.join = timeout;
    return times;
}

Refusal read_gpus(std::string_view text, std::optional<std::string>& value) {
    for (const std::string& entry : split_list(text)) {
        if (is_gpu_entry(entry)) continue;
        return quoted(entry) + " is none of these (CUDA knows no ranges)";
    }
    value = text;
    return std::nullopt;
}

Refusal read_assignment(std::string_view text, std::pair<std::string, std::string>& value) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos) {
        return "there is no '='; workers inherit ddrun's own environment, so a name alone is not "
               "needed";
    }
    if (equals == 0) return "the name before '=' is empty";
    if (!is_variable_name(text.substr(0, equals))) {
        return "a variable's name has at most 255 printable characters and no space";
    }
    value = {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
    return std::nullopt;
}

}  // namespace ddrun::launcher::values
