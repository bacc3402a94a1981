#pragma once

#include "rendezvous/core/delivery.hpp"
#include "rendezvous/protocol/bytes.hpp"
#include "rendezvous/protocol/node_codec.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

// The other end of one NodeLink, as simple as can be: says yes to everybody, notes what it hears,
// and has a store of counters. Messages travel as frames, so the codec takes part.
namespace ddrun::testing {

using namespace rendezvous;

// One direction of a connection: what was sent arrives in order, or not at all.
template <typename Message>
class Pipe {
  public:
    void send(const Message& message) { frames_.push_back(encode(message)); }
    [[nodiscard]] bool empty() const { return frames_.empty(); }
    [[nodiscard]] Message take() {
        const std::string frame = std::move(frames_.front());
        frames_.pop_front();
        return decode(std::string_view(frame).substr(length_bytes));
    }
    void cut() { frames_.clear(); }

  private:
    static Message decode(std::string_view body) {
        if constexpr (std::is_same_v<Message, FromNode>) {
            return decode_from_node(body).value();
        } else {
            return decode_from_server(body).value();
        }
    }
    std::deque<std::string> frames_;
};

class TinyServer {
  public:
    explicit TinyServer(Pipe<FromServer>& to_node) : to_node_(to_node) {}

    // All it knew is gone.
    void crash() {
        known_ = presented_ = connected_ = false;
        inbox_ = {};
        outbox_ = {};
        asked_.clear();
        counters_.clear();
        writes_.clear();
    }
    void connection_ends() { connected_ = false; }

    // Something for the node, as soon as it can be sent.
    void tell(FromJob payload) {
        const auto sequence = outbox_.put(payload);
        if (connected_ && presented_)
            to_node_.send(FromServerPayload{sequence, inbox_.last(), std::move(payload)});
    }
    void hear(const FromNode& message) {
        std::visit([this](const auto& one) { on(one); }, message);
    }

    // Answers the oldest request it has: an answer may take its time.
    void work() {
        if (asked_.empty()) return;
        apply(asked_.front());
        asked_.pop_front();
    }

    [[nodiscard]] bool presented() const { return presented_; }
    [[nodiscard]] const std::vector<int>& steps() const { return steps_; }
    [[nodiscard]] const std::map<std::string, std::int64_t>& counters() const { return counters_; }

  private:
    void on(const NodeHello& hello) {
        const bool resumes = !hello.job_incarnation.empty();
        if (!known_) presented_ = !resumes;
        known_ = connected_ = true;
        if (presented_ && resumes) outbox_.heard(hello.heard);
        if (!presented_) inbox_ = {};
        to_node_.send(NodeWelcome{1, "job1", inbox_.last(), !presented_});
        if (presented_) send_all();
    }
    void on(const Heartbeat& beat) {
        outbox_.heard(beat.heard);
        to_node_.send(HeartbeatSeen{beat.number, inbox_.last(), 1});
    }
    void on(const PresentKeys& part) {
        for (const KnownKey& key : part.keys) {
            counters_[key.key] = std::stoll(key.value);
            writes_[key.key] = key.writes;
        }
        if (part.last) presented_ = true;
        if (part.last) send_all();
    }
    void on(const FromNodePayload& payload) {
        outbox_.heard(payload.heard);
        if (!inbox_.accept(payload.sequence)) return;
        if (const auto* asked = std::get_if<StoreAsked>(&payload.payload)) asked_.push_back(*asked);
        if (const auto* said = std::get_if<ToCoordinator>(&payload.payload)) {
            if (const auto* step = std::get_if<StepCommitted>(said)) steps_.push_back(step->round);
        }
    }
    void on(const Goodbye&) {}
    void on(const Obituary&) {}

    void apply(const StoreAsked& asked) {
        const auto& add = std::get<StoreAdd>(asked.request);
        const std::int64_t sum = counters_[add.key] += add.delta;
        tell(StoreAnswered{asked.round, asked.rank, ++writes_[add.key], true,
                           StoreNumber{add.id, sum}});
    }
    void send_all() {
        outbox_.resend([this](std::uint64_t sequence, const FromJob& payload) {
            to_node_.send(FromServerPayload{sequence, inbox_.last(), payload});
        });
    }

    Pipe<FromServer>& to_node_;
    bool known_ = false;      // it has heard of the job
    bool presented_ = false;  // and knows its store
    bool connected_ = false;
    Inbox inbox_;
    Outbox<FromJob> outbox_;
    std::deque<StoreAsked> asked_;
    std::vector<int> steps_;
    std::map<std::string, std::int64_t> counters_;
    std::map<std::string, std::uint64_t> writes_;
};

}  // namespace ddrun::testing
