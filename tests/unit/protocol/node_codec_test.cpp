#include "rendezvous/protocol/node_codec.hpp"

#include "rendezvous/protocol/bytes.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/node_layout.hpp"
#include "tests/support/catch.hpp"

#include <set>
#include <string>
#include <tuple>
#include <typeinfo>

using namespace ddrun;
using namespace ddrun::rendezvous;

namespace {

std::string body_of(const auto& message) {
    return encode(message).substr(length_bytes);
}

template <typename... Messages>
void collect_types(std::multiset<int>& types, const std::variant<Messages...>*) {
    const auto collect = [&]<typename Message>(const Message*) {
        if constexpr (HasType<Message>) {
            types.insert(Layout<Message>::type);
        } else {
            collect_types(types, static_cast<const Message*>(nullptr));
        }
    };
    (collect(static_cast<const Messages*>(nullptr)), ...);
}

// Becomes whatever a member needs.
struct Anything {
    template <typename T>
    operator T() const;  // NOLINT: implicit is the point; never defined
};
// How many members an aggregate has.
template <typename T, typename... Members>
constexpr std::size_t member_count() {
    if constexpr (requires { T{Members{}..., Anything{}}; }) {
        return member_count<T, Members..., Anything>();
    } else {
        return sizeof...(Members);
    }
}
template <typename... Structures>
void check_all_members_travel() {
    const auto check = [](std::size_t travel, std::size_t members, const char* type) {
        INFO(type);
        CHECK(travel == members);
    };
    (check(std::tuple_size_v<decltype(Layout<Structures>::fields)>, member_count<Structures>(),
           typeid(Structures).name()),
     ...);
}

// As long as its limits allow.
Cause longest_cause() {
    Cause cause;
    cause.node_name = std::string(max_name_bytes, 'n');
    cause.words = std::string(max_words_bytes, 'w');
    cause.failure.reason = std::string(max_words_bytes, 'r');
    return cause;
}

NodeHello longest_hello() {
    const std::string name(max_name_bytes, 'n');
    NodeHello hello;
    hello.build = hello.terms.job_id = name;
    hello.terms.no_restart_on.assign(max_no_restart_codes, 1);
    hello.offer.node_name = hello.offer.address = hello.offer.topology_group = name;
    hello.offer.nccl_version = name;
    hello.node_incarnation = hello.obituary_token = hello.job_incarnation = name;
    hello.standing.grant.master_addr = name;
    hello.standing.stop =
        StopRound{1, longest_cause(), 1, 1, true, {}, std::string(max_words_bytes, 'y')};
    hello.standing.verdict =
        Verdict{1, true, longest_cause(), 1, std::string(max_words_bytes, 'y')};
    return hello;
}

}  // namespace

TEST_CASE("type numbers are unique over both protocols") {
    std::multiset<int> types;
    collect_types(types, static_cast<const FromWorker*>(nullptr));
    collect_types(types, static_cast<const ToWorker*>(nullptr));
    collect_types(types, static_cast<const FromNode*>(nullptr));
    collect_types(types, static_cast<const FromServer*>(nullptr));
    collect_types(types, static_cast<const ToJob*>(nullptr));
    collect_types(types, static_cast<const FromJob*>(nullptr));
    for (const int type : types) {
        INFO("type " << type);
        CHECK(types.count(type) == 1);
    }
}

TEST_CASE("no member of a message is forgotten on the wire") {
    check_all_members_travel<ExitStatus, WorkerFailure, Cause, JobTerms, Standing, KnownKey,
                             PassedGathering>();
    check_all_members_travel<NodeHello, Heartbeat, FromNodePayload, PresentKeys, Goodbye,
                             Obituary>();
    check_all_members_travel<NodeWelcome, NodeRefused, HeartbeatSeen, FromServerPayload>();
    check_all_members_travel<Join, FailureReport, RoundGone, NodeDone, StepCommitted, Leave,
                             StoreAsked, StoreForgotten>();
    check_all_members_travel<RoundGranted, StopRound, Verdict, Parked, Notice, StoreAnswered>();
}

