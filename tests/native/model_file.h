// SPDX-License-Identifier: Apache-2.0
//
// What the programs need that run a model file: each defines TEST, its name, first.
#ifndef N8_TESTS_MODEL_FILE_H
#define N8_TESTS_MODEL_FILE_H

#include "neon8.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENDS = 8 };

static inline void demand(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, TEST ": %s\n", what);
        exit(1);
    }
}

static inline void *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    demand(file != NULL, path);
    demand(fseek(file, 0, SEEK_END) == 0, "the file's end");
    *size = (size_t)ftell(file);
    rewind(file);
    void *bytes = malloc(*size);
    demand(bytes != NULL && fread(bytes, 1, *size, file) == *size, "the file's bytes");
    fclose(file);
    return bytes;
}

static inline void *room(size_t size) {
    void *memory = calloc(1, size);
    demand(memory != NULL, "memory");
    return memory;
}

static inline struct n8_tensor_info end_of(const struct n8_model *model, enum n8_io which,
                                           size_t index) {
    struct n8_tensor_info info;
    demand(n8_model_io(model, which, index, &info) == N8_OK, "an input or output");
    return info;
}

// Inputs and outputs of a run, whose values are 0.
struct ends {
    void *inputs[MAX_ENDS], *outputs[MAX_ENDS];
};

static inline struct ends make_ends(const struct n8_model *model) {
    struct ends ends = {{NULL}, {NULL}};
    struct n8_model_facts facts;
    demand(n8_model_describe(model, &facts) == N8_OK, "the model's facts");
    demand(facts.input_count <= MAX_ENDS && facts.output_count <= MAX_ENDS, "the number of ends");
    for (size_t i = 0; i < facts.input_count; i++) {
        ends.inputs[i] = room(end_of(model, N8_INPUT, i).size);
    }
    for (size_t i = 0; i < facts.output_count; i++) {
        ends.outputs[i] = room(end_of(model, N8_OUTPUT, i).size);
    }
    return ends;
}

static inline void free_ends(struct ends *ends) {
    for (size_t i = 0; i < MAX_ENDS; i++) {
        free(ends->inputs[i]);
        free(ends->outputs[i]);
    }
}

// Gives the inputs other values, floats within 2 of 0.
static inline void fill_inputs(const struct n8_model *model, const struct ends *ends,
                               uint32_t seed) {
    for (size_t i = 0; i < MAX_ENDS && ends->inputs[i] != NULL; i++) {
        const struct n8_tensor_info info = end_of(model, N8_INPUT, i);
        const size_t each = info.type == N8_TYPE_F32 ? sizeof(float) : 1;
        uint32_t state = seed + (uint32_t)i;
        for (size_t at = 0; at < info.size; at += each) {
            state = state * 1664525 + 1013904223;
            const float real = (float)(state >> 8) / 4194304.0f - 2.0f;
            const uint8_t byte = (uint8_t)(state >> 16);
            memcpy((uint8_t *)ends->inputs[i] + at, each == 1 ? (const void *)&byte : &real, each);
        }
    }
}

static inline int same_outputs(const struct n8_model *model, const struct ends *a,
                               const struct ends *b) {
    int same = 1;
    for (size_t i = 0; i < MAX_ENDS && a->outputs[i] != NULL; i++) {
        const size_t size = end_of(model, N8_OUTPUT, i).size;
        same = same && memcmp(a->outputs[i], b->outputs[i], size) == 0;
    }
    return same;
}

// One run; `ends` are those of the session's model.
static inline void run_once(struct n8_session *session, const struct ends *ends) {
    const void *inputs[MAX_ENDS];
    for (size_t i = 0; i < MAX_ENDS; i++) {
        inputs[i] = ends->inputs[i];
    }
    demand(n8_session_run(session, inputs, ends->outputs) == N8_OK, "a run");
}

#endif // N8_TESTS_MODEL_FILE_H
