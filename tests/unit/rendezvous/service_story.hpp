#pragma once

#include "rendezvous/core/job_service.hpp"
#include "tests/support/catch.hpp"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ddrun::rendezvous::story {

using namespace std::chrono_literals;

// A job's service with nodes that the test plays. What is sent to each is kept by connection.
class ServiceStory {
  public:
    ServiceStory() : service({"job", "11111111111111111111111111111111", 0, "0.1.0"}) {}

    static NodeHello hello(const std::string& name, int nodes = 2) {
        NodeHello hello;
        hello.build = "0.1.0";
        hello.terms.job_id = "job";
        hello.terms.min_nodes = hello.terms.max_nodes = nodes;
        hello.offer.node_name = name;
        hello.offer.address = "10.9.0." + name.substr(1);
        hello.offer.slots = 1;
        hello.node_incarnation = "incarnation of " + name;
        hello.obituary_token = "token of " + name;
        return hello;
    }

    // Everything that happens goes through here.
    void feed(const ServiceEvent& event) { take(service.step(event, now)); }
    void say(ConnectionId connection, const FromNode& message) {
        feed(PeerSaid{connection, message});
    }
    void tell(ConnectionId connection, const ToJob& payload) {
        say(connection, FromNodePayload{++sent[connection], 0, payload});
    }
    void wait(Duration time) {
        const TimePoint until = now + time;
        for (auto due = service.next_deadline(); due && *due <= until;
             due = service.next_deadline()) {
            now = std::max(now, *due);
            take(service.advance_to(now));
        }
        now = until;
    }
    // n1 and n2, in round 1, on connections 1 and 2.
    ServiceStory& running(int max_restarts = 0) {
        for (const ConnectionId connection : {1, 2}) {
            NodeHello one = hello("n" + std::to_string(connection));
            one.terms.max_restarts = max_restarts;
            say(connection, one);
        }
        return *this;
    }

    template <typename Message>
    [[nodiscard]] std::vector<Message> all(ConnectionId connection) const {
        std::vector<Message> found;
        const auto entry = heard.find(connection);
        if (entry == heard.end()) return found;
        for (const FromServer& message : entry->second) {
            if (const auto* one = std::get_if<Message>(&message)) found.push_back(*one);
        }
        return found;
    }
    template <typename Message>
    [[nodiscard]] std::vector<Message> payloads(ConnectionId connection) const {
        std::vector<Message> found;
        for (const auto& envelope : all<FromServerPayload>(connection)) {
            if (const auto* said = std::get_if<FromCoordinator>(&envelope.payload)) {
                if constexpr (!std::is_same_v<Message, StoreAnswered>) {
                    if (const auto* one = std::get_if<Message>(said)) found.push_back(*one);
                }
            } else if constexpr (std::is_same_v<Message, StoreAnswered>) {
                found.push_back(std::get<StoreAnswered>(envelope.payload));
            }
        }
        return found;
    }

    JobService service;
    TimePoint now{1h};
    std::map<ConnectionId, std::vector<FromServer>> heard;
    std::map<ConnectionId, std::uint64_t> sent;
    std::vector<ConnectionId> closed;

  private:
    void take(const JobService::Actions& actions) {
        for (const ServiceAction& action : actions) {
            if (const auto* send = std::get_if<SendToPeer>(&action)) {
                heard[send->connection].push_back(send->message);
            } else {
                closed.push_back(std::get<ClosePeer>(action).connection);
            }
        }
    }
};

}  // namespace ddrun::rendezvous::story
