#include "launcher/config/job_file.hpp"

#include "launcher/config/base64.hpp"
#include "launcher/config/suggest.hpp"
#include "launcher/config/yaml_document.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>

namespace ddrun::launcher {
namespace {

constexpr std::string_view program_key = "program";
constexpr std::string_view arguments_key = "args";
constexpr std::string_view merge_key = "<<";
constexpr std::string_view quoted_tag = "!";
constexpr std::string_view free_prefix = "x-";
constexpr std::string_view core_tags = "tag:yaml.org,2002:";
constexpr std::string_view binary_tag = "tag:yaml.org,2002:binary";
// Aliases let a small file name itself without end.
constexpr int deepest_merge = 16;
constexpr int most_entries = 4096;

struct Problem {
    std::string words;
};

struct Entry {
    std::string key;
    YAML::Mark mark;
    YAML::Node value;
};

std::string_view kind_of(const YAML::Node& node) {
    switch (node.Type()) {
        case YAML::NodeType::Undefined:
            return "nothing";
        case YAML::NodeType::Null:
            return "nothing";
        case YAML::NodeType::Scalar:
            return "a single value";
        case YAML::NodeType::Sequence:
            return "a list";
        case YAML::NodeType::Map:
            return "a mapping";
    }
    return "nothing";
}

std::string canonical(std::string_view key) {
    std::string text(key);
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
}

class Parser {
  public:
    explicit Parser(std::string name) : name_(std::move(name)) {}

    JobFile parse(const std::string& text) {
        try {
            const YAML::Node root = load_yaml_document(text);
            if (!root.IsNull()) take_root(root);
        } catch (const Problem& problem) {
            file_.problems.push_back(problem.words);
        } catch (const YAML::Exception& error) {
            file_.problems.push_back(at(error.mark) + ": " + error.msg);
        } catch (const std::exception& error) {
            file_.problems.push_back(name_ + ": " + error.what());
        }
        return std::move(file_);
    }

  private:
    [[nodiscard]] std::string at(const YAML::Mark& mark) const {
        if (mark.is_null()) return name_;
        return name_ + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
    }

    void take_root(const YAML::Node& root) {
        if (!root.IsMap()) {
            throw Problem{at(root.Mark()) + ": expected a mapping of flag names to values, found " +
                          std::string(kind_of(root))};
        }
        for (const Entry& entry : entries_of(root, option_name)) {
            // One bad key does not hide the next.
            try {
                take(entry);
            } catch (const Problem& problem) {
                file_.problems.push_back(problem.words);
            }
        }
    }

    void take(const Entry& entry) {
        if (entry.key == program_key) {
            file_.program = given(nullptr, scalar(entry.value, entry), entry, entry.value);
        } else if (entry.key == arguments_key) {
            take_arguments(entry);
        } else if (const Option* option = find_option(entry.key)) {
            if (!option->in_job_file) {
                throw Problem{at(entry.mark) + ": " + entry.key +
                              " cannot stand in a job file; give --" + std::string(option->name) +
                              " on the command line"};
            }
            take_option(*option, entry);
        } else if (!entry.key.starts_with(free_prefix)) {
            throw Problem{unknown_key(entry)};
        }
    }

    void take_arguments(const Entry& entry) {
        if (!entry.value.IsSequence()) {
            throw Problem{where(entry, entry.value) +
                          ": expected a list, one item per argument, found " +
                          std::string(kind_of(entry.value))};
        }
        file_.arguments.emplace();
        for (const YAML::Node& item : entry.value) {
            file_.arguments->push_back(scalar(item, entry));
        }
    }

    void take_option(const Option& option, const Entry& entry) {
        const bool several = option.shape == Shape::list || option.shape == Shape::repeated;
        if (several && entry.value.IsSequence()) {
            take_sequence(option, entry);
        } else if (option.joint != 0 && entry.value.IsMap()) {
            take_mapping(option, entry);
        } else {
            file_.given.push_back(given(&option, scalar(entry.value, entry), entry, entry.value));
        }
    }

    void take_sequence(const Option& option, const Entry& entry) {
        std::vector<std::string> items;
        for (const YAML::Node& item : entry.value) {
            items.push_back(scalar(item, entry));
            if (option.shape == Shape::repeated) {
                file_.given.push_back(given(&option, items.back(), entry, item));
            } else if (items.back().empty() || items.back().front() == ',') {
                throw Problem{where(entry, item) +
                              ": an item of this list is empty or begins with a comma"};
            }
        }
        if (option.shape == Shape::list) {
            file_.given.push_back(given(&option, values::join_list(items), entry, entry.value));
        }
    }

    void take_mapping(const Option& option, const Entry& entry) {
        for (const Entry& item : entries_of(entry.value, as_written)) {
            if (item.value.IsNull()) {
                throw Problem{at(item.mark) + ": " + entry.key + ": " + item.key +
                              " has no value; write \"\" for an empty text"};
            }
            if (item.key.find(option.joint) != std::string::npos) {
                throw Problem{at(item.mark) + ": " + entry.key + ": the name " +
                              values::quoted(item.key) + " holds '" + option.joint + "'"};
            }
            file_.given.push_back({&option, item.key + option.joint + scalar(item.value, entry),
                                   at(item.mark), entry.key});
        }
    }

