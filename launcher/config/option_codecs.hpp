#pragma once

#include "launcher/config/codecs.hpp"

#include <algorithm>
#include <array>

// Codecs that one option has for itself.
namespace ddrun::launcher::codecs {

using values::Refusal;
using Texts = std::vector<std::string>;

inline constexpr std::array<std::string_view, 5> numa_words = {"off", "node", "socket", "exclusive",
                                                               "core-complex"};
inline constexpr std::array<std::string_view, 2> gpu_binding_words = {"none", "per-rank"};
inline constexpr std::array<std::string_view, 3> agent_store_words = {"auto", "on", "off"};

inline constexpr Codec nodes = {
    [](Draft& draft, std::string_view text) {
        return values::read_nodes(text, draft.min_nodes, draft.max_nodes);
    },
    [](const Draft& draft) {
        const std::string min = std::to_string(draft.min_nodes);
        return Texts{
            draft.min_nodes == draft.max_nodes ? min : min + ":" + std::to_string(draft.max_nodes)};
    },
    [] { return std::string("N or MIN:MAX, whole numbers above zero"); }};

inline constexpr Codec endpoint = {
    [](Draft& draft, std::string_view text) {
        values::Endpoint parsed;
        Refusal refusal = values::read(text, parsed);
        if (!refusal) draft.endpoint = text;
        return refusal;
    },
    [](const Draft& draft) { return draft.endpoint.empty() ? Texts() : Texts{draft.endpoint}; },
    [] { return std::string("HOST[:PORT]"); }};

template <auto Field>
constexpr Codec host = {
    [](Draft& draft, std::string_view text) { return values::read_host(text, draft.*Field); },
    [](const Draft& draft) { return draft.*Field ? Texts{*(draft.*Field)} : Texts(); },
    [] { return std::string("a host name or an address"); }};

template <auto Field>
constexpr Codec host_and_port_or_none = {
    [](Draft& draft, std::string_view text) -> Refusal {
        values::Endpoint parsed;
        if (text == "none") {
            (draft.*Field).reset();
            return std::nullopt;
        }
        if (Refusal refusal = values::read(text, parsed)) return refusal;
        if (!parsed.port) return "the port is missing";
        draft.*Field = std::string(text);
        return std::nullopt;
    },
    [](const Draft& draft) { return Texts{(draft.*Field).value_or("none")}; },
    [] { return std::string("HOST:PORT, or none"); }};

template <auto Field>
constexpr Codec label_or_none = {
    [](Draft& draft, std::string_view text) -> Refusal {
        if (text == "none") {
            (draft.*Field).reset();
            return std::nullopt;
        }
        if (Refusal refusal = check_label(text)) return refusal;
        draft.*Field = std::string(text);
        return std::nullopt;
    },
    [](const Draft& draft) { return Texts{(draft.*Field).value_or("none")}; },
    [] { return std::string("1 to 255 characters without control characters, or none"); }};

inline constexpr Codec backend = {
    [](Draft& draft, std::string_view text) -> Refusal {
        if (text == "etcd" || text == "etcd-v2") {
            return "etcd is not used; ddrun brings its own rendezvous: leave the flag out";
        }
        if (text != "ddrun" && text != "c10d" && text != "static") return values::wrong_form;
        draft.rdzv_backend = text;
        return std::nullopt;
    },
    [](const Draft& draft) { return Texts{draft.rdzv_backend}; },
    [] { return std::string("one of ddrun, c10d, static"); }};

inline constexpr Codec rendezvous_conf = {
    [](Draft& draft, std::string_view text) {
        Refusal refusal = values::read_rendezvous_conf(text);
        if (!refusal) draft.rdzv_conf = text;
        return refusal;
    },
    [](const Draft& draft) { return draft.rdzv_conf ? Texts{*draft.rdzv_conf} : Texts(); },
    [] { return std::string("KEY=VALUE,... with torchrun's keys"); }};

inline constexpr Codec start_method = {
    [](Draft& draft, std::string_view text) -> Refusal {
        if (text != "spawn" && text != "fork" && text != "forkserver") return values::wrong_form;
        draft.start_method = text;
        return std::nullopt;
    },
    [](const Draft& draft) { return Texts{draft.start_method}; },
    [] { return std::string("one of spawn, fork, forkserver"); }};

inline constexpr Codec event_log = {
    [](Draft&, std::string_view text) -> Refusal {
        if (text == "null") return std::nullopt;
        return "ddrun has no event handlers; use --status-file for the state of the job";
    },
    [](const Draft& draft) { return Texts{draft.event_log_handler}; },
    [] { return std::string("null"); }};

// 0 and "off" both mean off.
inline constexpr Codec crash_loop = {
    [](Draft& draft, std::string_view text) -> Refusal {
        if (text != "off") return values::read(text, draft.crash_loop, values::Bounds{0, 1000});
        draft.crash_loop = 0;
        return std::nullopt;
    },
    [](const Draft& draft) {
        return Texts{draft.crash_loop == 0 ? "off" : std::to_string(draft.crash_loop)};
    },
    [] { return std::string("a whole number from 1 to 1000, or off"); }};

inline constexpr Codec exit_codes = {
    [](Draft& draft, std::string_view text) -> Refusal {
        std::vector<int> codes;
        for (const std::string& item : values::split_list(text)) {
            int code = 0;
            if (values::read(item, code, {1, 255})) return values::wrong_form;
            codes.push_back(code);
        }
        draft.no_restart_on = std::move(codes);
        return std::nullopt;
    },
    [](const Draft& draft) {
        Texts items;
        for (const int code : draft.no_restart_on) items.push_back(std::to_string(code));
        return items.empty() ? Texts() : Texts{values::join_list(items)};
    },
    [] { return std::string("exit codes from 1 to 255, separated by commas"); }};

inline constexpr Codec signals = {
    [](Draft& draft, std::string_view text) {
        return values::read_signals(text, draft.stop_signals);
    },
    [](const Draft& draft) { return Texts{values::write_signals(draft.stop_signals)}; },
    [] { return std::string("signal names separated by commas, such as SIGTERM,SIGUSR1"); }};

// A later entry of the same name replaces the earlier one, in its place.
inline constexpr std::size_t most_assignments = 4096;
inline constexpr Codec assignments = {
    [](Draft& draft, std::string_view text) -> Refusal {
        std::pair<std::string, std::string> entry;
        if (Refusal refusal = values::read_assignment(text, entry)) return refusal;
        for (auto& known : draft.extra_env) {
            if (known.first != entry.first) continue;
            known.second = std::move(entry.second);
            return std::nullopt;
        }
        if (draft.extra_env.size() >= most_assignments) return "more than 4096 variables";
        draft.extra_env.push_back(std::move(entry));
        return std::nullopt;
    },
    [](const Draft& draft) {
        Texts texts;
        for (const auto& [name, value] : draft.extra_env) texts.push_back(name + "=" + value);
        return texts;
    },
    [] { return std::string("NAME=VALUE"); }};

inline constexpr Codec gpu_list = {
    [](Draft& draft, std::string_view text) { return values::read_gpus(text, draft.gpus); },
    [](const Draft& draft) { return draft.gpus ? Texts{*draft.gpus} : Texts(); },
    [] { return std::string("device indexes, GPU-... or MIG-... names, separated by commas"); }};

inline constexpr Codec prefix_commands = {
    [](Draft& draft, std::string_view text) -> Refusal {
        PrefixCommand command;
        if (Refusal refusal = values::read(text, command)) return refusal;
        draft.prefix_commands.push_back(std::move(command));
        return std::nullopt;
    },
    [](const Draft& draft) {
        Texts texts;
        for (const PrefixCommand& command : draft.prefix_commands) {
            texts.push_back(values::write(command));
        }
        return texts;
    },
    [] { return std::string("RANKS:COMMAND, for example 0:'gdb --args'"); }};

inline constexpr Codec local_rank_flag = {
    [](Draft& draft, std::string_view text) -> Refusal {
        if (text == "none") {
            draft.local_rank_flag.reset();
            return std::nullopt;
        }
        const bool fits =
            text.size() >= 2 && text.front() == '-' && text.find_first_of("= \t\n") == text.npos;
        if (!fits) return values::wrong_form;
        draft.local_rank_flag = std::string(text);
        return std::nullopt;
    },
    [](const Draft& draft) { return Texts{draft.local_rank_flag.value_or("none")}; },
    [] { return std::string("a flag such as --local-rank or --local_rank, or none"); }};

inline constexpr Codec line_prefix = {
    [](Draft& draft, std::string_view text) -> Refusal {
        draft.line_prefix = text == "none" ? std::string() : std::string(text);
        return std::nullopt;
    },
    [](const Draft& draft) {
        if (!draft.line_prefix) return Texts();
        return Texts{draft.line_prefix->empty() ? "none" : *draft.line_prefix};
    },
    [] { return std::string("a text with ${rank}, ${local_rank}, ${node} ..., or none"); }};

// Two words for one field: what is said last counts.
inline constexpr Codec verbose = {
    [](Draft& draft, std::string_view text) {
        return values::read(text, draft.verbosity, values::Bounds{0, 3});
    },
    [](const Draft& draft) { return Texts{std::to_string(std::max(0, draft.verbosity))}; },
    [] { return std::string("a whole number from 0 to 3"); }};
inline constexpr Codec quiet = {
    [](Draft& draft, std::string_view text) -> Refusal {
        const std::optional<bool> answer = values::yes_or_no(text);
        if (!answer) return values::wrong_form;
        if (*answer || draft.verbosity < 0) draft.verbosity = *answer ? -1 : 0;
        return std::nullopt;
    },
    [](const Draft& draft) { return Texts{draft.verbosity < 0 ? "true" : "false"}; },
    on_off<&Draft::log_strict>.form};

}  // namespace ddrun::launcher::codecs
