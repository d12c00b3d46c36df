// SPDX-License-Identifier: Apache-2.0
//
// What an opened model tells about itself.
#include "operator.h"

#include <string.h>

enum n8_status n8_model_tensor(const struct n8_model *model, size_t index,
                               struct n8_tensor_info *out) {
    if (model == NULL || out == NULL || index >= model->facts.tensor_count) {
        return N8_E_ARGUMENT;
    }
    const struct n8_tensor *t = &model->tensors[index];
    *out = (struct n8_tensor_info){
        .name = t->name,
        .reason = t->reason,
        .type = t->type,
        .rank = t->rank,
        .scale = t->scale,
        .zero_point = t->zero_point,
        .lo = t->lo,
        .hi = t->hi,
        .code_lo = t->value_lo,
        .code_hi = t->value_hi,
        .size = n8_value_count(t) * n8_value_size(t), // N C H W, no padding
        .sharing = t->sharing,
        .shared = t->shared,
        .offset = t->offset,
        .stride = t->pixel_stride,
    };
    memcpy(out->dims, t->onnx_dims, sizeof out->dims);
    return N8_OK;
}

enum n8_status n8_model_io(const struct n8_model *model, enum n8_io which, size_t index,
                           struct n8_tensor_info *out) {
    if (model == NULL || (which != N8_INPUT && which != N8_OUTPUT)) {
        return N8_E_ARGUMENT;
    }
    const bool input = which == N8_INPUT;
    if (index >= (input ? model->facts.input_count : model->facts.output_count)) {
        return N8_E_ARGUMENT;
    }
    return n8_model_tensor(model, (input ? model->inputs : model->outputs)[index], out);
}

enum n8_status n8_model_step(const struct n8_model *model, size_t index, struct n8_step_info *out) {
    if (model == NULL || out == NULL || index >= model->facts.step_count) {
        return N8_E_ARGUMENT;
    }
    const struct n8_step *step = &model->steps[index];
    const bool weights = (step->op->fields & N8_FIELD_WEIGHTS) != 0;
    *out = (struct n8_step_info){
        .name = step->name,
        .operation = step->op->name,
        .kernel = step->kernel_name,
        .macs = step->macs,
        .cost = n8_cost(model, step),
        .packed = step->packed_size,
        .tables = step->tables,
        .inputs = step->inputs,
        .input_count = step->row.input_count,
        .output = step->row.output,
        .groups = step->row.groups,
        .weights_lo = step->proof.weights_lo,
        .weights_hi = step->proof.weights_hi,
        .acc_bound = step->proof.acc_bound,
        .spread = step->spread.wanted ? (int64_t)step->spread.tensor : -1,
        .int16_depth = weights ? step->row.int16_depth : 0,
        .winograd = (step->row.flags & N8_OP_WINOGRAD_WHOLE) != 0  ? 1
                    : (step->row.flags & N8_OP_WINOGRAD_HALF) != 0 ? 2
                                                                   : 0,
        .chosen = step->conv.reasons.chosen,
        .passed = step->conv.reasons.passed,
        .lack = step->conv.reasons.lack,
        .spared = step->spared,
    };
    memcpy(out->kernel_size, step->row.kernel, sizeof out->kernel_size);
    memcpy(out->stride, step->row.stride, sizeof out->stride);
    return N8_OK;
}

enum n8_status n8_model_describe(const struct n8_model *model, struct n8_model_facts *out) {
    if (model == NULL || out == NULL) {
        return N8_E_ARGUMENT;
    }
    *out = model->facts;
    return N8_OK;
}

enum n8_status n8_model_memory(const struct n8_model *model, struct n8_memory *out) {
    if (model == NULL || out == NULL) {
        return N8_E_ARGUMENT;
    }
    *out = model->memory;
    return N8_OK;
}
