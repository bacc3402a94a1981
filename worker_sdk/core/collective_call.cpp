#include "worker_sdk/core/collective_call.hpp"

#include "worker_sdk/core/words.hpp"

#include <utility>
#include <vector>

namespace ddrun::detail {
namespace {

std::string name_of(Operation operation) {
    switch (operation) {
        case Operation::barrier:
            return "barrier";
        case Operation::all_reduce:
            return "all_reduce";
        case Operation::broadcast:
            return "broadcast";
        case Operation::all_gather:
            return "all_gather";
        case Operation::reduce_scatter:
            return "reduce_scatter";
    }
    return "unknown operation";
}

std::string name_of(ElementType type) {
    switch (type) {
        case ElementType::float32:
            return "float32";
        case ElementType::float64:
            return "float64";
        case ElementType::int32:
            return "int32";
        case ElementType::int64:
            return "int64";
        case ElementType::uint8:
            return "uint8";
        case ElementType::float16:
            return "float16";
        case ElementType::bfloat16:
            return "bfloat16";
    }
    return "unknown type";
}

std::string name_of(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
            return "sum";
        case ReduceOp::min:
            return "min";
        case ReduceOp::max:
            return "max";
        case ReduceOp::avg:
            return "avg";
    }
    return "unknown reduction";
}

bool reduces(Operation operation) {
    return operation == Operation::all_reduce || operation == Operation::reduce_scatter;
}

bool is_floating(ElementType type) {
    switch (type) {
        case ElementType::float32:
        case ElementType::float64:
        case ElementType::float16:
        case ElementType::bfloat16:
            return true;
        case ElementType::int32:
        case ElementType::int64:
        case ElementType::uint8:
            return false;
    }
    return false;
}

}  // namespace

std::size_t bytes_of(ElementType type) {
    switch (type) {
        case ElementType::float32:
        case ElementType::int32:
            return 4;
        case ElementType::float64:
        case ElementType::int64:
            return 8;
        case ElementType::float16:
        case ElementType::bfloat16:
            return 2;
        case ElementType::uint8:
            return 1;
    }
    return 1;
}

std::string describe(const Call& call) {
    if (call.sequence == 0) return "making the process group";
    std::string words = name_of(call.operation) + " " + std::to_string(call.sequence);
    if (call.operation == Operation::barrier) return words;
    words += " (";
    if (reduces(call.operation)) words += name_of(call.reduce) + " of ";
    words += std::to_string(call.count) + " " + name_of(call.type);
    if (call.operation == Operation::broadcast) words += " from rank " + std::to_string(call.root);
    return words + ")";
}

std::optional<std::string> disagreement(std::span<const Call> calls, std::span<const int> ranks) {
    std::vector<std::pair<Call, std::vector<int>>> groups;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        std::size_t at = 0;
        while (at < groups.size() && groups[at].first != calls[i]) ++at;
        if (at == groups.size()) groups.push_back({calls[i], {}});
        groups[at].second.push_back(ranks[i]);
    }
    if (groups.size() < 2) return std::nullopt;
    std::string words = "the ranks called different collectives: ";
    for (const auto& [call, callers] : groups)
        words += rank_list(callers) + " called " + describe(call) + "; ";
    return words + "all ranks must make the same calls in the same order";
}

std::optional<std::string> misuse(const Call& call, int size) {
    if (call.operation == Operation::broadcast && (call.root < 0 || call.root >= size))
        return describe(call) + ": the ranks are 0 to " + std::to_string(size - 1);
    if (reduces(call.operation) && call.reduce == ReduceOp::avg && !is_floating(call.type))
        return describe(call) + ": an average of integers would be rounded; use sum";
    return std::nullopt;
}

std::optional<std::string> misfit(const Call& call, std::size_t given, int size) {
    const std::size_t needed = call.count * static_cast<std::size_t>(size);
    if (given == needed) return std::nullopt;
    const std::string which = call.operation == Operation::all_gather ? "output" : "input";
    return name_of(call.operation) + ": " + std::to_string(call.count) + " elements for each of " +
           std::to_string(size) + " ranks need an " + which + " of " + std::to_string(needed) +
           " elements, not " + std::to_string(given);
}

}  // namespace ddrun::detail
