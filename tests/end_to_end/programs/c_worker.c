/* A worker in C: every function once; says what it found. */
#include <ddrun/ddrun.h>

#include <stdio.h>
#include <string.h>

#define MUST(call)                                         \
    if ((call) != 0) {                                     \
        fprintf(stderr, "%s: %s\n", #call, ddrun_error()); \
        return ddrun_exit_code();                          \
    }

int main(int argc, char** argv) {
    ddrun_worker* worker = ddrun_open();
    if (worker == NULL) {
        fprintf(stderr, "%s\n", ddrun_error());
        return ddrun_exit_code();
    }
    const int rank = ddrun_rank(worker), world = ddrun_world_size(worker);
    if (rank == 0) MUST(ddrun_store_set(worker, "word", "hello", 5));
    char word[8] = {0};
    size_t bytes = 0;
    MUST(ddrun_store_get(worker, "word", word, sizeof word - 1, &bytes, 10000));
    int64_t sum = 0;
    MUST(ddrun_store_add(worker, "sum", rank + 1, &sum));
    MUST(ddrun_barrier(worker, 10000));
    MUST(ddrun_store_add(worker, "sum", 0, &sum));

    double values[4] = {rank, rank, rank, rank}, all[16], part = 0;
    float* shared = ddrun_allocate(worker, 2 * sizeof(float));
    if (shared == NULL || world > 4) return 1;
    shared[0] = shared[1] = (float)rank;
    MUST(ddrun_all_reduce(worker, shared, 2, DDRUN_FLOAT32, DDRUN_AVG));
    MUST(ddrun_all_gather(worker, values, 1, DDRUN_FLOAT64, all));
    MUST(ddrun_reduce_scatter(worker, all, &part, 1, DDRUN_FLOAT64, DDRUN_SUM));
    MUST(ddrun_broadcast(worker, values, 4, DDRUN_FLOAT64, world - 1));
    ddrun_progress(worker, 1);
    printf("%s %d of %d: sum %ld mean %g part %g last %g stop %d\n", word, rank, world, (long)sum,
           (double)shared[0], part, values[3], ddrun_should_stop(worker));
    fflush(stdout);

    if (ddrun_all_reduce(worker, values, 1, (ddrun_type)99, DDRUN_SUM) != 1) return 1;
    if (strstr(ddrun_error(), "ddrun_type 99") == NULL) return 1;
    int code = 0;
    if (argc > 1 && rank == 0) code = ddrun_never_retry(worker, argv[1]);
    ddrun_close(worker);
    return code;
}
