#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ddrun::rendezvous {

constexpr std::size_t max_http_head_bytes = std::size_t{8} << 10;

// What somebody asks the status page for.
enum class StatusPage {
    health,       // /healthz
    status,       // /status
    metrics,      // /metrics
    unknown,      // another path: 404
    not_allowed,  // neither GET nor HEAD: 405
    malformed,    // not HTTP/1: 400
    too_large,    // more than max_http_head_bytes: 431
};
struct StatusQuestion {
    StatusPage page = StatusPage::health;
    bool head_only = false;  // HEAD
    bool operator==(const StatusQuestion&) const = default;
};

// The head of one request, read from bytes as they come; there is no second one. No socket.
class HttpReader {
  public:
    HttpReader();
    ~HttpReader();
    HttpReader(const HttpReader&) = delete;
    HttpReader& operator=(const HttpReader&) = delete;

    // nullopt: more bytes are needed. Not to be called again after an answer.
    [[nodiscard]] std::optional<StatusQuestion> read(std::string_view bytes);

  private:
    struct Parser;
    std::unique_ptr<Parser> parser_;
    std::string unread_;
    std::size_t taken_ = 0;
};

}  // namespace ddrun::rendezvous
