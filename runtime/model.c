// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include "memory.h"
#include "size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSOR_BYTES = INT32_MAX };

size_t n8_tensor_io_size(const struct n8_tensor *tensor) {
    const size_t entry = tensor->type == N8_TYPE_F32 ? sizeof(float) : 1;
    return tensor->pixels * (size_t)tensor->dims[1] * entry;
}

// The parts of the one allocation that holds a model, as offsets from its start.
struct layout {
    size_t tensors, steps, links, strings, packed, size;
};

static size_t reserve(struct layout *layout, size_t count, size_t entry) {
    const size_t at = layout->size;
    layout->size = n8_round_up(n8_add(at, n8_mul(count, entry)), N8_ALIGN);
    return at;
}

static struct layout lay_out(const struct n8_file_header *h) {
    struct layout l = {0};
    reserve(&l, 1, sizeof(struct n8_model));
    l.tensors = reserve(&l, h->tensor_count, sizeof(struct n8_tensor));
    l.steps = reserve(&l, h->op_count, sizeof(struct n8_step));
    l.links = reserve(&l, h->link_count, sizeof(uint32_t));
    l.strings = reserve(&l, h->strings_size, 1);
    l.packed = l.size;
    return l;
}

static bool quantization_ok(const struct n8_file_tensor *row) {
    if (row->type == N8_TYPE_F32) {
        return true;
    }
    return row->scale >= 1e-30f && row->scale <= 1e30f && (row->lo == -128 || row->lo == -127) &&
           row->hi == 127 && row->zero_point >= row->lo && row->zero_point <= row->hi;
}

static enum n8_status read_tensor(const struct n8_file *file, size_t index, const char *strings,
                                  struct n8_tensor *t) {
    struct n8_file_tensor row;
    n8_read_tensor(file, index, &row);
    const bool known = row.type == N8_TYPE_S8 || row.type == N8_TYPE_F32;
    if (n8_read_name(file, row.name) == NULL || !known || row.rank < 1 || row.rank > 4 ||
        !quantization_ok(&row)) {
        return N8_E_FORMAT;
    }
    for (uint32_t axis = 0; axis < 4; axis++) {
        const int32_t top = axis < row.rank ? N8_FORMAT_MAX_DIM : 1;
        if (row.dims[axis] < 1 || row.dims[axis] > top) {
            return N8_E_FORMAT;
        }
    }
    t->name = strings + row.name;
    t->type = (enum n8_type)row.type;
    t->rank = (int32_t)row.rank;
    memcpy(t->dims, row.dims, sizeof t->dims);
    t->scale = t->type == N8_TYPE_S8 ? row.scale : 1.0f;
    t->zero_point = t->type == N8_TYPE_S8 ? row.zero_point : 0;
    t->lo = t->type == N8_TYPE_S8 ? row.lo : -128;
    t->hi = t->type == N8_TYPE_S8 ? row.hi : 127;
    t->input = -1;
    t->pixels = n8_mul(n8_mul((size_t)row.dims[0], (size_t)row.dims[2]), (size_t)row.dims[3]);
    t->pixel_stride = t->type == N8_TYPE_S8 ? n8_round_up((size_t)row.dims[1], 8)
                                            : (size_t)row.dims[1] * sizeof(float);
    const size_t used = n8_mul(t->pixels, t->pixel_stride);
    t->bytes = n8_round_up(n8_add(used, N8_SLACK), N8_ALIGN);
    return t->bytes <= MAX_TENSOR_BYTES ? N8_OK : N8_E_FORMAT;
}

// Bytes for the pointers to the taps of one window.
static size_t pool_scratch(const struct n8_model *model, const struct n8_step *step) {
    const struct n8_tensor *in = &model->tensors[step->inputs[0]];
    const int32_t rows = step->kernel[0] < in->dims[2] ? step->kernel[0] : in->dims[2];
    const int32_t columns = step->kernel[1] < in->dims[3] ? step->kernel[1] : in->dims[3];
    return n8_mul(n8_mul((size_t)rows, (size_t)columns), sizeof(int8_t *));
}

static enum n8_status read_links(const struct n8_file *file, struct n8_model *model) {
    const struct n8_file_header *h = &file->header;
    memcpy(model->links, file->bytes + h->links, h->link_count * sizeof(uint32_t));
    for (size_t i = 0; i < h->link_count; i++) {
        if (model->links[i] >= h->tensor_count) {
            return N8_E_FORMAT;
        }
    }
    model->inputs = model->links;
    model->outputs = model->links + h->input_count;
    for (size_t i = 0; i < h->input_count; i++) {
        struct n8_tensor *in = &model->tensors[model->inputs[i]];
        if (in->input >= 0) {
            return N8_E_FORMAT; // listed twice
        }
        in->input = (int32_t)i;
        in->bytes = in->type == N8_TYPE_F32 ? 0 : in->bytes;
    }
    return N8_OK;
}

static enum n8_status read_parts(struct n8_file *file, struct n8_model *model, char *strings) {
    const struct n8_file_header *h = &file->header;
    file->taken = 0;
    memcpy(strings, file->bytes + h->strings, h->strings_size);
    for (size_t i = 0; i < h->tensor_count; i++) {
        const enum n8_status status = read_tensor(file, i, strings, &model->tensors[i]);
        if (status != N8_OK) {
            return status;
        }
    }
    enum n8_status status = read_links(file, model);
    for (size_t i = 0; status == N8_OK && i < h->op_count; i++) {
        struct n8_file_op op;
        struct n8_step *step = &model->steps[i];
        n8_read_op(file, i, &op);
        if (n8_read_name(file, op.name) == NULL) {
            return N8_E_FORMAT;
        }
        step->name = strings + op.name;
        status = n8_read_step(file, &op, model, step);
        if (step->kind == N8_OP_MAX_POOL || step->kind == N8_OP_AVERAGE_POOL) {
            step->scratch_size = status == N8_OK ? pool_scratch(model, step) : 0;
        } else {
            step->scratch_size = step->conv.scratch_size;
        }
        model->scratch_size =
            step->scratch_size > model->scratch_size ? step->scratch_size : model->scratch_size;
    }
    return status;
}

