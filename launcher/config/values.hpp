#pragma once

#include "launcher/core/job_spec.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Text of a flag, variable or job-file key to a value and back. What `write` gives, `read` takes to
// the same value.
namespace ddrun::launcher::values {

// Nothing: the text was taken. Otherwise the text is not of the form; the sentence, where there is
// one, says more than "give <form>" would.
using Refusal = std::optional<std::string>;
inline const Refusal wrong_form = std::string();

struct Bounds {
    long min = 0;
    long max = 0;
};
// Digits with an optional '-'; no sign '+', space, fraction or base.
[[nodiscard]] Refusal read(std::string_view text, int& value, Bounds bounds);
[[nodiscard]] std::optional<bool> yes_or_no(std::string_view text);  // 1 0 true false yes no on off
// 500ms 10s 5m 1h, a bare number is seconds; decimals allowed; at most a year.
[[nodiscard]] Refusal read(std::string_view text, Duration& value);
[[nodiscard]] std::string write(Duration value);

[[nodiscard]] Refusal read(std::string_view text, SlotRequest& value);
[[nodiscard]] std::string write(const SlotRequest& value);
// "3", or ranges of ranks with the value of each: "0-7:3,12:1"; "0-7,12:1" gives both the same.
[[nodiscard]] Refusal read(std::string_view text, StreamMap& value);
[[nodiscard]] std::string write(const StreamMap& value);
[[nodiscard]] Refusal read(std::string_view text, RankSet& value);  // "0-3,7"
[[nodiscard]] std::string write(const RankSet& value);              // empty set: empty text
// "RANKS:COMMAND", RANKS a set or "all"; the command is cut into words like a shell does (quotes
// and backslash, nothing is expanded).
[[nodiscard]] Refusal read(std::string_view text, PrefixCommand& value);
[[nodiscard]] std::string write(const PrefixCommand& value);
[[nodiscard]] Refusal read_assignment(std::string_view text,
                                      std::pair<std::string, std::string>& value);  // K=V

[[nodiscard]] Refusal read_nodes(std::string_view text, int& min, int& max);  // N or MIN:MAX
[[nodiscard]] Refusal read_signals(std::string_view text, std::vector<int>& value);
[[nodiscard]] std::string write_signals(const std::vector<int>& value);
[[nodiscard]] Refusal read_gpus(std::string_view text, std::optional<std::string>& value);

// host[:port]; an IPv6 address with a port stands in brackets.
struct Endpoint {
    std::string host;  // without brackets
    std::optional<int> port;
};
[[nodiscard]] Refusal read(std::string_view text, Endpoint& value);
[[nodiscard]] Refusal read_host(std::string_view text, std::optional<std::string>& value);
// torchrun's KEY=VALUE,...: keys it knows, values of their kind.
[[nodiscard]] Refusal read_rendezvous_conf(std::string_view text);
// What of a right one means something here.
struct RendezvousTimes {
    std::optional<Duration> join;       // join_timeout, else timeout
    std::optional<Duration> last_call;  // last_call_timeout
};
[[nodiscard]] RendezvousTimes rendezvous_times(std::string_view text);

// Comma list; a doubled comma is a comma of the item.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);
[[nodiscard]] std::string join_list(const std::vector<std::string>& items);

// For messages: in single quotes, control and foreign bytes as \xNN, cut after 80 bytes.
[[nodiscard]] std::string quoted(std::string_view text);
// For a shell: as it is where that is safe, else in single quotes.
[[nodiscard]] std::string shell_quoted(std::string_view word);

}  // namespace ddrun::launcher::values
