#pragma once

#include "rendezvous/platform/unique_fd.hpp"
#include "rendezvous/protocol/frame_reader.hpp"
#include "rendezvous/protocol/node_codec.hpp"
#include "rendezvous/server/server.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// A server in this thread and clients that are bare sockets: nothing happens but in await().
namespace ddrun::test {

using namespace std::chrono_literals;

class RawClient {
  public:
    RawClient(int port, std::string_view bytes = {});

    void send(std::string_view bytes);
    void say(const rendezvous::FromNode& message) { send(rendezvous::encode(message)); }
    // Preface and hello.
    void greet(const rendezvous::NodeHello& hello);
    void reset();  // closes with RST
    // Takes what has arrived; false: the server has closed.
    bool listen();
    [[nodiscard]] bool closed() { return !listen(); }

    // Of all that has arrived; null: none.
    template <typename Message>
    [[nodiscard]] const Message* heard() {
        listen();
        for (const auto& message : messages_) {
            if (const auto* found = std::get_if<Message>(&message)) return found;
        }
        return nullptr;
    }
    // Of the coordinator's words.
    template <typename Message>
    [[nodiscard]] const Message* told() {
        listen();
        for (const auto& message : messages_) {
            const auto* payload = std::get_if<rendezvous::FromServerPayload>(&message);
            const auto* from_job =
                payload ? std::get_if<rendezvous::FromCoordinator>(&payload->payload) : nullptr;
            if (const auto* found = from_job ? std::get_if<Message>(from_job) : nullptr)
                return found;
        }
        return nullptr;
    }
    [[nodiscard]] const std::vector<rendezvous::FromServer>& messages() const { return messages_; }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

  private:
    UniqueFd socket_;
    rendezvous::FrameReader frames_{rendezvous::max_node_frame_bytes};
    std::string bytes_;
    std::vector<rendezvous::FromServer> messages_;
    bool open_ = true;
};

[[nodiscard]] rendezvous::NodeHello hello_of(int node, int nodes = 2,
                                             const std::string& job = "job");
[[nodiscard]] std::string bytes_of(const rendezvous::NodeHello& hello);  // with the preface

class TestServer {
  public:
    explicit TestServer(const std::function<void(rendezvous::ServerSettings&)>& change = [](auto&) {
    });

    // False: not within 10 s.
    bool await(const std::function<bool()>& done);
    void pass(std::chrono::milliseconds time) { io.run_for(time); }
    [[nodiscard]] bool has_said(const std::string& words) const;
    [[nodiscard]] std::string all_said() const;

    boost::asio::io_context io{1};
    std::vector<std::string> said;
    rendezvous::Server server;
    int port = 0;
};

[[nodiscard]] long resident_kib();  // of this process

}  // namespace ddrun::test
