// SPDX-License-Identifier: Apache-2.0
//
// Where every activation lives in the arena: first fit, largest tensor first, which for
// networks without long skips reaches the lower bound (the largest set alive at one step).
#include "model.h"

#include "size.h"

#include <stdlib.h>

// When each buffer is needed. A tensor is made by one step or is an input, never both.
static enum n8_status find_lifetimes(struct n8_model *model) {
    for (size_t t = 0; t < model->tensor_count; t++) {
        model->tensors[t].born = SIZE_MAX;
    }
    for (size_t i = 0; i < model->input_count; i++) {
        model->tensors[model->inputs[i]].born = 0;
    }
    for (size_t s = 0; s < model->step_count; s++) {
        const struct n8_step *step = &model->steps[s];
        for (size_t i = 0; i < step->input_count; i++) {
            struct n8_tensor *in = &model->tensors[step->inputs[i]];
            if (in->born == SIZE_MAX) {
                return N8_E_FORMAT;
            }
            in->dies = s;
        }
        struct n8_tensor *out = &model->tensors[step->output];
        if (out->born != SIZE_MAX) {
            return N8_E_FORMAT;
        }
        out->born = s;
        out->dies = s;
    }
    for (size_t i = 0; i < model->output_count; i++) {
        struct n8_tensor *out = &model->tensors[model->outputs[i]];
        if (out->born == SIZE_MAX || (out->type == N8_TYPE_F32 && out->input >= 0)) {
            return N8_E_FORMAT;
        }
        out->dies = model->step_count;
    }
    for (size_t t = 0; t < model->tensor_count; t++) {
        if (model->tensors[t].born == SIZE_MAX) {
            return N8_E_FORMAT;
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

enum n8_status n8_plan_arena(struct n8_model *model) {
    const enum n8_status status = find_lifetimes(model);
    if (status != N8_OK) {
        return status;
    }
    struct n8_tensor **order = malloc(2 * model->tensor_count * sizeof(struct n8_tensor *));
    if (order == NULL) {
        return N8_E_MEMORY;
    }
    struct n8_tensor **placed = order + model->tensor_count;
    for (size_t t = 0; t < model->tensor_count; t++) {
        order[t] = &model->tensors[t];
    }
    qsort(order, model->tensor_count, sizeof order[0], by_size);
    for (size_t t = 0; t < model->tensor_count; t++) {
        place(order[t], placed, t);
        const size_t end = n8_add(order[t]->offset, order[t]->bytes);
        model->arena_size = end > model->arena_size ? end : model->arena_size;
    }
    free(order);
    return model->arena_size == SIZE_MAX ? N8_E_FORMAT : N8_OK;
}
