// PROTOCOL.md is read by people who write the other end: what it shows must be what the code does.

#include "rendezvous/core/key_table.hpp"
#include "rendezvous/core/key_value_store.hpp"
#include "rendezvous/protocol/message_layout.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/protocol/golden_messages.hpp"

#include <fstream>
#include <sstream>
#include <string>

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

template <typename... Messages>
void check_types(const auto& goldens, const std::variant<Messages...>*) {
    std::size_t next = 0;
    const auto check = [&](int type) {
        check_says("| " + std::to_string(type) + " | " + goldens[next++].name + " |");
    };
    (check(Layout<Messages>::type), ...);
    for (const auto& golden : goldens) check_says(" " + golden.frame + "\n");
}

void check_error(const std::string& name, StoreError error) {
    check_says("| " + name + " | " + std::to_string(static_cast<int>(error)) + " |");
}

}  // namespace

TEST_CASE("the protocol page shows the type numbers and example frames of the code") {
    check_types(ddrun::testing::golden_from_worker(), static_cast<const FromWorker*>(nullptr));
    check_types(ddrun::testing::golden_to_worker(), static_cast<const ToWorker*>(nullptr));
}

TEST_CASE("the protocol page shows the limits of the code") {
    check_limit("max_frame_bytes", max_frame_bytes);
    check_limit("max_words_bytes", max_words_bytes);
    check_limit("max_list_items", max_list_items);
    check_limit("max_key_bytes", max_key_bytes);
    check_limit("max_store_keys", max_store_keys);
    check_limit("max_store_bytes", max_store_bytes);
    check_limit("max_open_waits", max_open_waits);
}

TEST_CASE("the protocol page shows the errors and the version of the code") {
    check_error("none", StoreError::none);
    check_error("timed_out", StoreError::timed_out);
    check_error("not_a_number", StoreError::not_a_number);
    check_error("too_large", StoreError::too_large);
    check_error("full", StoreError::full);
    check_error("aborted", StoreError::aborted);
    check_error("mismatch", StoreError::mismatch);
    check_says("This is version " + std::to_string(worker_protocol_version) + " ");
}
