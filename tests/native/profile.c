// SPDX-License-Identifier: Apache-2.0
//
// n8_session_profile: the clock is read between all parts of a run, by the thread that runs, and
// neither changes a byte of the results nor is asked for when there is none.
//
//   profile MODEL.n8
#define TEST "profile"
#include "model_file.h"

#include <pthread.h>
#include <string.h>

enum { RUNS = 3 };

struct clock {
    pthread_t thread;
    uint64_t ticks;
};

static uint64_t tick(void *context) {
    struct clock *clock = context;
    demand(pthread_equal(clock->thread, pthread_self()), "the thread that runs");
    return clock->ticks++;
}

int main(int count, char **arguments) {
    demand(count == 2, "usage: profile MODEL.n8");
    size_t size;
    void *bytes = read_file(arguments[1], &size);
    struct n8_model *model;
    demand(n8_model_open(bytes, size, NULL, &model, NULL) == N8_OK, "a model");
    struct n8_model_facts facts;
    demand(n8_model_describe(model, &facts) == N8_OK, "the model's facts");
    struct ends plain = make_ends(model), timed = make_ends(model);
    struct clock clock = {.thread = pthread_self()};
    for (int32_t threads = 1; threads <= 4; threads++) {
        struct n8_session_options options = {.threads = threads};
        struct n8_session *session, *other;
        demand(n8_session_create(model, &options, &session) == N8_OK, "a session");
        options.clock = tick;
        options.clock_context = &clock;
        demand(n8_session_create(model, &options, &other) == N8_OK, "one with a clock");
        demand(n8_session_profile(session) == NULL, "times without a clock");
        const uint64_t *times = n8_session_profile(other);
        for (int run = 0; run < RUNS; run++) {
            const uint64_t first = clock.ticks;
            const void *inputs[MAX_ENDS];
            memcpy(inputs, plain.inputs, sizeof inputs);
            demand(n8_session_run(session, inputs, plain.outputs) == N8_OK, "a run");
            demand(clock.ticks == first, "a clock that is not asked");
            demand(n8_session_run(other, inputs, timed.outputs) == N8_OK, "a run with a clock");
            for (size_t i = 0; i < facts.step_count + 3; i++) {
                demand(times[i] == first + i, "the times in order");
            }
            demand(clock.ticks == first + facts.step_count + 3, "as many as there are parts");
            for (size_t i = 0; i < facts.output_count; i++) {
                const size_t length = end_of(model, N8_OUTPUT, i).size;
                demand(memcmp(plain.outputs[i], timed.outputs[i], length) == 0, "the same bytes");
            }
        }
        n8_session_destroy(session);
        n8_session_destroy(other);
    }
    n8_model_close(model);
    free_ends(&plain);
    free_ends(&timed);
    free(bytes);
    puts("profile: ok");
    return 0;
}
