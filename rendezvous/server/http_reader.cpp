#include "rendezvous/server/http_reader.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

namespace ddrun::rendezvous {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

StatusPage page_at(std::string_view target) {
    target = target.substr(0, target.find('?'));
    if (target == "/healthz") return StatusPage::health;
    if (target == "/status") return StatusPage::status;
    if (target == "/metrics") return StatusPage::metrics;
    return StatusPage::unknown;
}

StatusQuestion question_of(const http::request<http::empty_body>& request) {
    const bool head_only = request.method() == http::verb::head;
    if (!head_only && request.method() != http::verb::get) return {StatusPage::not_allowed, false};
    const auto target = request.target();
    return {page_at({target.data(), target.size()}), head_only};
}

}  // namespace

struct HttpReader::Parser : http::request_parser<http::empty_body> {};

HttpReader::HttpReader() : parser_(std::make_unique<Parser>()) {
    parser_->header_limit(max_http_head_bytes);
}

HttpReader::~HttpReader() = default;

std::optional<StatusQuestion> HttpReader::read(std::string_view bytes) {
    unread_.append(bytes);
    taken_ += bytes.size();
    error_code error;
    unread_.erase(0, parser_->put(boost::asio::buffer(unread_), error));
    if (parser_->is_header_done()) return question_of(parser_->get());
    if (error == http::error::header_limit || taken_ > max_http_head_bytes) {
        return StatusQuestion{StatusPage::too_large, false};
    }
    if (error && error != http::error::need_more)
        return StatusQuestion{StatusPage::malformed, false};
    return std::nullopt;
}

}  // namespace ddrun::rendezvous
