// Host lists against Slurm's own reading of them: generated from the grammar, then spoilt.
#include "launcher/environment/host_list.hpp"
#include "tests/support/hosts.hpp"
#include "tests/support/program.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/slurm.hpp"

#include "tests/support/catch.hpp"

#include <random>
#include <regex>

using namespace ddrun::test;
using ddrun::launcher::expand_host_list;
using ddrun::testing::Dice;

namespace {

constexpr int lists_compared = 10'000;

std::string number(Dice& dice, int least) {
    const std::string zeros(static_cast<std::size_t>(dice.one_in(3) ? dice.number(1, 3) : 0), '0');
    return zeros + std::to_string(least);
}

std::string bracket(Dice& dice) {
    std::string text;
    for (int left = dice.one_in(2) ? 1 : dice.number(2, 3); left > 0; --left) {
        const int low = dice.number(0, 120);
        text += (text.empty() ? "[" : ",") + number(dice, low);
        if (dice.one_in(2))
            text += "-" + number(dice, low + dice.number(dice.one_in(9) ? -2 : 0, 2));
    }
    return text + "]";
}

std::string name(Dice& dice) {
    static const std::vector<std::string> words = {"n", "rack", "a-b", "x1", "ib.dom", "7", "-"};
    const auto word = [&] {
        return words[static_cast<std::size_t>(dice.between(0, std::ssize(words) - 1))];
    };
    std::string text = dice.one_in(8) ? "" : word();
    for (int left = dice.number(text.empty() ? 1 : 0, 3); left > 0; --left)
        text += bracket(dice) + (left > 1 && dice.one_in(2) ? word() : "");
    return text + (dice.one_in(12) ? word() : "");
}

// What a hand or a script may have done to it.
void spoil(Dice& dice, std::string& list) {
    static const std::string marks = "[]-,019ax";
    const auto at = static_cast<std::size_t>(dice.between(0, std::ssize(list) - 1));
    const char mark = marks[static_cast<std::size_t>(dice.between(0, std::ssize(marks) - 1))];
    switch (dice.number(0, 2)) {
        case 0:
            list[at] = mark;
            break;
        case 1:
            list.insert(at, 1, mark);
            break;
        default:
            list.erase(at, 1);
    }
}

std::string generated(Dice& dice) {
    std::string list = name(dice);
    for (int more = dice.number(0, 2); more > 0; --more) list += "," + name(dice);
    if (dice.one_in(3)) spoil(dice, list);
    return list;
}

// host_list.hpp: what Slurm takes, and misreads, we refuse.
bool is_misread(const std::string& list) {
    static const std::regex without_end(R"(-[,\]])");
    static const std::regex several_brackets(R"(\][^,\[]*\[)");  // Slurm drops a bad one in silence
    static const std::regex letter_in_low_end(R"([\[,][0-9]+[ax][0-9ax]*-)");
    if (std::regex_search(list, letter_in_low_end)) return true;
    int open = 0;
    for (const char c : list) {
        if (c == '[') ++open;
        if (c == ']' && --open < 0) return true;
    }
    return open > 0 || std::regex_search(list, without_end) ||
           std::regex_search(list, several_brackets);
}

// A spoilt range of thousands would only cost time.
bool is_long(const std::string& list) {
    static const std::regex thousands("[1-9][0-9]{3}");
    return std::regex_search(list, thousands);
}

// One scontrol reads all; after each list a name that marks its end.
std::vector<std::vector<std::string>> expanded_by_slurm(const std::vector<std::string>& lists) {
    const TemporaryDirectory files;
    write_file(files.file("slurm.conf"),
               "ClusterName=x\nSlurmctldHost=localhost\nNodeName=n\nSlurmUser=root\n");
    std::string commands;
    for (const std::string& list : lists)
        commands += "show hostnames " + list + "\nshow hostnames END\n";
    write_file(files.file("commands"), commands + "exit\n");
    Invocation invocation;
    invocation.argv = {"sh", "-c", "scontrol < \"$0\" 2> /dev/null", files.file("commands")};
    invocation.env = {{"SLURM_CONF", files.file("slurm.conf")}, {"TERM", "dumb"}};
    const Finished end = run(invocation);
    REQUIRE(end.code == 0);
    std::vector<std::vector<std::string>> all(1);
    for (const std::string& line : lines_of(end.output)) {
        if (line.rfind("scontrol: ", 0) == 0) continue;  // its prompt
        if (line == "END") {
            all.emplace_back();
        } else {
            all.back().push_back(line);
        }
    }
    all.pop_back();
    return all;
}

}  // namespace

TEST_CASE("SLURM-3: generated host lists, legal and not, are expanded as scontrol does") {
    DDRUN_NEEDS_SLURM();
    const std::uint64_t seed = std::random_device{}();
    INFO("seed " << seed);
    Dice dice(seed);
    std::vector<std::string> lists;
    while (std::ssize(lists) < lists_compared) {
        std::string list = generated(dice);
        if (!list.empty() && !is_long(list)) lists.push_back(std::move(list));
    }
    const auto theirs = expanded_by_slurm(lists);
    REQUIRE(theirs.size() == lists.size());
    int legal = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        const auto ours = expand_host_list(lists[i]);
        INFO(lists[i] << ": " << ours.problem);
        if (is_misread(lists[i]) && !ours.problem.empty()) continue;
        if (ours.hosts != theirs[i]) FAIL_CHECK("scontrol gives " << theirs[i].size() << " others");
        if (!ours.hosts.empty()) ++legal;
    }
    CHECK(legal > lists_compared / 2);
    CHECK(legal < lists_compared * 19 / 20);
}
