#include "worker_sdk/src/cpu/shared_group.hpp"

#include "worker_sdk/src/cpu/combine.hpp"
#include "worker_sdk/src/cpu/copy_bytes.hpp"
#include "worker_sdk/src/failure.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace ddrun::detail {
namespace {

const auto nothing = [](const auto&) {};

}  // namespace

SharedGroup::SharedGroup(std::unique_ptr<Arena> arena, const Settings& settings, GroupHooks hooks)
    : arena_(std::move(arena)),
      slots_(arena_->slots()),
      self_(settings.rank),
      world_ranks_(settings.world_ranks),
      timeout_(settings.timeout),
      hooks_(std::move(hooks)),
      meeting_(*arena_, settings.rank, settings.world_ranks, settings.spins),
      calls_(slots_.size()),
      sources_(slots_.size()),
      sinks_(slots_.size()) {}

SharedGroup::~SharedGroup() {
    if (!guard_.in_child()) {
        hooks_.ends();
        break_up({Fault::Kind::peer_left, world_rank(), world_rank()});
    }
    end_calls();
}

void SharedGroup::do_barrier(const CallOptions& options) {
    const Running running = start({.operation = Operation::barrier}, nullptr, 0, options);
    announce(running);
    meet(running);
    compare_calls(running);
}

void SharedGroup::do_all_reduce(void* data, Shape shape, ReduceOp op, const CallOptions& options) {
    const std::size_t element = bytes_of(shape.type);
    const Running running = start({.count = shape.count,
                                   .operation = Operation::all_reduce,
                                   .type = shape.type,
                                   .reduce = op},
                                  data, shape.count * element, options);
    const auto self = static_cast<std::size_t>(self_);
    auto* const own = static_cast<std::byte*>(data);
    const auto own_part = [&](const Slice& slice) {
        return part_of(slice.count, slots_.size(), self, cache_line / element);
    };
    // All of a piece but this rank's own part, which nobody else touches: (buffer, window, bytes).
    const auto for_the_rest = [&](const Piece& piece, auto move) {
        if (uses_heap(self)) return;
        const Slice part = own_part(piece.slice);
        const std::size_t after = part.first + part.count;
        std::byte* const buffer = own + piece.slice.first * element;
        std::byte* const shared = window(self, piece.half);
        move(buffer, shared, part.first * element);
        move(buffer + after * element, shared + after * element,
             (piece.slice.count - after) * element);
    };
    run(
        running,
        [&](const Piece& piece) {
            for_the_rest(piece,
                         [](auto* buffer, auto* shared, auto n) { copy_bytes(shared, buffer, n); });
        },
        [&](const Piece& piece) {
            const Slice part = own_part(piece.slice);
            const std::size_t index = piece.slice.first + part.first;
            for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
                sinks_[rank] = reach(running, rank, piece.half, index, piece.slice.first);
                sources_[rank] = sinks_[rank];
            }
            combine(shape.type, op, sources_, sinks_, part.count);
        },
        [&](const Piece& piece) {
            for_the_rest(piece,
                         [](auto* buffer, auto* shared, auto n) { copy_bytes(buffer, shared, n); });
        });
}

void SharedGroup::do_reduce_scatter(const void* input, std::size_t input_count, void* output,
                                    Shape output_shape, ReduceOp op, const CallOptions& options) {
    const std::size_t element = bytes_of(output_shape.type);
    const std::size_t each = output_shape.count;
    const Call call = {.count = each,
                       .operation = Operation::reduce_scatter,
                       .type = output_shape.type,
                       .reduce = op};
    check_lengths(call, input_count);
    Running running = start(call, input, input_count * element, options);
    running.longest /= slots_.size();  // a window holds one part for each rank
    const auto self = static_cast<std::size_t>(self_);
    const auto* const own = static_cast<const std::byte*>(input);
    run(
        running,
        [&](const Piece& piece) {
            if (uses_heap(self)) return;
            const auto [first, count] = piece.slice;
            for (std::size_t rank = 0; rank < slots_.size(); ++rank)
                if (rank != self)
                    copy_bytes(window(self, piece.half) + rank * count * element,
                               own + (rank * each + first) * element, count * element);
        },
        [&](const Piece& piece) {
            const auto [first, count] = piece.slice;
            const std::size_t index = self * each + first;
            for (std::size_t rank = 0; rank < slots_.size(); ++rank)
                sources_[rank] = reach(running, rank, piece.half, index, index - self * count);
            std::byte* sink = static_cast<std::byte*>(output) + first * element;
            combine(output_shape.type, op, sources_, {&sink, 1}, count);
        },
        nothing);
}

