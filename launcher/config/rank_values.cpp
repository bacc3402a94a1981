#include "launcher/config/values.hpp"

#include <algorithm>
#include <array>

// Values that name ranks: workers per node, streams by rank, sets of ranks, prefix commands.
namespace ddrun::launcher::values {
namespace {

constexpr Bounds worker_count = {1, 4096};
constexpr Bounds any_rank = {0, 999'999};
constexpr std::size_t most_ranges = 4096;

struct SlotWord {
    std::string_view word;
    SlotSource source;
};
constexpr std::array<SlotWord, 3> slot_words = {
    {{"auto", SlotSource::automatic}, {"gpu", SlotSource::gpu}, {"cpu", SlotSource::cpu}}};

// "7" or "0-7".
Refusal read(std::string_view text, RankRange& value) {
    const std::size_t dash = text.find('-', 1);
    RankRange range;
    if (values::read(text.substr(0, dash), range.first, any_rank)) return wrong_form;
    range.last = range.first;
    if (dash != text.npos) {
        const Bounds upward = {range.first, any_rank.max};
        if (values::read(text.substr(dash + 1), range.last, upward)) return wrong_form;
    }
    value = range;
    return std::nullopt;
}

std::string write(const RankRange& range) {
    std::string text = std::to_string(range.first);
    return range.first == range.last ? text : text + "-" + std::to_string(range.last);
}

Refusal read(std::string_view text, Streams& value) {
    int number = 0;
    if (values::read(text, number, {0, 3})) {
        return "the streams are 0 none, 1 stdout, 2 stderr, 3 both";
    }
    value = static_cast<Streams>(number);
    return std::nullopt;
}

// Words as a shell would cut them, without expansions. False: an open quote or a trailing
// backslash.
class WordCutter {
  public:
    bool cut(std::string_view text, std::vector<std::string>& words) {
        for (const char c : text) take(c);
        finish_word();
        words = std::move(words_);
        return quote_ == 0 && !escaped_;
    }

  private:
    void take(char c) {
        if (escaped_) {
            if (quote_ == '"' && c != '"' && c != '\\') word_ += '\\';
            word_ += c;
            escaped_ = false;
        } else if (c == '\\' && quote_ != '\'') {
            escaped_ = in_word_ = true;
        } else if (quote_ != 0) {
            if (c == quote_)
                quote_ = 0;
            else
                word_ += c;
        } else if (c == '\'' || c == '"') {
            quote_ = c;
            in_word_ = true;
        } else if (c == ' ' || c == '\t' || c == '\n') {
            finish_word();
        } else {
            word_ += c;
            in_word_ = true;
        }
    }
    void finish_word() {
        if (in_word_) words_.push_back(std::move(word_));
        word_.clear();
        in_word_ = false;
    }

    std::vector<std::string> words_;
    std::string word_;
    bool in_word_ = false;
    bool escaped_ = false;
    char quote_ = 0;
};

}  // namespace

Refusal read(std::string_view text, SlotRequest& value) {
    for (const SlotWord& word : slot_words) {
        if (text == word.word) {
            value = {word.source, 0};
            return std::nullopt;
        }
    }
    if (text == "xpu") return "ddrun does not count xpu devices; give their number";
    SlotRequest request;
    if (const Refusal refusal = read(text, request.number, worker_count)) return refusal;
    value = request;
    return std::nullopt;
}

std::string write(const SlotRequest& value) {
    for (const SlotWord& word : slot_words) {
        if (value.source == word.source) return std::string(word.word);
    }
    return std::to_string(value.number);
}

Refusal read_nodes(std::string_view text, int& min, int& max) {
    const std::size_t colon = text.find(':');
    constexpr Bounds node_count = {1, 1'000'000};
    int least = 0;
    if (read(text.substr(0, colon), least, node_count)) return wrong_form;
    int most = least;
    if (colon != text.npos && read(text.substr(colon + 1), most, {1, node_count.max})) {
        return wrong_form;
    }
    if (least > most) return "MIN is above MAX";
    min = least;
    max = most;
    return std::nullopt;
}

Refusal read(std::string_view text, StreamMap& value) {
    StreamMap map;
    const std::vector<std::string> items = split_list(text);
    if (items.size() > most_ranges) return "more than 4096 ranges";
    if (items.size() == 1 && text.find(':') == text.npos) {
        if (const Refusal refusal = read(text, map.otherwise)) return refusal;
        value = map;
        return std::nullopt;
    }
    std::size_t without_value = 0;  // ranges that wait for the value behind a later one
    for (const std::string_view item : items) {
        const std::size_t colon = item.find(':');
        RankRange range;
        if (read(item.substr(0, colon), range)) return quoted(item) + " is not RANKS:STREAMS";
        map.ranges.emplace_back(range, Streams::none);
        ++without_value;
        if (colon == item.npos) continue;
        Streams streams = Streams::none;
        if (const Refusal refusal = read(item.substr(colon + 1), streams)) return refusal;
        for (; without_value > 0; --without_value) {
            (map.ranges.end() - static_cast<std::ptrdiff_t>(without_value))->second = streams;
        }
    }
    if (without_value > 0) return quoted(items.back()) + " has no value behind a colon";
    value = std::move(map);
    return std::nullopt;
}

std::string write(const StreamMap& value) {
    if (value.ranges.empty()) return std::to_string(static_cast<int>(value.otherwise));
    std::string text;
    for (const auto& [range, streams] : value.ranges) {
        if (!text.empty()) text += ',';
        text += write(range) + ":" + std::to_string(static_cast<int>(streams));
    }
    return text;
}

Refusal read(std::string_view text, RankSet& value) {
    RankSet set;
    for (const std::string& item : split_list(text)) {
        RankRange range;
        if (read(item, range)) return quoted(item) + " is neither a rank nor a range of ranks";
        set.ranges.push_back(range);
    }
    if (set.ranges.size() > most_ranges) return "more than 4096 ranges";
    value = std::move(set);
    return std::nullopt;
}

std::string write(const RankSet& value) {
    std::string text;
    for (const RankRange& range : value.ranges)
        text.append(text.empty() ? "" : ",").append(write(range));
    return text;
}

Refusal read(std::string_view text, PrefixCommand& value) {
    const std::size_t colon = text.find(':');
    if (colon == text.npos) return wrong_form;
    PrefixCommand command;
    const std::string_view ranks = text.substr(0, colon);
    if (ranks != "all") {
        if (const Refusal refusal = read(ranks, command.ranks)) return refusal;
    }
    if (!WordCutter().cut(text.substr(colon + 1), command.words)) return "a quote is left open";
    if (command.words.empty() || command.words.front().empty())
        return "there is no command after the colon";
    value = std::move(command);
    return std::nullopt;
}

std::string write(const PrefixCommand& value) {
    std::string text = (value.ranks.ranges.empty() ? "all" : write(value.ranks)) + ":";
    for (std::size_t i = 0; i < value.words.size(); ++i) {
        text.append(i == 0 ? "" : " ").append(shell_quoted(value.words[i]));
    }
    return text;
}

}  // namespace ddrun::launcher::values
