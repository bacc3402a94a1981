#pragma once

#include "rendezvous/protocol/message_fields.hpp"
#include "rendezvous/protocol/node_messages.hpp"

#include <cstdint>
#include <tuple>

// Type number and fields of every message between agent and rendezvous server, in wire order, as
// message_layout.hpp does for workers. Numbers are unique over both: a payload holds messages of
// workers. A structure without a number is a field of others.
namespace ddrun::rendezvous {

template <>
struct LastOf<CauseKind> {
    static constexpr auto value = CauseKind::membership;
};
template <>
struct LastOf<ExitStatus::Kind> {
    static constexpr auto value = ExitStatus::Kind::signalled;
};

// --- parts of messages --------------------------------------------------------------------------
template <>
struct Layout<ExitStatus> {
    static constexpr auto fields =
        std::tuple(&ExitStatus::kind, &ExitStatus::value, &ExitStatus::core_dumped);
};
template <>
struct Layout<WorkerFailure> {
    static constexpr auto fields = std::tuple(
        &WorkerFailure::rank, &WorkerFailure::local_rank, &WorkerFailure::pid,
        &WorkerFailure::status, &WorkerFailure::age, &WorkerFailure::signalled_by_ddrun,
        &WorkerFailure::blamed_rank, &WorkerFailure::never_retry, Words{&WorkerFailure::reason});
};
template <>
struct Layout<Cause> {
    static constexpr auto fields =
        std::tuple(&Cause::kind, &Cause::exit_code, &Cause::node_rank, Name{&Cause::node_name},
                   &Cause::failure, Words{&Cause::words});
};
template <>
struct Layout<JobTerms> {
    static constexpr auto fields =
        std::tuple(Name{&JobTerms::job_id}, &JobTerms::min_nodes, &JobTerms::max_nodes,
                   &JobTerms::spares, &JobTerms::max_restarts, &JobTerms::no_restart_on,
                   &JobTerms::crash_loop, &JobTerms::restart_backoff, &JobTerms::join_timeout,
                   &JobTerms::last_call, &JobTerms::heartbeat, &JobTerms::lease);
};

// --- payloads to the job: 144 to 191 ------------------------------------------------------------
template <>
struct Layout<Join> {
    static constexpr std::uint8_t type = 144;
    static constexpr auto fields =
        std::tuple(Name{&Join::node_name}, &Join::slots, &Join::wished_node_rank,
                   Name{&Join::address}, &Join::port, &Join::hosts_endpoint,
                   Name{&Join::topology_group}, Name{&Join::nccl_version}, &Join::command_digest);
};
template <>
struct Layout<FailureReport> {
    static constexpr std::uint8_t type = 145;
    static constexpr auto fields = std::tuple(&FailureReport::round, &FailureReport::cause);
};
template <>
struct Layout<RoundGone> {
    static constexpr std::uint8_t type = 146;
    static constexpr auto fields = std::tuple(&RoundGone::round);
};
template <>
struct Layout<NodeDone> {
    static constexpr std::uint8_t type = 147;
    static constexpr auto fields = std::tuple(&NodeDone::round);
};
template <>
struct Layout<StepCommitted> {
    static constexpr std::uint8_t type = 148;
    static constexpr auto fields = std::tuple(&StepCommitted::round);
};
template <>
struct Layout<Leave> {
    static constexpr std::uint8_t type = 149;
    static constexpr auto fields = std::tuple(&Leave::cause);
};
template <>
struct Layout<StoreAsked> {
    static constexpr std::uint8_t type = 150;
    static constexpr auto fields =
        std::tuple(&StoreAsked::round, &StoreAsked::rank, &StoreAsked::request);
};
template <>
struct Layout<StoreForgotten> {
    static constexpr std::uint8_t type = 151;
    static constexpr auto fields = std::tuple(&StoreForgotten::round, &StoreForgotten::rank);
};

// --- payloads from the job: 208 to 255 ----------------------------------------------------------
template <>
struct Layout<RoundGranted> {
    static constexpr std::uint8_t type = 208;
    static constexpr auto fields = std::tuple(
        &RoundGranted::round, &RoundGranted::world_size, &RoundGranted::node_rank,
        &RoundGranted::node_count, &RoundGranted::first_rank, &RoundGranted::restart_count,
        Name{&RoundGranted::master_addr}, &RoundGranted::master_port, &RoundGranted::digest);
};
template <>
struct Layout<StopRound> {
    static constexpr std::uint8_t type = 209;
    static constexpr auto fields = std::tuple(
        &StopRound::round, &StopRound::cause, &StopRound::restarts_used, &StopRound::max_restarts,
        &StopRound::will_restart, &StopRound::restart_delay, Words{&StopRound::why_no_restart});
};
template <>
struct Layout<Verdict> {
    static constexpr std::uint8_t type = 210;
    static constexpr auto fields =
        std::tuple(&Verdict::exit_code, &Verdict::has_cause, &Verdict::cause,
                   &Verdict::restarts_used, Words{&Verdict::why_no_restart});
};
template <>
struct Layout<Parked> {
    static constexpr std::uint8_t type = 211;
    static constexpr auto fields = std::tuple();
};
template <>
struct Layout<Notice> {
    static constexpr std::uint8_t type = 212;
    static constexpr auto fields = std::tuple(Words{&Notice::words}, &Notice::warning);
};
template <>
struct Layout<StoreAnswered> {
    static constexpr std::uint8_t type = 213;
    static constexpr auto fields =
        std::tuple(&StoreAnswered::round, &StoreAnswered::rank, &StoreAnswered::writes,
                   &StoreAnswered::wrote, &StoreAnswered::reply);
};

// --- agent to server: 128 to 143 ----------------------------------------------------------------
template <>
struct Layout<Standing> {
    static constexpr auto fields =
        std::tuple(&Standing::grant, &Standing::done, &Standing::gone, &Standing::healthy,
                   &Standing::restarts_used, &Standing::stop, &Standing::verdict);
};
template <>
struct Layout<KnownKey> {
    static constexpr auto fields = std::tuple(&KnownKey::key, &KnownKey::value, &KnownKey::deleted,
                                              &KnownKey::writes, &KnownKey::own_writes);
};
template <>
struct Layout<PassedGathering> {
    static constexpr auto fields =
        std::tuple(&PassedGathering::all_gather, &PassedGathering::name, &PassedGathering::rank,
                   &PassedGathering::times, &PassedGathering::values);
};
template <>
struct Layout<NodeHello> {
    static constexpr std::uint8_t type = 128;
    static constexpr auto fields = std::tuple(
        &NodeHello::oldest, &NodeHello::newest, Name{&NodeHello::build}, &NodeHello::terms,
        &NodeHello::offer, Name{&NodeHello::node_incarnation}, Name{&NodeHello::obituary_token},
        Name{&NodeHello::job_incarnation}, &NodeHello::heard, &NodeHello::standing);
};
template <>
struct Layout<Heartbeat> {
    static constexpr std::uint8_t type = 129;
    static constexpr auto fields = std::tuple(&Heartbeat::number, &Heartbeat::heard);
};
template <>
struct Layout<FromNodePayload> {
    static constexpr std::uint8_t type = 130;
    static constexpr auto fields =
        std::tuple(&FromNodePayload::sequence, &FromNodePayload::heard, &FromNodePayload::payload);
};
template <>
struct Layout<PresentKeys> {
    static constexpr std::uint8_t type = 131;
    static constexpr auto fields = std::tuple(&PresentKeys::round, &PresentKeys::keys,
                                              &PresentKeys::passed, &PresentKeys::last);
};
template <>
struct Layout<Goodbye> {
    static constexpr std::uint8_t type = 132;
    static constexpr auto fields = std::tuple();
};
template <>
struct Layout<Obituary> {
    static constexpr std::uint8_t type = 133;
    static constexpr auto fields = std::tuple(Name{&Obituary::job_id}, Name{&Obituary::token});
};

// --- server to agent: 192 to 207 ----------------------------------------------------------------
template <>
struct Layout<NodeWelcome> {
    static constexpr std::uint8_t type = 192;
    static constexpr auto fields =
        std::tuple(&NodeWelcome::version, Name{&NodeWelcome::job_incarnation}, &NodeWelcome::heard,
                   &NodeWelcome::present_keys);
};
template <>
struct Layout<NodeRefused> {
    static constexpr std::uint8_t type = 193;
    static constexpr auto fields =
        std::tuple(&NodeRefused::exit_code, &NodeRefused::retry_later, Words{&NodeRefused::words});
};
template <>
struct Layout<HeartbeatSeen> {
    static constexpr std::uint8_t type = 194;
    static constexpr auto fields =
        std::tuple(&HeartbeatSeen::number, &HeartbeatSeen::heard, &HeartbeatSeen::round);
};
template <>
struct Layout<FromServerPayload> {
    static constexpr std::uint8_t type = 195;
    static constexpr auto fields = std::tuple(
        &FromServerPayload::sequence, &FromServerPayload::heard, &FromServerPayload::payload);
};

}  // namespace ddrun::rendezvous
