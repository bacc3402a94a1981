#pragma once

#include "rendezvous/protocol/worker_messages.hpp"

#include <string>
#include <vector>

// One example of every message, every field set, with its frame. PROTOCOL.md shows the same table.
// Bytes here never change: a new layout is a new message.
namespace ddrun::testing {

template <typename Variant>
struct Golden {
    std::string name;
    Variant message;
    std::string frame;  // hexadecimal
};

inline std::vector<Golden<rendezvous::FromWorker>> golden_from_worker() {
    using namespace rendezvous;
    return {
        {"WorkerHello", WorkerHello{1, 2, 3}, "0d00000001010000000200000003000000"},
        {"StoreSet", StoreSet{1, "k", "vv"}, "14000000020100000000000000010000006b020000007676"},
        {"StoreGet", StoreGet{1, "k", 500}, "12000000030100000000000000010000006bf4010000"},
        {"StoreAdd", StoreAdd{1, "k", -2}, "16000000040100000000000000010000006bfeffffffffffffff"},
        {"StoreCompareSet", StoreCompareSet{1, "k", "a", "b"},
         "18000000050100000000000000010000006b01000000610100000062"},
        {"StoreDelete", StoreDelete{1, "k"}, "0e000000060100000000000000010000006b"},
        {"StoreMultiGet", StoreMultiGet{1, {"k", "l"}, 500},
         "1b00000007010000000000000002000000010000006b010000006cf4010000"},
        {"StoreBarrier", StoreBarrier{1, "b", 4, 500},
         "16000000080100000000000000010000006204000000f4010000"},
        {"StoreAllGather", StoreAllGather{1, "g", 4, "v", 500},
         "1b0000000901000000000000000100000067040000000100000076f4010000"},
        {"ArenaOpen", ArenaOpen{1, "a", 4096},
         "160000000a010000000000000001000000610010000000000000"},
        {"Progress", Progress{7}, "090000000b0700000000000000"},
        {"AbortedBecause", AbortedBecause{2, "gone"}, "0d0000000c0200000004000000676f6e65"},
        {"NeverRetry", NeverRetry{"bad"}, "080000000d03000000626164"},
    };
}

inline std::vector<Golden<rendezvous::ToWorker>> golden_to_worker() {
    using namespace rendezvous;
    return {
        {"Welcome", Welcome{1}, "050000004001000000"},
        {"Refused", Refused{"no"}, "0700000041020000006e6f"},
        {"StoreDone", StoreDone{1}, "09000000420100000000000000"},
        {"StoreValue", StoreValue{1, "vv"}, "0f000000430100000000000000020000007676"},
        {"StoreNumber", StoreNumber{1, -2}, "11000000440100000000000000feffffffffffffff"},
        {"StoreValues", StoreValues{1, {"v", ""}},
         "1600000045010000000000000002000000010000007600000000"},
        {"StoreFailed", StoreFailed{1, StoreError::timed_out, "late"},
         "1200000046010000000000000001040000006c617465"},
        {"ArenaReady", ArenaReady{1}, "09000000470100000000000000"},
        {"StopRequested", StopRequested{15, 30000}, "09000000480f00000030750000"},
        {"RoundAborted", RoundAborted{2, "gone"}, "0d000000490200000004000000676f6e65"},
    };
}

}  // namespace ddrun::testing
