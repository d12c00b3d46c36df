// SPDX-License-Identifier: Apache-2.0
//
// A model with open dimensions at several shapes at a time: threads make models of the same file,
// which pack and share its weights, run them and close them. Each must give the bytes of a model
// that was opened at the shape and shares with nobody. Under ThreadSanitizer this also shows that
// no two of them touch the same memory.
//
// Between them the models must have a layer whose kernel, and so the order of its weights, depends
// on the shape.
//
//   shapes MODEL.n8 ...
#define TEST "shapes"
#include "cpu/cpu.h"
#include "model_file.h"

#include <pthread.h>

enum { SHAPES = 6, RUNNERS = 4, ROUNDS = 3 };

typedef int32_t shape[8];

static const struct n8_model *model;
static shape shapes[SHAPES][MAX_ENDS];
static struct ends expected[SHAPES];
static size_t input_count;
static int changing; // layers that have another kernel at another shape

static void run(const struct n8_model *at, const struct ends *ends) {
    const struct n8_session_options options = {.threads = 1};
    struct n8_session *session;
    demand(n8_session_create(at, &options, &session) == N8_OK, "a session");
    run_once(session, ends);
    n8_session_destroy(session);
}

static void *work(void *argument) {
    const size_t first = *(const size_t *)argument;
    for (size_t round = 0; round < ROUNDS * SHAPES; round++) {
        const size_t s = (first + round) % SHAPES;
        struct n8_model *at;
        demand(n8_model_reshape(model, shapes[s], &at, NULL) == N8_OK, "another shape");
        struct ends ends = make_ends(at);
        fill_inputs(at, &ends, 0);
        run(at, &ends);
        demand(same_outputs(at, &ends, &expected[s]),
               "another result than that of a model that shares nothing");
        free_ends(&ends);
        n8_model_close(at);
    }
    return NULL;
}

// Shape `s` of each input: the sizes of its dimensions go from their least to their largest.
static void choose(size_t s) {
    for (size_t i = 0; i < input_count; i++) {
        struct n8_dimension d;
        for (size_t axis = 0; n8_model_bounds(model, i, axis, &d) == N8_OK; axis++) {
            const int32_t count = (d.hi - d.lo) / d.step;
            shapes[s][i][axis] = d.lo + d.step * (int32_t)((size_t)count * s / (SHAPES - 1));
        }
    }
}

static void check_refusals(void) {
    struct n8_model *none;
    struct n8_model_error error;
    struct n8_dimension d;
    shape wrong[MAX_ENDS];
    demand(n8_model_bounds(model, input_count, 0, &d) == N8_E_ARGUMENT, "no such input");
    demand(n8_model_bounds(model, 0, 8, &d) == N8_E_ARGUMENT, "no such dimension");
    for (size_t axis = 0; n8_model_bounds(model, 0, axis, &d) == N8_OK; axis++) {
        memcpy(wrong, shapes[0], sizeof wrong);
        wrong[0][axis] = d.hi + 1;
        demand(n8_model_reshape(model, wrong, &none, &error) == N8_E_SHAPE && none == NULL,
               "a dimension above its bound");
        demand(error.name != NULL && error.reason != NULL && error.axis == (int32_t)axis,
               "what is wrong with it");
        wrong[0][axis] = d.lo - 1;
        demand(n8_model_reshape(model, wrong, &none, NULL) == N8_E_SHAPE, "one below");
    }
    demand(n8_model_reshape(model, shapes[0], NULL, NULL) == N8_E_ARGUMENT, "nowhere to put it");
}

