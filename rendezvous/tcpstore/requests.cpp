#include "rendezvous/tcpstore/requests.hpp"

#include <array>
#include <cstring>

namespace ddrun::rendezvous::tcpstore {
namespace {

constexpr std::uint32_t validation_magic = 0x3C85F7CE;
constexpr std::size_t handshake_bytes = 1 + sizeof validation_magic;
constexpr std::size_t kept_capacity = 64u << 10;

// 1.x and 2.0; what 2.1 added behind it.
constexpr std::array legacy_operations = {
    Operation::set,        Operation::compare_set, Operation::get,          Operation::add,
    Operation::check,      Operation::wait,        Operation::get_num_keys, Operation::watch_key,
    Operation::delete_key, Operation::multi_get,   Operation::multi_set,    Operation::cancel_wait};

}  // namespace

// Reads on, as far as there is something; says whether there was not enough, or too much asked for.
class RequestReader::Cursor {
  public:
    explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

    template <typename Number>
    bool number(Number& value) {
        if (bytes_.size() - at_ < sizeof value) return short_of();
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return true;
    }
    bool text(std::vector<std::string_view>& texts, std::size_t longest) {
        std::uint64_t length = 0;
        if (!number(length)) return false;
        if (length > longest) return refuse();
        if (bytes_.size() - at_ < length) return short_of();
        texts.push_back(bytes_.substr(at_, length));
        at_ += length;
        return true;
    }
    bool key(std::vector<std::string_view>& texts) { return text(texts, max_key_bytes); }
    bool value(std::vector<std::string_view>& texts) { return text(texts, max_value_bytes); }
    bool count(std::uint64_t& items) {
        if (!number(items)) return false;
        return items <= max_list_items || refuse();
    }
    bool refuse() {
        refused_ = true;
        return false;
    }

    [[nodiscard]] std::size_t position() const { return at_; }
    [[nodiscard]] bool refused() const { return refused_; }

  private:
    bool short_of() {
        if (at_ > max_request_bytes) refused_ = true;
        return false;
    }
    std::string_view bytes_;
    std::size_t at_ = 0;
    bool refused_ = false;
};

void RequestReader::append(std::string_view bytes) {
    if (done_ > 0) {
        bytes_.erase(0, done_);
        done_ = 0;
        if (bytes_.empty() && bytes_.capacity() > kept_capacity) bytes_.shrink_to_fit();
    }
    bytes_.append(bytes);
    if (bytes_.size() > max_request_bytes + kept_capacity) broken_ = true;
}

// A modern client begins with a zero and a magic number; as an older one's "set" that would be a
// key of more than a gigabyte.
bool RequestReader::know_generation() {
    if (generation_ != Generation::unknown) return true;
    if (bytes_.empty()) return false;
    if (bytes_[0] != '\0') {
        generation_ = Generation::legacy;
        return true;
    }
    if (bytes_.size() < handshake_bytes) return false;
    std::uint32_t magic = 0;
    std::memcpy(&magic, bytes_.data() + 1, sizeof magic);
    generation_ = magic == validation_magic ? Generation::modern : Generation::legacy;
    return true;
}

std::optional<Operation> RequestReader::operation_of(std::uint8_t byte) const {
    if (generation_ == Generation::modern) {
        if (byte > static_cast<std::uint8_t>(Operation::barrier)) return std::nullopt;
        return static_cast<Operation>(byte);
    }
    if (byte >= legacy_operations.size()) return std::nullopt;
    return legacy_operations[byte];
}

const Request* RequestReader::next() {
    if (broken_ || !know_generation() || done_ == bytes_.size()) return nullptr;
    Cursor cursor(std::string_view(bytes_).substr(done_));
    request_.texts.clear();
    request_.number = 0;
    if (parse(cursor)) {
        done_ += cursor.position();
        return &request_;
    }
    broken_ = cursor.refused();
    return nullptr;
}

bool RequestReader::parse(Cursor& cursor) {
    std::uint8_t byte = 0;
    if (!cursor.number(byte)) return false;
    const auto operation = operation_of(byte);
    if (!operation) return cursor.refuse();
    request_.operation = *operation;
    auto& texts = request_.texts;
    std::uint64_t items = 0;
    std::uint32_t word = 0;
    switch (*operation) {
        case Operation::validate:
            if (validated_) return cursor.refuse();
            if (!cursor.number(word)) return false;
            if (word != validation_magic) return cursor.refuse();
            validated_ = true;
            return true;
        case Operation::ping:
            if (!cursor.number(word)) return false;
            request_.number = word;
            return true;
        case Operation::set:
        case Operation::append:
        case Operation::queue_push:
            return cursor.key(texts) && cursor.value(texts);
        case Operation::compare_set:
            return cursor.key(texts) && cursor.value(texts) && cursor.value(texts);
        case Operation::get:
        case Operation::delete_key:
        case Operation::queue_pop:
        case Operation::queue_length:
        case Operation::watch_key:
            return cursor.key(texts);
        case Operation::add:
        case Operation::barrier:
            return cursor.key(texts) && cursor.number(request_.number);
        case Operation::check:
        case Operation::wait:
        case Operation::multi_get:
            if (!cursor.count(items)) return false;
            for (; items > 0; --items)
                if (!cursor.key(texts)) return false;
            return true;
        case Operation::multi_set:
            if (!cursor.count(items)) return false;
            for (; items > 0; --items)
                if (!cursor.key(texts) || !cursor.value(texts)) return false;
            return true;
        case Operation::get_num_keys:
        case Operation::cancel_wait:
        case Operation::list_keys:
            return true;
    }
    return cursor.refuse();
}

}  // namespace ddrun::rendezvous::tcpstore
