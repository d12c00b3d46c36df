// SPDX-License-Identifier: Apache-2.0
//
// Where every activation lives in the arena: first fit, largest tensor first. No placement is
// smaller than the largest set alive at one step. This one is as small for ResNet-8, SqueezeNet
// 1.1 and LeNet, and for five of six random networks of tests/e2e; of the others the worst of
// 400 is a third larger. struct n8_memory tells both sizes.
#include "reader.h"
#include "size.h"

#include <stdlib.h>

// When each buffer is needed. A tensor is made by one step or is an input, never both.
static enum n8_status find_lifetimes(const struct n8_reader *reader) {
    struct n8_model *model = reader->model;
    struct n8_tensor *tensors = model->tensors;
    const size_t steps = model->facts.step_count;
    for (size_t t = 0; t < model->facts.tensor_count; t++) {
        tensors[t].born = SIZE_MAX;
    }
    for (size_t i = 0; i < model->facts.input_count; i++) {
        tensors[model->inputs[i]].born = 0;
    }
    for (size_t s = 0; s < steps; s++) {
        const struct n8_step *step = &model->steps[s];
        for (size_t i = 0; i < step->row.input_count; i++) {
            struct n8_tensor *in = &tensors[step->inputs[i]];
            if (in->born == SIZE_MAX) {
                n8_blame_step(reader, s);
                return n8_refuse(reader->error, N8_E_FORMAT,
                                 "it reads a tensor that no step before it has made");
            }
            in->dies = s;
        }
        struct n8_tensor *out = &tensors[step->row.output];
        if (out->born != SIZE_MAX) {
            n8_blame_step(reader, s);
            return n8_refuse(reader->error, N8_E_FORMAT,
                             "its output was made before, or is an input of the network");
        }
        out->born = s;
        out->dies = s;
    }
    for (size_t i = 0; i < model->facts.output_count; i++) {
        struct n8_tensor *out = &tensors[model->outputs[i]];
        out->dies = steps;
    }
    for (size_t t = 0; t < model->facts.tensor_count; t++) {
        if (tensors[t].born == SIZE_MAX) {
            n8_blame_tensor(reader, t);
            return n8_refuse(reader->error, N8_E_FORMAT, "no step makes it");
        }
    }
    return N8_OK;
}

static int by_size(const void *left, const void *right) {
    const struct n8_tensor *a = *(const struct n8_tensor *const *)left;
    const struct n8_tensor *b = *(const struct n8_tensor *const *)right;
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a < b ? -1 : a > b; // the same plan on every C library
}

static bool together(const struct n8_tensor *a, const struct n8_tensor *b) {
    return a->born <= b->dies && b->born <= a->dies;
}

// placed[0 .. count) are ordered by offset; finds the lowest gap and keeps the order.
static void place(struct n8_tensor *tensor, struct n8_tensor **placed, size_t count) {
    size_t offset = 0;
    for (size_t i = 0; i < count && placed[i]->offset < n8_add(offset, tensor->bytes); i++) {
        const size_t end = n8_add(placed[i]->offset, placed[i]->bytes);
        if (together(tensor, placed[i]) && end > offset) {
            offset = end;
        }
    }
    tensor->offset = offset;
    size_t i = count;
    for (; i > 0 && placed[i - 1]->offset > offset; i--) {
        placed[i] = placed[i - 1];
    }
    placed[i] = tensor;
}

static enum n8_status place_all(struct n8_model *model) {
    const size_t count = model->facts.tensor_count;
    struct n8_tensor **order = malloc(2 * count * sizeof(struct n8_tensor *));
    if (order == NULL) {
        return N8_E_MEMORY;
    }
    for (size_t t = 0; t < count; t++) {
        order[t] = &model->tensors[t];
    }
    qsort(order, count, sizeof order[0], by_size);
    size_t size = 0;
    for (size_t t = 0; t < count; t++) {
        place(order[t], order + count, t);
        const size_t end = n8_add(order[t]->offset, order[t]->bytes);
        size = end > size ? end : size;
    }
    free(order);
    model->memory.arena = size;
    return N8_OK;
}

// The largest sum of buffers in use at one step.
static enum n8_status find_least(struct n8_model *model) {
    const size_t steps = model->facts.step_count;
    uint64_t *change = calloc(steps + 2, sizeof *change); // modulo 2^64, as the sum below
    if (change == NULL) {
        return N8_E_MEMORY;
    }
    for (size_t t = 0; t < model->facts.tensor_count; t++) {
        const struct n8_tensor *tensor = &model->tensors[t];
        change[tensor->born] += tensor->bytes;
        change[tensor->dies + 1] -= tensor->bytes;
    }
    uint64_t used = 0;
    for (size_t s = 0; s <= steps; s++) {
        used += change[s];
        model->memory.arena_least =
            used > model->memory.arena_least ? used : model->memory.arena_least;
    }
    free(change);
    return N8_OK;
}

enum n8_status n8_plan_arena(const struct n8_reader *reader) {
    enum n8_status status = find_lifetimes(reader);
    if (status == N8_OK) {
        status = place_all(reader->model);
    }
    return status == N8_OK ? find_least(reader->model) : status;
}
