// SPDX-License-Identifier: Apache-2.0
//
// Sessions that run at the same time: several on one model, some on one pool of threads, some
// with their own, at each level that this processor has. Each must give the bytes that one thread
// gave before, on the lowest level. Under ThreadSanitizer this also shows that no two of them touch
// the same memory.
//
//   sessions MODEL.n8
#define TEST "sessions"
#include "cpu/cpu.h"
#include "model_file.h"

#include <pthread.h>

enum { SAMPLES = 5, ROUNDS = 12, RUNNERS = 6 };

static const struct n8_model *model;
static struct ends samples[SAMPLES]; // and their results

// A session needs room for what its clock shows.
static uint64_t tick(void *context) {
    return 0;
}

static struct n8_session *open_session(int32_t threads, struct n8_threads *pool) {
    const struct n8_session_options options = {.threads = threads, .pool = pool, .clock = tick};
    struct n8_session *session;
    demand(n8_session_create(model, &options, &session) == N8_OK, "a session");
    return session;
}

static void make_samples(void) {
    struct n8_session *session = open_session(1, NULL);
    for (uint32_t s = 0; s < SAMPLES; s++) {
        samples[s] = make_ends(model);
        fill_inputs(model, &samples[s], s * MAX_ENDS);
        run_once(session, &samples[s]);
    }
    n8_session_destroy(session);
    demand(!same_outputs(model, &samples[0], &samples[1]), "two samples have the same result");
}

struct runner {
    pthread_t thread;
    struct n8_threads *pool; // NULL: threads of its own
    int32_t own;
    size_t first;
};

// Opens sessions and runs them while the other runners do the same.
static void *work(void *argument) {
    const struct runner *runner = argument;
    struct ends own = make_ends(model);
    for (size_t round = 0; round < ROUNDS; round++) {
        struct n8_session *session = open_session(runner->own, runner->pool);
        for (size_t s = 0; s < SAMPLES; s++) {
            const struct ends *sample = &samples[(runner->first + s) % SAMPLES];
            struct ends ends = own;
            memcpy(ends.inputs, sample->inputs, sizeof ends.inputs);
            run_once(session, &ends);
            demand(same_outputs(model, &own, sample), "another result than one thread gave");
        }
        n8_session_destroy(session);
    }
    free_ends(&own);
    return NULL;
}

// What the calls for pools and sessions refuse.
static void check_arguments(struct n8_threads *pool) {
    struct n8_threads *none = pool;
    demand(n8_threads_create(0, &none) == N8_E_ARGUMENT && none == NULL, "0 threads");
    demand(n8_threads_create(65, &none) == N8_E_ARGUMENT && none == NULL, "65 threads");
    demand(n8_threads_create(2, NULL) == N8_E_ARGUMENT, "nowhere to put a pool");
    const struct n8_session_options both = {.threads = 2, .pool = pool};
    const struct n8_session_options neither = {.threads = 0};
    struct n8_session *session;
    demand(n8_session_create(model, &both, &session) == N8_E_ARGUMENT && session == NULL,
           "threads and a pool");
    demand(n8_session_create(model, &neither, &session) == N8_E_ARGUMENT && session == NULL,
           "no thread at all");
    n8_threads_destroy(NULL);
}

static void check_level(const void *bytes, size_t size, enum n8_isa isa) {
    const struct n8_model_options options = {.isa = isa};
    struct n8_model *opened;
    demand(n8_model_open(bytes, size, &options, &opened, NULL) == N8_OK, "the model");
    model = opened;
    if (samples[0].inputs[0] == NULL) {
        make_samples();
    }

    struct n8_threads *pool;
    demand(n8_threads_create(4, &pool) == N8_OK, "a pool");
    check_arguments(pool);
    struct runner runners[RUNNERS];
    for (size_t i = 0; i < RUNNERS; i++) {
        const int own = i >= 4; // four on the pool; one with three threads, one with one
        runners[i] = (struct runner){
            .pool = own ? NULL : pool, .own = own ? (i == 4 ? 3 : 1) : 0, .first = i};
        demand(pthread_create(&runners[i].thread, NULL, work, &runners[i]) == 0, "a thread");
    }
    for (size_t i = 0; i < RUNNERS; i++) {
        demand(pthread_join(runners[i].thread, NULL) == 0, "the end of a thread");
    }
    n8_threads_destroy(pool);
    n8_model_close(opened);
}

int main(int argc, char **argv) {
    demand(argc == 2, "give the path of a model");
    size_t size;
    void *bytes = read_file(argv[1], &size);
    const enum n8_isa best = n8_cpu_best();
    int levels = 0;
    for (enum n8_isa isa = N8_ISA_C; isa <= best; isa++) {
        if (n8_cpu_has(isa)) {
            check_level(bytes, size, isa);
            levels++;
        }
    }
    free(bytes);
    for (size_t s = 0; s < SAMPLES; s++) {
        free_ends(&samples[s]);
    }
    printf("sessions: %d at once, %d runs each, on %d levels, all bytes as by one thread\n",
           RUNNERS, ROUNDS * SAMPLES, levels);
    return 0;
}