void SharedGroup::do_all_gather(const void* input, Shape input_shape, void* output,
                                std::size_t output_count, const CallOptions& options) {
    const std::size_t element = bytes_of(input_shape.type);
    const std::size_t each = input_shape.count;
    const Call call = {.count = each, .operation = Operation::all_gather, .type = input_shape.type};
    check_lengths(call, output_count);
    const Running running = start(call, input, each * element, options);
    const auto self = static_cast<std::size_t>(self_);
    auto* const to = static_cast<std::byte*>(output);
    if (each > 0 && to + self * each * element != input)
        copy_bytes(to + self * each * element, input, each * element);
    run(
        running, [&](const Piece& piece) { put_in_slice(running, piece); },
        [&](const Piece& piece) {
            const auto [first, count] = piece.slice;
            for (std::size_t rank = 0; rank < slots_.size(); ++rank)
                if (rank != self)
                    copy_bytes(to + (rank * each + first) * element,
                               reach(running, rank, piece.half, first, first), count * element);
        },
        nothing);
}

void SharedGroup::do_broadcast(void* data, Shape shape, int root, const CallOptions& options) {
    const std::size_t element = bytes_of(shape.type);
    const Running running = start(
        {.count = shape.count, .root = root, .operation = Operation::broadcast, .type = shape.type},
        data, shape.count * element, options);
    const bool gives = root == self_;
    run(
        running,
        [&](const Piece& piece) {
            if (gives) put_in_slice(running, piece);
        },
        [&](const Piece& piece) {
            const auto [first, count] = piece.slice;
            if (!gives)
                copy_bytes(static_cast<std::byte*>(data) + first * element,
                           reach(running, static_cast<std::size_t>(root), piece.half, first, first),
                           count * element);
        },
        nothing);
}

void* SharedGroup::do_allocate(std::size_t count, std::size_t element_bytes) {
    guard_.check();
    const std::size_t limit = arena_->shape().heap_bytes;
    std::size_t used = heap_used_.load();
    std::size_t bytes = 0;
    do {
        bytes = (count * element_bytes + cache_line - 1) / cache_line * cache_line;
        if (count > limit / element_bytes || bytes > limit - used)
            throw Error(ErrorKind::invalid_use,
                        "allocate(" + std::to_string(count) + " elements of " +
                            std::to_string(element_bytes) + " bytes): " + std::to_string(used) +
                            " of " + std::to_string(limit) +
                            " bytes are in use; raise WorkerOptions::shared_bytes_per_rank");
    } while (!heap_used_.compare_exchange_weak(used, used + bytes));
    return arena_->heap(self_) + used;
}

// --- the course of an operation -----------------------------------------------------------------

template <typename PutIn, typename Work, typename TakeOut>
void SharedGroup::run(const Running& running, PutIn put_in, Work work, TakeOut take_out) {
    announce(running);
    Pieces pieces(running.call.count, running.longest);
    put_in(Piece{pieces[0], 0});
    meet(running);
    compare_calls(running);
    if (needs_no_windows(running)) pieces = Pieces(running.call.count, running.call.count);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece piece{pieces[i], i % 2};
        work(piece);
        if (i + 1 < pieces.size()) put_in(Piece{pieces[i + 1], (i + 1) % 2});
        meet(running);
        take_out(piece);
    }
}

void SharedGroup::check_lengths(const Call& call, std::size_t longer) const {
    if (const auto problem = misfit(call, longer, size()))
        throw Error(ErrorKind::invalid_use, *problem);
}

