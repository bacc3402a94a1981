#include "worker_sdk/src/local/solo_group.hpp"

#include <ddrun/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>

namespace ddrun::detail {
namespace {

constexpr std::size_t alignment = 64;

void demand(const std::optional<std::string>& problem) {
    if (problem) throw Error(ErrorKind::invalid_use, *problem);
}

void move_bytes(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memmove(to, from, bytes);
}

}  // namespace

void SoloGroup::do_all_reduce(void*, Shape shape, ReduceOp op, const CallOptions&) {
    demand(misuse({.count = shape.count,
                   .operation = Operation::all_reduce,
                   .type = shape.type,
                   .reduce = op},
                  1));
}

void SoloGroup::do_broadcast(void*, Shape shape, int root, const CallOptions&) {
    demand(misuse(
        {.count = shape.count, .root = root, .operation = Operation::broadcast, .type = shape.type},
        1));
}

void SoloGroup::do_all_gather(const void* input, Shape input_shape, void* output,
                              std::size_t output_count, const CallOptions&) {
    demand(
        misfit({.count = input_shape.count, .operation = Operation::all_gather}, output_count, 1));
    move_bytes(output, input, input_shape.count * bytes_of(input_shape.type));
}

void SoloGroup::do_reduce_scatter(const void* input, std::size_t input_count, void* output,
                                  Shape output_shape, ReduceOp op, const CallOptions&) {
    const Call call = {.count = output_shape.count,
                       .operation = Operation::reduce_scatter,
                       .type = output_shape.type,
                       .reduce = op};
    demand(misuse(call, 1));
    demand(misfit(call, input_count, 1));
    move_bytes(output, input, output_shape.count * bytes_of(output_shape.type));
}

void* SoloGroup::do_allocate(std::size_t count, std::size_t element_bytes) {
    if (count > heap_left_ / element_bytes)
        throw Error(ErrorKind::invalid_use,
                    "allocate(" + std::to_string(count) + " elements of " +
                        std::to_string(element_bytes) + " bytes): " + std::to_string(heap_left_) +
                        " bytes are left; raise WorkerOptions::shared_bytes_per_rank");
    const std::size_t bytes =
        std::max<std::size_t>(1, (count * element_bytes + alignment - 1) / alignment) * alignment;
    std::unique_ptr<void, Free> memory(std::aligned_alloc(alignment, bytes));
    if (!memory) throw std::bad_alloc();
    std::memset(memory.get(), 0, bytes);
    heap_.push_back(std::move(memory));
    heap_left_ -= std::min(heap_left_, bytes);
    return heap_.back().get();
}

void SoloGroup::Free::operator()(void* memory) const {
    std::free(memory);
}

}  // namespace ddrun::detail
