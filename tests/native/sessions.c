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
#include <string.h>

enum { SAMPLES = 5, ROUNDS = 12, RUNNERS = 6 };

struct sample {
    void *inputs[MAX_ENDS];
    void *expected[MAX_ENDS];
};

static const struct n8_model *model;
static size_t input_count, output_count;
static struct sample samples[SAMPLES];

static void fill(void *memory, const struct n8_tensor_info *info, uint32_t state) {
    float *reals = memory;
    uint8_t *bytes = memory;
    for (size_t i = 0; i < (info->type == N8_TYPE_F32 ? info->size / 4 : info->size); i++) {
        state = state * 1664525 + 1013904223;
        if (info->type == N8_TYPE_F32) {
            reals[i] = (float)(state >> 8) / 4194304.0f - 2.0f;
        } else {
            bytes[i] = (uint8_t)(state >> 16);
        }
    }
}

static struct n8_session *open_session(int32_t threads, struct n8_threads *pool) {
    const struct n8_session_options options = {.threads = threads, .pool = pool};
    struct n8_session *session;
    demand(n8_session_create(model, &options, &session) == N8_OK, "a session");
    return session;
}

static void run(struct n8_session *session, const struct sample *sample, void *const *outputs) {
    const void *inputs[MAX_ENDS];
    memcpy(inputs, sample->inputs, sizeof inputs);
    demand(n8_session_run(session, inputs, outputs) == N8_OK, "a run");
}

static void make_samples(void) {
    struct n8_session *session = open_session(1, NULL);
    for (size_t s = 0; s < SAMPLES; s++) {
        for (size_t i = 0; i < input_count; i++) {
            const struct n8_tensor_info info = end_of(model, N8_INPUT, i);
            samples[s].inputs[i] = room(info.size);
            fill(samples[s].inputs[i], &info, (uint32_t)(s * MAX_ENDS + i));
        }
        for (size_t i = 0; i < output_count; i++) {
            samples[s].expected[i] = room(end_of(model, N8_OUTPUT, i).size);
        }
        run(session, &samples[s], samples[s].expected);
    }
    n8_session_destroy(session);
    const size_t last = output_count - 1;
    demand(memcmp(samples[0].expected[last], samples[1].expected[last],
                  end_of(model, N8_OUTPUT, last).size) != 0,
           "two samples have the same result");
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
    void *outputs[MAX_ENDS] = {NULL};
    for (size_t i = 0; i < output_count; i++) {
        outputs[i] = room(end_of(model, N8_OUTPUT, i).size);
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        struct n8_session *session = open_session(runner->own, runner->pool);
        for (size_t s = 0; s < SAMPLES; s++) {
            const struct sample *sample = &samples[(runner->first + s) % SAMPLES];
            run(session, sample, outputs);
            for (size_t i = 0; i < output_count; i++) {
                demand(memcmp(outputs[i], sample->expected[i], end_of(model, N8_OUTPUT, i).size) ==
                           0,
                       "another result than one thread gave");
            }
        }
        n8_session_destroy(session);
    }
    for (size_t i = 0; i < output_count; i++) {
        free(outputs[i]);
    }
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
    struct n8_model_facts facts;
    demand(n8_model_describe(model, &facts) == N8_OK, "the model's facts");
    input_count = facts.input_count;
    output_count = facts.output_count;
    demand(input_count <= MAX_ENDS && output_count <= MAX_ENDS, "the number of ends");
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
        for (size_t i = 0; i < MAX_ENDS; i++) {
            free(samples[s].inputs[i]);
            free(samples[s].expected[i]);
        }
    }
    printf("sessions: %d at once, %d runs each, on %d levels, all bytes as by one thread\n",
           RUNNERS, ROUNDS * SAMPLES, levels);
    return 0;
}
