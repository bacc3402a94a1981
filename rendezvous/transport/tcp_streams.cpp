#include "rendezvous/transport/tcp_streams.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace ddrun::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::use_awaitable;
using boost::system::error_code;
using boost::system::system_error;

// What passes through one connection at a time on its way to the engine.
constexpr std::size_t scratch_bytes = 64u << 10;
std::span<char> scratch() {
    thread_local std::array<char, scratch_bytes> bytes;
    return bytes;
}

// Bounds the memory of a write: what is encrypted before it is sent.
constexpr std::size_t slice_bytes = 64u << 10;

[[noreturn]] void throw_broken() {
    throw system_error(boost::system::errc::make_error_code(boost::system::errc::protocol_error));
}

}  // namespace

PlainStream::PlainStream(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
    error_code error;
    local_ = socket_.local_endpoint(error);
    remote_ = socket_.remote_endpoint(error);
    socket_.non_blocking(true, error);
    socket_.set_option(asio::ip::tcp::no_delay(true), error);
}

asio::awaitable<std::size_t> PlainStream::read_some(std::span<char> into) {
    while (true) {
        if (!may_have_more_) {
            co_await socket_.async_wait(asio::ip::tcp::socket::wait_read, use_awaitable);
        }
        if (!socket_.is_open()) throw system_error(asio::error::operation_aborted);
        error_code error;
        const std::size_t size = socket_.receive(asio::buffer(into.data(), into.size()), 0, error);
        may_have_more_ = !error && size == into.size();
        if (!error) co_return size;
        if (error != asio::error::would_block && error != asio::error::interrupted) {
            throw system_error(error);
        }
    }
}

asio::awaitable<void> PlainStream::write(std::string_view bytes) {
    if (!socket_.is_open()) throw system_error(asio::error::operation_aborted);
    co_await asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()), use_awaitable);
}

void PlainStream::close() {
    error_code ignored;
    socket_.close(ignored);
}

TlsStream::TlsStream(asio::ip::tcp::socket socket, std::unique_ptr<TlsEngine> engine)
    : plain_(std::move(socket)), engine_(std::move(engine)) {}

asio::awaitable<std::size_t> TlsStream::read_some(std::span<char> into) {
    try {
        while (true) {
            if (const std::size_t size = engine_->read(into)) co_return size;
            const std::size_t received = co_await plain_.read_some(scratch());
            engine_->receive({scratch().data(), received});
        }
    } catch (const Foreign&) {
        throw_broken();
    }
}

asio::awaitable<void> TlsStream::write(std::string_view bytes) {
    try {
        while (!bytes.empty()) {
            engine_->write(bytes.substr(0, slice_bytes));
            bytes.remove_prefix(std::min(bytes.size(), slice_bytes));
            const std::string records = engine_->take_output();
            co_await plain_.write(records);
        }
    } catch (const Foreign&) {
        throw_broken();
    }
}

}  // namespace ddrun::rendezvous