    // Keys are compared as these spell them: names of options have two spellings, variables one.
    using Spelling = std::string (*)(const std::string& key);
    static std::string as_written(const std::string& key) { return key; }
    static std::string option_name(const std::string& key) {
        const Option* option = find_option(key);
        return option != nullptr ? std::string(option->name) : key;
    }

    // The pairs of a mapping as written, then those of its merge keys that it does not have itself.
    std::vector<Entry> entries_of(const YAML::Node& map, Spelling spelling) {
        std::vector<Entry> entries;
        add_entries(map, spelling, entries, 0);
        return entries;
    }

    void add_entries(const YAML::Node& map, Spelling spelling, std::vector<Entry>& entries,
                     int depth) {
        if (depth > deepest_merge) throw Problem{at(map.Mark()) + ": << is nested too deeply"};
        const std::size_t begin = entries.size();
        std::vector<YAML::Node> merged;
        for (const auto& pair : map) {
            if (++visited_ > most_entries) throw Problem{name_ + ": more than 4096 keys"};
            if (!pair.first.IsScalar()) {
                throw Problem{at(pair.first.Mark()) + ": a key must be a name, found " +
                              std::string(kind_of(pair.first))};
            }
            if (pair.first.Scalar() == merge_key && pair.first.Tag() != quoted_tag)
                merged.push_back(pair.second);
            else
                add_entry({spelling(pair.first.Scalar()), pair.first.Mark(), pair.second}, entries,
                          begin);
        }
        for (const YAML::Node& source : merged) add_merged(source, spelling, entries, depth);
    }

    void add_merged(const YAML::Node& source, Spelling spelling, std::vector<Entry>& entries,
                    int depth) {
        if (source.IsMap()) {
            add_entries(source, spelling, entries, depth + 1);
            return;
        }
        if (!source.IsSequence()) throw_not_mergeable(source);
        for (const YAML::Node& item : source) {
            if (!item.IsMap()) throw_not_mergeable(item);
            if (++visited_ > most_entries) throw Problem{name_ + ": more than 4096 keys"};
            add_entries(item, spelling, entries, depth + 1);
        }
    }

    [[noreturn]] void throw_not_mergeable(const YAML::Node& node) const {
        throw Problem{at(node.Mark()) + ": << merges mappings, found " +
                      std::string(kind_of(node))};
    }

    // Entries before `begin` stand nearer and win; the same key twice in one mapping is a mistake.
    void add_entry(Entry entry, std::vector<Entry>& entries, std::size_t begin) const {
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (entries[i].key != entry.key) continue;
            if (i < begin) return;
            throw Problem{at(entry.mark) + ": key " + values::quoted(entry.key) +
                          " stands here and in line " + std::to_string(entries[i].mark.line + 1)};
        }
        entries.push_back(std::move(entry));
    }

    std::string scalar(const YAML::Node& node, const Entry& entry) const {
        if (node.IsNull()) return {};
        if (!node.IsScalar()) {
            throw Problem{where(entry, node) + ": expected a single value, found " +
                          std::string(kind_of(node))};
        }
        std::string text = node.Tag() == binary_tag ? decoded(node, entry) : node.Scalar();
        const std::string_view tag = node.Tag();
        if (tag.size() > 1 && !tag.starts_with(core_tags)) {
            throw Problem{where(entry, node) + ": the tag " + values::quoted(tag) +
                          " is not known"};
        }
        if (text.find('\0') != std::string::npos) {
            throw Problem{where(entry, node) +
                          ": holds a zero byte, which no program can be given"};
        }
        return text;
    }

    std::string decoded(const YAML::Node& node, const Entry& entry) const {
        std::optional<std::string> bytes = decode_base64(node.Scalar());
        if (!bytes) throw Problem{where(entry, node) + ": !!binary is not followed by base64"};
        return *std::move(bytes);
    }

    [[nodiscard]] std::string place(const Entry& entry, const YAML::Node& node) const {
        return at(node.IsNull() ? entry.mark : node.Mark());
    }
    [[nodiscard]] std::string where(const Entry& entry, const YAML::Node& node) const {
        return place(entry, node) + ": " + entry.key;
    }
    [[nodiscard]] Given given(const Option* option, std::string text, const Entry& entry,
                              const YAML::Node& node) const {
        return {option, std::move(text), place(entry, node), entry.key};
    }

    std::string unknown_key(const Entry& entry) const {
        std::vector<std::string_view> names = {program_key, arguments_key};
        for (const Option& option : options()) {
            if (option.in_job_file) names.push_back(option.name);
        }
        std::string words = at(entry.mark) + ": unknown key " + values::quoted(entry.key);
        if (const auto meant = nearest(canonical(entry.key), names)) {
            return words.append("; did you mean ").append(*meant).append("?");
        }
        return words + "; keys are the names of flags (ddrun --help=all), program and args";
    }

    std::string name_;
    int visited_ = 0;
    JobFile file_;
};

}  // namespace

JobFile parse_job_file(const std::string& name, const std::string& text) {
    return Parser(name).parse(text);
}

}  // namespace ddrun::launcher
