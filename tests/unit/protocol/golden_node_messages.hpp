#pragma once

#include "rendezvous/protocol/node_messages.hpp"
#include "tests/unit/protocol/golden_messages.hpp"

#include <chrono>
#include <string>
#include <vector>

// As golden_messages.hpp, for what agent and rendezvous server say; payloads once for each message
// that they can carry.
namespace ddrun::testing {

inline rendezvous::Cause golden_cause() {
    using namespace rendezvous;
    const WorkerFailure failure{5,
                                1,
                                4711,
                                {ExitStatus::Kind::signalled, 11, true},
                                std::chrono::milliseconds(20),
                                true,
                                -1,
                                true,
                                "r"};
    return {CauseKind::hang, 124, 1, "n1", failure, "w"};
}
inline rendezvous::RoundGranted golden_grant() {
    return {2, 8, 1, 2, 4, 1, "10.9.0.1", 29500, 0x1122334455667788u};
}
inline rendezvous::JobTerms golden_terms() {
    rendezvous::JobTerms terms;
    terms.job_id = "j";
    terms.min_nodes = 2;
    terms.max_nodes = 4;
    terms.spares = 1;
    terms.max_restarts = 3;
    terms.no_restart_on = {2, 126};
    terms.crash_loop = 5;
    return terms;
}
inline rendezvous::Join golden_offer() {
    return {"n1", 4, -1, "10.9.0.2", 29500, true, "rack1", "2.21.5", 0x1122334455667788u};
}
inline rendezvous::Standing golden_standing() {
    rendezvous::Standing standing;
    standing.grant = golden_grant();
    standing.done = true;
    standing.restarts_used = 1;
    standing.verdict = rendezvous::Verdict{};
    return standing;
}

inline std::vector<Golden<rendezvous::FromNode>> golden_from_node() {
    using namespace rendezvous;
    return {
        {"NodeHello",
         NodeHello{1, 1, "0.1.0", golden_terms(), golden_offer(), "aa", "bb", "cc", 7,
                   golden_standing()},
         "2e01000080010000000100000005000000302e312e30010000006a02000000040000000100000003"
         "00000002000000020000007e0000000500000000ca9a3b000000000070c9b28b00000000ac23fc06"
         "00000000ca9a3b0000000000d6117e03000000020000006e3104000000ffffffff0800000031302e"
         "392e302e323c73000001050000007261636b3106000000322e32312e358877665544332211020000"
         "00616102000000626202000000636307000000000000000200000008000000010000000200000004"
         "000000010000000800000031302e392e302e313c7300008877665544332211010000010000000001"
         "00000000000000000000000000000000000000000000000000000000000000000000000000000000"
         "0000000000ffffffff0000000000000000000000000000000000"},
        {"Heartbeat", Heartbeat{3, 7}, "110000008103000000000000000700000000000000"},
        {"FromNodePayload", FromNodePayload{9, 7, ToCoordinator(RoundGone{2})},
         "1600000082090000000000000007000000000000009202000000"},
        {"PresentKeys",
         PresentKeys{2, {{"k", "v", false, 3, 1}}, {{true, "g", 5, 2, {"x", ""}}}, true},
         "48000000830200000001000000010000006b01000000760003000000000000000100000000000000"
         "010000000101000000670500000002000000000000000200000001000000780000000001"},
        {"Goodbye", Goodbye{}, "0100000084"},
        {"Obituary", Obituary{"j", "bb"}, "0c00000085010000006a020000006262"},
    };
}

inline std::vector<Golden<rendezvous::FromNode>> golden_to_job() {
    using namespace rendezvous;
    return {
        {"Join", FromNodePayload{9, 7, ToCoordinator(golden_offer())},
         "4c000000820900000000000000070000000000000090020000006e3104000000ffffffff08000000"
         "31302e392e302e323c73000001050000007261636b3106000000322e32312e358877665544332211"},
        {"FailureReport", FromNodePayload{9, 7, ToCoordinator(FailureReport{2, golden_cause()})},
         "4f00000082090000000000000007000000000000009102000000037c00000001000000020000006e"
         "31050000000100000067120000010b00000001002d31010000000001ffffffff0101000000720100"
         "000077"},
        {"RoundGone", FromNodePayload{9, 7, ToCoordinator(RoundGone{2})},
         "1600000082090000000000000007000000000000009202000000"},
        {"NodeDone", FromNodePayload{9, 7, ToCoordinator(NodeDone{2})},
         "1600000082090000000000000007000000000000009302000000"},
        {"StepCommitted", FromNodePayload{9, 7, ToCoordinator(StepCommitted{2})},
         "1600000082090000000000000007000000000000009402000000"},
        {"Leave", FromNodePayload{9, 7, ToCoordinator(Leave{golden_cause()})},
         "4b000000820900000000000000070000000000000095037c00000001000000020000006e31050000"
         "000100000067120000010b00000001002d31010000000001ffffffff0101000000720100000077"},
        {"StoreAsked", FromNodePayload{9, 7, StoreAsked{2, 5, StoreDelete{1, "k"}}},
         "28000000820900000000000000070000000000000096020000000500000006010000000000000001"
         "0000006b"},
        {"StoreForgotten", FromNodePayload{9, 7, StoreForgotten{2, 5}},
         "1a0000008209000000000000000700000000000000970200000005000000"},
    };
}

inline std::vector<Golden<rendezvous::FromServer>> golden_from_server() {
    using namespace rendezvous;
    return {
        {"NodeWelcome", NodeWelcome{1, "cc", 9, true},
         "14000000c001000000020000006363090000000000000001"},
        {"NodeRefused", NodeRefused{77, false, "no"}, "0c000000c14d00000000020000006e6f"},
        {"HeartbeatSeen", HeartbeatSeen{3, 9, 2},
         "15000000c20300000000000000090000000000000002000000"},
        {"FromServerPayload", FromServerPayload{7, 9, FromCoordinator(Parked{})},
         "12000000c307000000000000000900000000000000d3"},
    };
}

inline std::vector<Golden<rendezvous::FromServer>> golden_from_job() {
    using namespace rendezvous;
    return {
        {"RoundGranted", FromServerPayload{7, 9, FromCoordinator(golden_grant())},
         "42000000c307000000000000000900000000000000d0020000000800000001000000020000000400"
         "0000010000000800000031302e392e302e313c7300008877665544332211"},
        {"StopRound",
         FromServerPayload{7, 9,
                           FromCoordinator(StopRound{2, golden_cause(), 1, 3, true,
                                                     std::chrono::seconds(1), "y"})},
         "65000000c307000000000000000900000000000000d102000000037c00000001000000020000006e"
         "31050000000100000067120000010b00000001002d31010000000001ffffffff0101000000720100"
         "00007701000000030000000100ca9a3b000000000100000079"},
        {"Verdict",
         FromServerPayload{7, 9, FromCoordinator(Verdict{124, true, golden_cause(), 1, "y"})},
         "59000000c307000000000000000900000000000000d27c00000001037c0000000100000002000000"
         "6e31050000000100000067120000010b00000001002d31010000000001ffffffff01010000007201"
         "00000077010000000100000079"},
        {"Parked", FromServerPayload{7, 9, FromCoordinator(Parked{})},
         "12000000c307000000000000000900000000000000d3"},
        {"Notice", FromServerPayload{7, 9, FromCoordinator(Notice{"n0 is suspect", true})},
         "24000000c307000000000000000900000000000000d40d0000006e30206973207375737065637401"},
        {"StoreAnswered", FromServerPayload{7, 9, StoreAnswered{2, 5, 3, true, StoreNumber{1, 1}}},
         "34000000c307000000000000000900000000000000d5020000000500000003000000000000000144"
         "01000000000000000100000000000000"},
    };
}

}  // namespace ddrun::testing
