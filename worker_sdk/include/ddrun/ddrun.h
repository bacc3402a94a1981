/* The worker SDK for programs in C, and for languages that call C. The same things as
 * <ddrun/worker.hpp>, which says of each whether it blocks and for how long.
 *
 *     ddrun_worker *worker = ddrun_open();
 *     if (worker == NULL) { fprintf(stderr, "%s\n", ddrun_error()); return ddrun_exit_code(); }
 *     ...
 *     if (ddrun_all_reduce(worker, gradients, count, DDRUN_FLOAT32, DDRUN_AVG) != 0) ...
 *     ddrun_close(worker);
 *
 * A function that returns int, other than who I am, returns 0, or what main() should return for
 * what went wrong (75: worth another attempt, ...; see ddrun::Error); ddrun_error() then has the
 * words. Threads: any for the store; one at a time for collectives; ddrun_error() is each thread's
 * own. */
#ifndef DDRUN_H
#define DDRUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ddrun_worker ddrun_worker;

typedef enum {
    DDRUN_FLOAT32,
    DDRUN_FLOAT64,
    DDRUN_INT32,
    DDRUN_INT64,
    DDRUN_UINT8,
    DDRUN_FLOAT16,
    DDRUN_BFLOAT16
} ddrun_type;

typedef enum { DDRUN_SUM, DDRUN_MIN, DDRUN_MAX, DDRUN_AVG } ddrun_op;

/* NULL: it failed. Started alone, a program is a world of one. */
ddrun_worker* ddrun_open(void);
/* NULL is let pass. */
void ddrun_close(ddrun_worker* worker);

/* Of this thread's last call that failed; valid until its next one. */
const char* ddrun_error(void);
int ddrun_exit_code(void);

int ddrun_rank(const ddrun_worker* worker);
int ddrun_world_size(const ddrun_worker* worker);
int ddrun_local_rank(const ddrun_worker* worker);
int ddrun_local_world_size(const ddrun_worker* worker);
int ddrun_node_rank(const ddrun_worker* worker);
int ddrun_node_count(const ddrun_worker* worker);
int ddrun_round(const ddrun_worker* worker);

/* 1: finish the step, save and end. */
int ddrun_should_stop(ddrun_worker* worker);
void ddrun_progress(ddrun_worker* worker, int64_t step);
/* Returns 93: give it to main()'s return. */
int ddrun_never_retry(ddrun_worker* worker, const char* words);

int ddrun_store_set(ddrun_worker* worker, const char* key, const void* value, size_t bytes);
/* Waits for the key, at most timeout_ms. *bytes becomes the value's length; as much of it as fits
 * into `capacity` is copied to `buffer`. */
int ddrun_store_get(ddrun_worker* worker, const char* key, void* buffer, size_t capacity,
                    size_t* bytes, int64_t timeout_ms);
int ddrun_store_add(ddrun_worker* worker, const char* key, int64_t delta, int64_t* sum);
/* All ranks meet. */
int ddrun_barrier(ddrun_worker* worker, int64_t timeout_ms);

int ddrun_all_reduce(ddrun_worker* worker, void* data, size_t count, ddrun_type type, ddrun_op op);
int ddrun_broadcast(ddrun_worker* worker, void* data, size_t count, ddrun_type type, int root);
/* `count` elements of each rank; `output` holds world_size times as many. */
int ddrun_all_gather(ddrun_worker* worker, const void* input, size_t count, ddrun_type type,
                     void* output);
/* `count` elements for each rank; `input` holds world_size times as many. */
int ddrun_reduce_scatter(ddrun_worker* worker, const void* input, void* output, size_t count,
                         ddrun_type type, ddrun_op op);
/* Memory that collectives need not copy; zeroed, valid until ddrun_close(). NULL: it failed. */
void* ddrun_allocate(ddrun_worker* worker, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
