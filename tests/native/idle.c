// SPDX-License-Identifier: Apache-2.0
//
// Threads without work take no time of the processor: neither before the first run, nor after one,
// nor those of a pool. What counts is processor time, so a busy machine makes no difference.
//
//   idle MODEL.n8
#define _POSIX_C_SOURCE 200112L

#define TEST "idle"
#include "model_file.h"

#include <pthread.h>
#include <time.h>

enum {
    THREADS = 4,
    NAP = 60, // milliseconds
    NAPS = 3,
    LITTLE = 10, // milliseconds of the processor during a nap
    SPIN = 3 * LITTLE,
    RUNS = 20,
};

// Milliseconds.
static double time_of(clockid_t clock) {
    struct timespec now;
    demand(clock_gettime(clock, &now) == 0, "a clock");
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

// Milliseconds of the processor that this process takes while the main thread sleeps; the least of
// some naps, as threads that have just begun are still on their way to sleep.
static double time_of_nap(void) {
    const struct timespec nap = {.tv_nsec = NAP * 1000000L};
    double least = NAP;
    for (int i = 0; i < NAPS && least >= LITTLE; i++) {
        const double before = time_of(CLOCK_PROCESS_CPUTIME_ID);
        demand(nanosleep(&nap, NULL) == 0, "a nap");
        const double taken = time_of(CLOCK_PROCESS_CPUTIME_ID) - before;
        least = taken < least ? taken : least;
    }
    return least;
}

static void *spin(void *argument) {
    while (time_of(CLOCK_THREAD_CPUTIME_ID) < SPIN) {
    }
    return argument;
}

// A thread that does not sleep would be seen.
static void check_the_clock(void) {
    pthread_t thread;
    const double before = time_of(CLOCK_PROCESS_CPUTIME_ID);
    demand(pthread_create(&thread, NULL, spin, NULL) == 0, "a thread");
    demand(pthread_join(thread, NULL) == 0, "the end of a thread");
    demand(time_of(CLOCK_PROCESS_CPUTIME_ID) - before > LITTLE, "the clock stands still");
}

int main(int argc, char **argv) {
    demand(argc == 2, "give the path of a model");
    size_t size;
    void *bytes = read_file(argv[1], &size);
    struct n8_model *model;
    demand(n8_model_open(bytes, size, NULL, &model, NULL) == N8_OK, "the model");
    free(bytes);
    struct ends ends = make_ends(model);
    check_the_clock();

    struct n8_threads *pool;
    demand(n8_threads_create(THREADS, &pool) == N8_OK, "a pool");
    const struct n8_session_options options[] = {{.threads = THREADS}, {.pool = pool}};
    struct n8_session *sessions[2];
    for (size_t i = 0; i < 2; i++) {
        demand(n8_session_create(model, &options[i], &sessions[i]) == N8_OK, "a session");
    }
    demand(time_of_nap() < LITTLE, "threads take time before the first run");
    for (size_t i = 0; i < 2; i++) {
        for (int run = 0; run < RUNS; run++) {
            run_once(sessions[i], &ends);
        }
        demand(time_of_nap() < LITTLE, "threads take time after a run");
    }
    for (size_t i = 0; i < 2; i++) {
        n8_session_destroy(sessions[i]);
    }
    demand(time_of_nap() < LITTLE, "threads of a pool take time without a session");
    n8_threads_destroy(pool);
    n8_model_close(model);
    free_ends(&ends);
    printf("idle: no thread takes time without work\n");
    return 0;
}
