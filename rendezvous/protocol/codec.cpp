#include "rendezvous/protocol/codec.hpp"

#include "rendezvous/protocol/message_fields.hpp"

namespace ddrun::rendezvous {

std::string encode(const FromWorker& message) {
    return encode_frame(message);
}
std::string encode(const ToWorker& message) {
    return encode_frame(message);
}

void append(std::string& bytes, const FromWorker& message) {
    append_frame(bytes, message);
}
void append(std::string& bytes, const ToWorker& message) {
    append_frame(bytes, message);
}

std::optional<FromWorker> decode_from_worker(std::string_view frame) {
    return decode_frame<FromWorker>(frame);
}
std::optional<ToWorker> decode_to_worker(std::string_view frame) {
    return decode_frame<ToWorker>(frame);
}

}  // namespace ddrun::rendezvous