TEST_CASE("the longest hello fits into what a server holds for a stranger") {
    const auto body = body_of(FromNode(longest_hello()));
    CHECK(body.size() <= max_hello_frame_bytes);
    CHECK(decode_from_node(body) == FromNode(longest_hello()));
}

TEST_CASE("the largest frame of a worker fits into a payload") {
    StoreSet set{1, "k", {}};
    set.value.resize(max_frame_bytes - 1 - 8 - 4 - 1 - 4);
    REQUIRE(body_of(FromWorker(set)).size() == max_frame_bytes);
    CHECK(body_of(FromNode(FromNodePayload{1, 1, StoreAsked{1, 1, set}})).size() <=
          max_node_frame_bytes);
    const KnownKey known{std::string(max_key_bytes, 'k'), set.value, false, 1, 1};
    CHECK(body_of(FromNode(PresentKeys{1, {known}, {}, true})).size() <= max_node_frame_bytes);
}

TEST_CASE("names are cut when sent and refused when too long") {
    const std::string name(max_name_bytes + 1, 'n');
    const auto back = decode_from_node(body_of(FromNode(Obituary{name, "t"})));
    REQUIRE(back.has_value());
    CHECK(std::get<Obituary>(*back).job_id.size() == max_name_bytes);

    ByteWriter out;
    out.number(Layout<Obituary>::type);
    out.string(name);
    out.string("t");
    CHECK_FALSE(decode_from_node(out.take()).has_value());
}

TEST_CASE("enumerators, flags and inner types that do not exist are malformed") {
    const auto refused_with = [](std::string body, std::size_t place, int value) {
        body.at(place) = static_cast<char>(value);
        return !decode_from_node(body).has_value();
    };
    const std::string leave = body_of(FromNode(FromNodePayload{1, 1, ToCoordinator(Leave{})}));
    constexpr std::size_t inner = 1 + 8 + 8;  // the payload's own type
    CHECK_FALSE(refused_with(leave, inner + 1, static_cast<int>(CauseKind::membership)));
    CHECK(refused_with(leave, inner + 1, static_cast<int>(CauseKind::membership) + 1));
    CHECK(refused_with(leave, inner, 1));                        // a worker's hello
    CHECK(refused_with(leave, inner, Layout<Heartbeat>::type));  // not a payload
    const std::string present = body_of(FromNode(PresentKeys{}));
    CHECK(refused_with(present, present.size() - 1, 2));
}

TEST_CASE("a count that the frame cannot hold allocates nothing") {
    ByteWriter out;
    out.number(Layout<PresentKeys>::type);
    out.number(std::int32_t{1});
    out.number(std::uint32_t{max_list_items});
    CHECK_FALSE(decode_from_node(out.take()).has_value());
}

TEST_CASE("the highest common version is taken, or there is none") {
    CHECK(common_version({1, 1}, {1, 1}) == 1u);
    CHECK(common_version({1, 3}, {2, 5}) == 3u);
    CHECK(common_version({2, 5}, {1, 3}) == 3u);
    CHECK(common_version({1, 9}, {4, 4}) == 4u);
    CHECK_FALSE(common_version({1, 2}, {3, 4}).has_value());
    CHECK_FALSE(common_version({3, 4}, {1, 2}).has_value());
}

TEST_CASE("a refusal for its version names both sides and their versions") {
    NodeHello hello;
    hello.offer.node_name = "n1";
    hello.build = "0.2.0";
    hello.oldest = 2;
    hello.newest = 3;
    CHECK(version_refusal(hello, {1, 1}, "0.1.0") ==
          "n1 (ddrun 0.2.0) speaks version 2 to 3 of the rendezvous protocol, the server (ddrun "
          "0.1.0) speaks 1: install one ddrun on all nodes");
}