SharedGroup::Running SharedGroup::start(Call call, const void* buffer, std::size_t bytes,
                                        const CallOptions& options) {
    if (broken_) throw_failure(*broken_);
    call.sequence = sequence_ + 1;
    if (const auto problem = misuse(call, size())) throw Error(ErrorKind::invalid_use, *problem);
    ++sequence_;
    Running running;
    running.call = call;
    running.deadline = std::chrono::steady_clock::now() + options.timeout.value_or(timeout_);
    running.element = bytes_of(call.type);
    running.buffer = static_cast<const std::byte*>(buffer);
    running.bytes = bytes;
    running.longest = arena_->shape().window_bytes / 2 / running.element;
    return running;
}

void SharedGroup::announce(const Running& running) {
    const std::byte* const heap = arena_->heap(self_);
    const std::byte* const heap_end = heap + arena_->shape().heap_bytes;
    Announcement& mine = own_slot().announcements[running.call.sequence % 2];
    mine.call = told(running);
    mine.in_heap = running.buffer >= heap && running.buffer + running.bytes <= heap_end;
    mine.heap_offset = mine.in_heap ? static_cast<std::uint64_t>(running.buffer - heap) : 0;
    mine.wants_stop = hooks_.wants_stop();
}

void SharedGroup::meet(const Running& running) {
    if (!meeting_.meet(running.deadline)) fail(running);
}

void SharedGroup::compare_calls(const Running& running) {
    bool equal = true;
    bool stop = false;
    for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
        const Announcement& theirs = announcement(rank);
        equal = equal && theirs.call == told(running);
        stop = stop || theirs.wants_stop;
    }
    if (stop) hooks_.stop_is_agreed();
    if (equal) return;
    for (std::size_t rank = 0; rank < slots_.size(); ++rank) calls_[rank] = announcement(rank).call;
    fail_for_good({ErrorKind::desynchronised, -1, disagreement(calls_, world_ranks_).value_or("")});
}

bool SharedGroup::needs_no_windows(const Running& running) const {
    if (running.call.operation == Operation::broadcast)
        return uses_heap(static_cast<std::size_t>(running.call.root));
    for (std::size_t rank = 0; rank < slots_.size(); ++rank)
        if (!uses_heap(rank)) return false;
    return true;
}

void SharedGroup::fail(const Running& running) {
    const Fault fault = meeting_.fault();
    const bool died = fault.kind == Fault::Kind::peer_lost;
    const Failure failure = failure_of(fault, told(running), meeting_.missing(),
                                       died ? hooks_.cause() : "", world_rank());
    if (failure.kind != ErrorKind::agent_lost && fault.rank != world_rank())
        hooks_.blame(fault.rank, failure.words);
    fail_for_good(failure);
}

void SharedGroup::fail_for_good(const Failure& failure) {
    broken_ = failure;
    throw_failure(failure);
}

void SharedGroup::put_in_slice(const Running& running, const Piece& piece) {
    if (uses_heap(static_cast<std::size_t>(self_))) return;
    copy_bytes(window(static_cast<std::size_t>(self_), piece.half),
               running.buffer + piece.slice.first * running.element,
               piece.slice.count * running.element);
}

const Announcement& SharedGroup::announcement(std::size_t rank) const {
    return slots_[rank].announcements[sequence_ % 2];
}

std::byte* SharedGroup::window(std::size_t rank, std::size_t half) const {
    return arena_->window(static_cast<int>(rank)) + half * (arena_->shape().window_bytes / 2);
}

std::byte* SharedGroup::reach(const Running& running, std::size_t rank, std::size_t half,
                              std::size_t index, std::size_t window_first) const {
    if (rank == static_cast<std::size_t>(self_))
        return const_cast<std::byte*>(running.buffer) + index * running.element;
    if (uses_heap(rank))
        return arena_->heap(static_cast<int>(rank)) + announcement(rank).heap_offset +
               index * running.element;
    return window(rank, half) + (index - window_first) * running.element;
}

}  // namespace ddrun::detail