// Everything but the packed weights is in place: `at` is where they go.
static enum n8_status pack(struct n8_model *model, uint8_t *at) {
    for (size_t s = 0; s < model->step_count; s++) {
        struct n8_step *step = &model->steps[s];
        if (step->kind != N8_OP_CONV2D) {
            continue;
        }
        const enum n8_status status = n8_conv_pack(&step->conv, step->conv.weights, at);
        if (status != N8_OK) {
            return status;
        }
        at += n8_round_up(step->conv.packed_size, N8_ALIGN);
    }
    return N8_OK;
}

static void point_into(struct n8_model *model, const struct layout *l,
                       const struct n8_file_header *h) {
    uint8_t *base = (uint8_t *)model;
    model->tensors = (struct n8_tensor *)(void *)(base + l->tensors);
    model->steps = (struct n8_step *)(void *)(base + l->steps);
    model->links = (uint32_t *)(void *)(base + l->links);
    model->tensor_count = h->tensor_count;
    model->step_count = h->op_count;
    model->input_count = h->input_count;
    model->output_count = h->output_count;
}

// Reads into a model without room for weights, to learn how much room they need.
static enum n8_status measure(struct n8_file *file, struct layout *layout,
                              const struct n8_kernels *kernels) {
    struct n8_model *model = n8_allocate(layout->size);
    if (model == NULL) {
        return N8_E_MEMORY;
    }
    model->kernels = *kernels;
    point_into(model, layout, &file->header);
    const enum n8_status status = read_parts(file, model, (char *)model + layout->strings);
    for (size_t s = 0; status == N8_OK && s < model->step_count; s++) {
        reserve(layout, model->steps[s].conv.packed_size, 1);
    }
    free(model);
    return status;
}

enum n8_status n8_model_open(const void *bytes, size_t size, const struct n8_model_options *options,
                             struct n8_model **out) {
    if (out == NULL) {
        return N8_E_ARGUMENT;
    }
    *out = NULL;
    if (bytes == NULL) {
        return N8_E_ARGUMENT;
    }
    struct n8_kernels kernels;
    enum n8_status status =
        n8_kernels_select(options == NULL ? N8_ISA_AUTO : options->isa, &kernels);
    if (status != N8_OK) {
        return status;
    }
    struct n8_file file;
    status = n8_read_header(bytes, size, &file);
    if (status != N8_OK) {
        return status;
    }
    struct layout layout = lay_out(&file.header);
    status = measure(&file, &layout, &kernels);
    if (status != N8_OK) {
        return status;
    }
    struct n8_model *model = n8_allocate(layout.size);
    if (model == NULL) {
        return N8_E_MEMORY;
    }
    model->kernels = kernels;
    point_into(model, &layout, &file.header);
    status = read_parts(&file, model, (char *)model + layout.strings);
    if (status == N8_OK) {
        status = n8_plan_arena(model);
    }
    if (status == N8_OK) {
        status = pack(model, (uint8_t *)model + layout.packed);
    }
    if (status != N8_OK) {
        free(model);
        return status;
    }
    *out = model;
    return N8_OK;
}

void n8_model_close(struct n8_model *model) {
    free(model);
}

enum n8_status n8_model_io(const struct n8_model *model, enum n8_io which, size_t index,
                           struct n8_tensor_info *out) {
    if (model == NULL || out == NULL || (which != N8_INPUT && which != N8_OUTPUT)) {
        return N8_E_ARGUMENT;
    }
    const size_t count = which == N8_INPUT ? model->input_count : model->output_count;
    if (index >= count) {
        return N8_E_ARGUMENT;
    }
    const uint32_t number = which == N8_INPUT ? model->inputs[index] : model->outputs[index];
    const struct n8_tensor *t = &model->tensors[number];
    *out = (struct n8_tensor_info){
        .name = t->name,
        .type = t->type,
        .rank = t->rank,
        .scale = t->scale,
        .zero_point = t->zero_point,
        .lo = t->lo,
        .hi = t->hi,
        .size = n8_tensor_io_size(t),
    };
    memcpy(out->dims, t->dims, sizeof out->dims);
    return N8_OK;
}

enum n8_status n8_model_step(const struct n8_model *model, size_t index, struct n8_step_info *out) {
    static const char *const names[] = {
        [N8_OP_QUANTIZE] = "quantize",
        [N8_OP_DEQUANTIZE] = "dequantize",
        [N8_OP_CONV2D] = "conv2d",
        [N8_OP_ADD] = "add",
        [N8_OP_REQUANTIZE] = "requantize",
        [N8_OP_MAX_POOL] = "max_pool",
        [N8_OP_AVERAGE_POOL] = "average_pool",
        [N8_OP_CONCAT] = "concat",
        [N8_OP_RESHAPE] = "reshape",
        [N8_OP_SOFTMAX] = "softmax",
    };
    if (model == NULL || out == NULL || index >= model->step_count) {
        return N8_E_ARGUMENT;
    }
    const struct n8_step *step = &model->steps[index];
    *out = (struct n8_step_info){
        .name = step->name,
        .operation = names[step->kind],
        .kernel = step->kernel_name,
        .macs = step->macs,
    };
    return N8_OK;
}
