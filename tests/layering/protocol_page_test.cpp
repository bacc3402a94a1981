// PROTOCOL.md is read by people who write the other end: what it shows must be what the code does.

#include "rendezvous/core/key_table.hpp"
#include "rendezvous/core/key_value_store.hpp"
#include "rendezvous/protocol/node_layout.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/protocol/golden_messages.hpp"
#include "tests/unit/protocol/golden_node_messages.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>

using namespace ddrun;
using namespace ddrun::rendezvous;

namespace {

const std::string& page() {
    static const std::string text = [] {
        std::ifstream in(std::string(DDRUN_SOURCE_DIR) + "/rendezvous/PROTOCOL.md");
        std::stringstream buffer;
        buffer << in.rdbuf();
        return buffer.str();
    }();
    return text;
}

void check_says(const std::string& words) {
    INFO(words);
    CHECK(page().find(words) != std::string::npos);
}

void check_limit(const std::string& name, std::size_t value) {
    check_says("| `" + name + "` | " + std::to_string(value) + " |");
}

// The table's row that begins so names one field for each of the layout.
template <typename Message>
void check_fields(const std::string& beginning) {
    INFO(beginning);
    const std::string start = "\n| " + beginning + " |";
    const auto row = page().find(start);
    REQUIRE(row != std::string::npos);
    const auto begin = row + start.size();
    const std::string fields = page().substr(begin, page().find_first_of("|\n", begin) - begin);
    const bool none = fields.find_first_not_of(' ') == std::string::npos;
    const auto commas = static_cast<std::size_t>(std::count(fields.begin(), fields.end(), ','));
    CHECK((none ? 0 : commas + 1) == std::tuple_size_v<decltype(Layout<Message>::fields)>);
}
template <typename Message>
void check_message(const std::string& name) {
    check_fields<Message>(std::to_string(int{Layout<Message>::type}) + " | " + name);
}
// Rows for the alternatives of a variant, in the order of the goldens.
template <typename... Messages>
void check_messages(const auto& goldens, const std::variant<Messages...>*) {
    std::size_t next = 0;
    (check_message<Messages>(goldens.at(next++).name), ...);
}

// Long frames are shown in lines of 80 digits.
void check_example(const std::string& name, const std::string& frame) {
    constexpr std::size_t column = 18;
    constexpr std::size_t digits = 80;
    std::string text = "\n" + name + std::string(column - name.size(), ' ');
    for (std::size_t at = 0; at < frame.size(); at += digits)
        text += (at == 0 ? "" : std::string(column, ' ')) + frame.substr(at, digits) + "\n";
    check_says(text);
}

template <typename Enum>
void check_number(const std::string& name, Enum value) {
    check_says("| " + name + " | " + std::to_string(static_cast<int>(value)) + " |");
}

}  // namespace

TEST_CASE("the protocol page shows the messages of workers as they are") {
    const auto from = ddrun::testing::golden_from_worker();
    const auto to = ddrun::testing::golden_to_worker();
    check_messages(from, static_cast<const FromWorker*>(nullptr));
    check_messages(to, static_cast<const ToWorker*>(nullptr));
    for (const auto& golden : from) check_says(" " + golden.frame + "\n");
    for (const auto& golden : to) check_says(" " + golden.frame + "\n");
}

TEST_CASE("the protocol page shows the messages of nodes as they are") {
    check_messages(ddrun::testing::golden_from_node(), static_cast<const FromNode*>(nullptr));
    check_messages(ddrun::testing::golden_from_server(), static_cast<const FromServer*>(nullptr));
    check_fields<Join>("Join");  // a part of NodeHello
    check_says("| " + std::to_string(int{Layout<Join>::type}) + " | Join |");
    check_message<FailureReport>("FailureReport");
    check_message<RoundGone>("RoundGone");
    check_message<NodeDone>("NodeDone");
    check_message<StepCommitted>("StepCommitted");
    check_message<Leave>("Leave");
    check_message<StoreAsked>("StoreAsked");
    check_message<StoreForgotten>("StoreForgotten");
    check_messages(ddrun::testing::golden_from_job(), static_cast<const FromCoordinator*>(nullptr));
    check_message<StoreAnswered>("StoreAnswered");
}

TEST_CASE("the protocol page shows the structures of node messages as they are") {
    check_fields<JobTerms>("JobTerms");
    check_fields<Standing>("Standing");
    check_fields<Cause>("Cause");
    check_fields<WorkerFailure>("WorkerFailure");
    check_fields<ExitStatus>("ExitStatus");
    check_fields<KnownKey>("KnownKey");
    check_fields<PassedGathering>("PassedGathering");
}

TEST_CASE("the protocol page shows the frames of node messages as they are") {
    using namespace ddrun::testing;
    for (const auto& golden : golden_from_node()) check_example(golden.name, golden.frame);
    for (const auto& golden : golden_to_job()) check_example(golden.name, golden.frame);
    for (const auto& golden : golden_from_server()) check_example(golden.name, golden.frame);
    for (const auto& golden : golden_from_job()) check_example(golden.name, golden.frame);
}

TEST_CASE("the protocol page shows the limits of the code") {
    check_limit("max_frame_bytes", max_frame_bytes);
    check_limit("max_node_frame_bytes", max_node_frame_bytes);
    check_limit("max_hello_frame_bytes", max_hello_frame_bytes);
    check_limit("max_words_bytes", max_words_bytes);
    check_limit("max_name_bytes", max_name_bytes);
    check_limit("max_list_items", max_list_items);
    check_limit("max_key_bytes", max_key_bytes);
    check_limit("max_store_keys", max_store_keys);
    check_limit("max_store_bytes", max_store_bytes);
    check_limit("max_open_waits", max_open_waits);
}

TEST_CASE("the protocol page shows the errors, causes and versions of the code") {
    check_number("none", StoreError::none);
    check_number("timed_out", StoreError::timed_out);
    check_number("not_a_number", StoreError::not_a_number);
    check_number("too_large", StoreError::too_large);
    check_number("full", StoreError::full);
    check_number("aborted", StoreError::aborted);
    check_number("mismatch", StoreError::mismatch);
    check_number("worker_failed", CauseKind::worker_failed);
    check_number("spawn_failed", CauseKind::spawn_failed);
    check_number("told_to_stop", CauseKind::told_to_stop);
    check_number("hang", CauseKind::hang);
    check_number("early_exit", CauseKind::early_exit);
    check_number("node_unfit", CauseKind::node_unfit);
    check_number("keeper_lost", CauseKind::keeper_lost);
    check_number("never_formed", CauseKind::never_formed);
    check_number("node_lost", CauseKind::node_lost);
    check_number("node_left", CauseKind::node_left);
    check_number("membership", CauseKind::membership);
    check_says("This is version " + std::to_string(worker_protocol_version) + " ");
    check_says("The node protocol is at version " + std::to_string(newest_node_protocol) + " ");
    check_says("`oldest_node_protocol`, " + std::to_string(oldest_node_protocol) + ")");
}
