#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What clients of PyTorch's c10d TCPStore send, as of 2.2 and later, and before. Integers are
// little-endian, text is a u64 length and bytes; nothing frames a request but its own lengths.
namespace ddrun::rendezvous::tcpstore {

constexpr std::size_t max_key_bytes = 8u << 10;
constexpr std::size_t max_value_bytes = 64u << 20;
constexpr std::size_t max_list_items = 131'072;
constexpr std::size_t max_request_bytes = 128u << 20;

// Numbers of 2.2 and later.
enum class Operation : std::uint8_t {
    validate,
    set,
    compare_set,
    get,
    add,
    check,
    wait,
    get_num_keys,
    delete_key,
    append,
    multi_get,
    multi_set,
    cancel_wait,
    ping,
    queue_push,
    queue_pop,
    queue_length,
    list_keys,
    barrier,
    watch_key,  // of 1.x only, on a connection of its own
};

// Its texts point into the reader's memory, until more is appended to it.
struct Request {
    Operation operation = Operation::validate;
    std::vector<std::string_view> texts;  // keys; key and value; key, expected, desired; ...
    std::int64_t number = 0;              // add: delta; barrier: size; ping: nonce
};

// Cuts what one client sends into requests.
class RequestReader {
  public:
    void append(std::string_view bytes);
    // The next whole request; nullopt: not yet, or broken().
    [[nodiscard]] const Request* next();
    // Not a store client, or beyond the limits: the connection is to be closed.
    [[nodiscard]] bool broken() const { return broken_; }
    // Of 2.1 or older: it may abandon a wait without saying so.
    [[nodiscard]] bool is_legacy() const { return generation_ == Generation::legacy; }

  private:
    enum class Generation { unknown, legacy, modern };
    class Cursor;

    [[nodiscard]] bool know_generation();
    [[nodiscard]] std::optional<Operation> operation_of(std::uint8_t byte) const;
    [[nodiscard]] bool parse(Cursor& cursor);

    std::string bytes_;
    std::size_t done_ = 0;  // bytes of requests that were given out
    Generation generation_ = Generation::unknown;
    bool validated_ = false;
    bool broken_ = false;
    Request request_;
};

}  // namespace ddrun::rendezvous::tcpstore
