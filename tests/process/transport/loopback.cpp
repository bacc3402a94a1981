#include "tests/process/transport/loopback.hpp"

#include <malloc.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <exception>

namespace ddrun::test {

namespace asio = boost::asio;
using asio::awaitable;
using asio::use_awaitable;
using asio::ip::tcp;

Loopback::Loopback() : acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {}

void Loopback::connect(const rendezvous::Security& of_client,
                       const rendezvous::Security& of_server) {
    accept(of_server);
    spawn(open_one(of_client));
    run();
}

void Loopback::accept(const rendezvous::Security& security) {
    spawn(accept_one(security));
}

awaitable<void> Loopback::accept_one(rendezvous::Security security) {
    tcp::socket socket = co_await acceptor.async_accept(use_awaitable);
    try {
        auto accepted = co_await rendezvous::accept_stream(std::move(socket), security, soon());
        server = std::move(accepted.stream);
        obituary = std::move(accepted.obituary);
    } catch (const rendezvous::NotAuthorised& refused) {
        server_refusal = refused.what();
    }
}

awaitable<void> Loopback::open_one(rendezvous::Security security) {
    tcp::socket socket = co_await connected_socket();
    try {
        client = co_await rendezvous::open_stream(std::move(socket), security, soon());
    } catch (const rendezvous::NotAuthorised& refused) {
        client_refusal = refused.what();
    }
}

awaitable<tcp::socket> Loopback::connected_socket() {
    tcp::socket socket(io);
    co_await socket.async_connect(acceptor.local_endpoint(), use_awaitable);
    co_return socket;
}

void Loopback::spawn(awaitable<void> task) {
    asio::co_spawn(io, std::move(task), [this](std::exception_ptr failure) {
        if (!failure) return;
        if (!failures_.empty()) failures_ += "; ";
        try {
            std::rethrow_exception(failure);
        } catch (const rendezvous::Foreign&) {
            failures_ += "foreign";
        } catch (const boost::system::system_error& error) {
            failures_ += error.code().message();
        } catch (const std::exception& error) {
            failures_ += error.what();
        }
    });
}

void Loopback::run() {
    const TimePoint began = detail::now();
    io.restart();
    io.run();
    seconds = std::chrono::duration<double>(detail::now() - began).count();
}

awaitable<void> write_all(rendezvous::Stream& stream, std::string_view bytes) {
    co_await stream.write(bytes);
}

awaitable<void> read_exactly(rendezvous::Stream& stream, std::size_t size, std::string& into) {
    std::array<char, 4096> buffer;
    while (into.size() < size) {
        const std::size_t got = co_await stream.read_some(buffer);
        into.append(buffer.data(), got);
    }
}

awaitable<void> read_to_end(rendezvous::Stream& stream, std::string& into) {
    try {
        co_await read_exactly(stream, SIZE_MAX, into);
    } catch (const boost::system::system_error& error) {
        if (error.code() != asio::error::eof) throw;
    }
}

awaitable<void> say_raw(Loopback& loopback, std::string bytes, std::string& answer) {
    tcp::socket socket = co_await loopback.connected_socket();
    co_await asio::async_write(socket, asio::buffer(bytes), use_awaitable);
    boost::system::error_code error;
    std::array<char, 4096> buffer;
    while (!error) {
        const std::size_t size = co_await socket.async_read_some(
            asio::buffer(buffer), asio::redirect_error(use_awaitable, error));
        answer.append(buffer.data(), size);
    }
}

std::size_t allocated_bytes() {
    return mallinfo2().uordblks;
}

}  // namespace ddrun::test