// What all shapes fit in is what the largest takes.
static void check_largest(const void *bytes, size_t size, enum n8_isa isa) {
    struct n8_model_options options = {.isa = isa, .shapes = (const shape *)shapes[SHAPES - 1]};
    struct n8_memory measured, said;
    struct n8_model *opened, *none;
    struct n8_model_error error;
    demand(n8_model_measure(bytes, size, &options, &measured, NULL) == N8_OK, "the last shape");
    options.largest = 1;
    demand(n8_model_measure(bytes, size, &options, &said, &error) == N8_E_ARGUMENT, "one of them");
    options.shapes = NULL;
    demand(n8_model_measure(bytes, size, &options, &said, NULL) == N8_OK, "the largest");
    demand(memcmp(&said, &measured, sizeof said) == 0, "the last shape to be the largest");
    options.max_bytes = said.tables + said.packed + said.arena + said.scratch;
    demand(n8_model_open(bytes, size, &options, &opened, NULL) == N8_OK, "as much as it takes");
    n8_model_close(opened);
    // No more than the usual shapes take.
    options.largest = 0;
    demand(n8_model_measure(bytes, size, &options, &said, NULL) == N8_OK, "the usual shapes");
    options.max_bytes = said.tables + said.packed + said.arena + said.scratch;
    demand(n8_model_open(bytes, size, &options, &opened, NULL) == N8_OK, "the usual shapes");
    demand(n8_model_reshape(opened, shapes[SHAPES - 1], &none, &error) == N8_E_LIMIT &&
               none == NULL && error.axis == -1,
           "the limit at another shape");
    options.largest = 1;
    demand(n8_model_open(bytes, size, &options, &none, &error) == N8_E_LIMIT && none == NULL,
           "less than the largest takes");
    n8_model_close(opened);
}

static void count_changing(const struct n8_model *a, const struct n8_model *b) {
    struct n8_step_info one, other;
    for (size_t i = 0; n8_model_step(a, i, &one) == N8_OK; i++) {
        demand(n8_model_step(b, i, &other) == N8_OK, "the same steps");
        changing += one.packed != 0 && strcmp(one.kernel, other.kernel) != 0;
    }
}

static void check_level(const void *bytes, size_t size, enum n8_isa isa) {
    struct n8_model_options options = {.isa = isa};
    struct n8_model *opened;
    demand(n8_model_open(bytes, size, &options, &opened, NULL) == N8_OK, "the model");
    model = opened;
    struct n8_model_facts facts;
    demand(n8_model_describe(model, &facts) == N8_OK, "the model's facts");
    input_count = facts.input_count;
    for (size_t s = 0; s < SHAPES; s++) {
        choose(s);
        options.shapes = (const shape *)shapes[s];
        struct n8_memory memory, measured;
        struct n8_model *alone, *shared;
        demand(n8_model_open(bytes, size, &options, &alone, NULL) == N8_OK, "a shape");
        demand(n8_model_measure(bytes, size, &options, &measured, NULL) == N8_OK, "its size");
        demand(n8_model_memory(alone, &memory) == N8_OK, "its memory");
        demand(memcmp(&memory, &measured, sizeof memory) == 0, "memory as it was measured");
        demand(n8_model_reshape(model, shapes[s], &shared, NULL) == N8_OK, "the same by sharing");
        demand(n8_model_memory(shared, &memory) == N8_OK, "its memory");
        demand(memcmp(&memory, &measured, sizeof memory) == 0, "the same memory");
        count_changing(model, shared);
        n8_model_close(shared);
        expected[s] = make_ends(alone);
        fill_inputs(alone, &expected[s], 0);
        run(alone, &expected[s]);
        n8_model_close(alone);
    }
    check_refusals();
    check_largest(bytes, size, isa);
    n8_model_close(opened);
    // Threads find the weights of the usual shapes packed, and pack others at the same time.
    options.shapes = NULL;
    demand(n8_model_open(bytes, size, &options, &opened, NULL) == N8_OK, "the model again");
    model = opened;
    pthread_t threads[RUNNERS];
    size_t firsts[RUNNERS];
    for (size_t i = 0; i < RUNNERS; i++) {
        firsts[i] = i;
        demand(pthread_create(&threads[i], NULL, work, &firsts[i]) == 0, "a thread");
    }
    for (size_t i = 0; i < RUNNERS; i++) {
        demand(pthread_join(threads[i], NULL) == 0, "the end of a thread");
    }
    for (size_t s = 0; s < SHAPES; s++) {
        free_ends(&expected[s]);
    }
    n8_model_close(opened);
}

int main(int argc, char **argv) {
    demand(argc >= 2, "give the paths of models");
    const enum n8_isa best = n8_cpu_best();
    int levels = 0;
    for (int i = 1; i < argc; i++) {
        size_t size;
        void *bytes = read_file(argv[i], &size);
        for (enum n8_isa isa = N8_ISA_C; isa <= best; isa++) {
            if (n8_cpu_has(isa)) {
                check_level(bytes, size, isa);
                levels += i == 1;
            }
        }
        free(bytes);
    }
    demand(changing > 0, "a layer with another kernel at another shape");
    printf("shapes: %d at once on %d shapes and %d levels, all bytes as alone\n", RUNNERS, SHAPES,
           levels);
    return 0;
}
