#include <ddrun/ddrun.h>
#include <ddrun/worker.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <string>

struct ddrun_worker {
    ddrun::Worker worker;
};

namespace {

using ddrun::ReduceOp;

struct LastError {
    std::string words;
    int exit_code = 0;
};
thread_local LastError last_error;

// What `call` throws becomes this thread's last error; its exit code, or 0.
template <typename Call>
int guarded(Call call) noexcept {
    try {
        call();
        return 0;
    } catch (const ddrun::Error& error) {
        last_error = {error.what(), error.exit_code()};
    } catch (const std::exception& error) {
        last_error = {error.what(), 1};
    }
    return last_error.exit_code;
}

ReduceOp op_of(ddrun_op op) {
    switch (op) {
        case DDRUN_SUM:
            return ReduceOp::sum;
        case DDRUN_MIN:
            return ReduceOp::min;
        case DDRUN_MAX:
            return ReduceOp::max;
        case DDRUN_AVG:
            return ReduceOp::avg;
    }
    throw ddrun::Error(ddrun::ErrorKind::invalid_use,
                       "ddrun_op " + std::to_string(op) + " does not exist");
}

// Calls `work` with an element's null pointer, to say its type.
template <typename Work>
void with_type(ddrun_type type, Work work) {
    switch (type) {
        case DDRUN_FLOAT32:
            return work(static_cast<float*>(nullptr));
        case DDRUN_FLOAT64:
            return work(static_cast<double*>(nullptr));
        case DDRUN_INT32:
            return work(static_cast<std::int32_t*>(nullptr));
        case DDRUN_INT64:
            return work(static_cast<std::int64_t*>(nullptr));
        case DDRUN_UINT8:
            return work(static_cast<std::uint8_t*>(nullptr));
        case DDRUN_FLOAT16:
            return work(static_cast<ddrun::Float16*>(nullptr));
        case DDRUN_BFLOAT16:
            return work(static_cast<ddrun::BFloat16*>(nullptr));
    }
    throw ddrun::Error(ddrun::ErrorKind::invalid_use,
                       "ddrun_type " + std::to_string(type) + " does not exist");
}

template <typename T>
std::span<T> elements(void* data, std::size_t count) {
    return {static_cast<T*>(data), count};
}
template <typename T>
std::span<const T> elements(const void* data, std::size_t count) {
    return {static_cast<const T*>(data), count};
}

std::size_t world_of(const ddrun_worker* worker) {
    return static_cast<std::size_t>(worker->worker.world_size());
}

}  // namespace

extern "C" {

ddrun_worker* ddrun_open(void) {
    ddrun_worker* opened = nullptr;
    (void)guarded([&] { opened = new ddrun_worker{ddrun::Worker::from_environment()}; });
    return opened;
}

void ddrun_close(ddrun_worker* worker) {
    delete worker;
}

const char* ddrun_error(void) {
    return last_error.words.c_str();
}

int ddrun_exit_code(void) {
    return last_error.exit_code;
}

int ddrun_rank(const ddrun_worker* worker) {
    return worker->worker.rank();
}
int ddrun_world_size(const ddrun_worker* worker) {
    return worker->worker.world_size();
}
int ddrun_local_rank(const ddrun_worker* worker) {
    return worker->worker.local_rank();
}
int ddrun_local_world_size(const ddrun_worker* worker) {
    return worker->worker.local_world_size();
}
int ddrun_node_rank(const ddrun_worker* worker) {
    return worker->worker.node_rank();
}
int ddrun_node_count(const ddrun_worker* worker) {
    return worker->worker.node_count();
}
int ddrun_round(const ddrun_worker* worker) {
    return worker->worker.round();
}

int ddrun_should_stop(ddrun_worker* worker) {
    return worker->worker.should_stop() ? 1 : 0;
}
void ddrun_progress(ddrun_worker* worker, int64_t step) {
    worker->worker.progress(step);
}
int ddrun_never_retry(ddrun_worker* worker, const char* words) {
    return guarded([&] { worker->worker.never_retry(words); });
}

int ddrun_store_set(ddrun_worker* worker, const char* key, const void* value, size_t bytes) {
    return guarded([&] {
        worker->worker.store().set(key, {static_cast<const char*>(value), bytes});
    });
}
int ddrun_store_get(ddrun_worker* worker, const char* key, void* buffer, size_t capacity,
                    size_t* bytes, int64_t timeout_ms) {
    return guarded([&] {
        const std::string value =
            worker->worker.store().get(key, ddrun::Store::Timeout(timeout_ms));
        if (const std::size_t fits = std::min(capacity, value.size()); fits > 0)
            std::memcpy(buffer, value.data(), fits);
        if (bytes != nullptr) *bytes = value.size();
    });
}
int ddrun_store_add(ddrun_worker* worker, const char* key, int64_t delta, int64_t* sum) {
    return guarded([&] {
        const std::int64_t now = worker->worker.store().add(key, delta);
        if (sum != nullptr) *sum = now;
    });
}
int ddrun_barrier(ddrun_worker* worker, int64_t timeout_ms) {
    return guarded([&] { worker->worker.barrier(ddrun::Store::Timeout(timeout_ms)); });
}

int ddrun_all_reduce(ddrun_worker* worker, void* data, size_t count, ddrun_type type, ddrun_op op) {
    return guarded([&] {
        with_type(type, [&]<typename T>(T*) {
            worker->worker.process_group().all_reduce(elements<T>(data, count), op_of(op));
        });
    });
}
int ddrun_broadcast(ddrun_worker* worker, void* data, size_t count, ddrun_type type, int root) {
    return guarded([&] {
        with_type(type, [&]<typename T>(T*) {
            worker->worker.process_group().broadcast(elements<T>(data, count), root);
        });
    });
}
int ddrun_all_gather(ddrun_worker* worker, const void* input, size_t count, ddrun_type type,
                     void* output) {
    return guarded([&] {
        with_type(type, [&]<typename T>(T*) {
            worker->worker.process_group().all_gather(
                elements<T>(input, count), elements<T>(output, count * world_of(worker)));
        });
    });
}
int ddrun_reduce_scatter(ddrun_worker* worker, const void* input, void* output, size_t count,
                         ddrun_type type, ddrun_op op) {
    return guarded([&] {
        with_type(type, [&]<typename T>(T*) {
            worker->worker.process_group().reduce_scatter(
                elements<T>(input, count * world_of(worker)), elements<T>(output, count),
                op_of(op));
        });
    });
}
void* ddrun_allocate(ddrun_worker* worker, size_t bytes) {
    void* memory = nullptr;
    (void)guarded(
        [&] { memory = worker->worker.process_group().allocate<std::uint8_t>(bytes).data(); });
    return memory;
}

}  // extern "C"
