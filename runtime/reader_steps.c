// SPDX-License-Identifier: Apache-2.0
//
// The inside of a model file: one step at a time, checked against the tensors that it reads
// and writes. What is accepted here is safe to run, whatever the numbers mean.
#include "model.h"

#include <math.h>
#include <string.h>

enum { MAX_TAPS = 1 << 23 }; // 2^23 * 255 < 2^31: the sum of an average pool fits int32

static bool same_dims(const struct n8_tensor *a, const struct n8_tensor *b) {
    return memcmp(a->dims, b->dims, sizeof a->dims) == 0;
}

static bool same_scale(const struct n8_tensor *a, const struct n8_tensor *b) {
    return a->scale == b->scale && a->zero_point == b->zero_point;
}

static bool types_are(const struct n8_tensor *in, enum n8_type from, const struct n8_tensor *out,
                      enum n8_type to) {
    return in->type == from && out->type == to;
}

static bool clamp_ok(const struct n8_step *step, const struct n8_tensor *out) {
    return n8_in_range(step->lo, out->lo, out->hi) && n8_in_range(step->hi, step->lo, out->hi);
}

static bool pointwise_ok(const struct n8_step *step, const struct n8_tensor *out) {
    return clamp_ok(step, out) && n8_multiplier_ok(step->scale) &&
           n8_multiplier_ok(step->residual_scale) && fabsf(step->slope) <= 0x1p30f;
}

// True if every window along one axis has a tap inside the input. A file may ask this of
// thousands of axes of a million windows each, so the windows are not looked at one by one.
static bool windows_ok(const struct n8_step *step, int axis, int32_t in, int32_t out) {
    const int64_t stride = step->stride[axis];
    const int64_t dilation = step->dilation[axis];
    const int64_t pad = step->pad[axis];
    if ((pad + dilation - 1) / dilation >= step->kernel[axis] || (out - 1) * stride - pad >= in) {
        return false; // the first window ends before the input, or the last starts behind it
    }
    // Windows that start in the padding: of those that share their first tap inside, the last
    // has it deepest. Their depths repeat after `dilation` windows.
    const int64_t starts = (pad + stride - 1) / stride;
    const int64_t count = starts < out ? starts : out;
    for (int64_t o = 0; o < count && o < dilation; o++) {
        const int64_t tap = (pad - o * stride + dilation - 1) / dilation;
        const int64_t last = (pad - (tap - 1) * dilation - 1) / stride;
        o = last < count ? last : count - 1;
        if (o * stride - pad + tap * dilation >= in) {
            return false;
        }
    }
    return true;
}

// Average pool: M of (9) for a window of one tap and for one of all, as of a convolution.
static bool average_ok(const struct n8_step *step, const struct n8_tensor *in,
                       const struct n8_tensor *out) {
    const double ratio = (double)in->scale / (double)out->scale;
    const float most = (float)ratio;
    const float least = (float)(ratio / ((double)step->kernel[0] * step->kernel[1]));
    return least > 0.0f && n8_multiplier_ok(least) && n8_multiplier_ok(most);
}

static bool pool_ok(const struct n8_step *step, const struct n8_tensor *in,
                    const struct n8_tensor *out) {
    for (int axis = 0; axis < 2; axis++) {
        if (!n8_in_range(step->kernel[axis], 1, N8_FORMAT_MAX_DIM) ||
            !n8_in_range(step->stride[axis], 1, N8_FORMAT_MAX_DIM) ||
            !n8_in_range(step->dilation[axis], 1, N8_FORMAT_MAX_DIM) ||
            !n8_in_range(step->pad[axis], 0, N8_FORMAT_MAX_DIM) ||
            !n8_in_range(step->pad_end[axis], 0, N8_FORMAT_MAX_DIM) ||
            !windows_ok(step, axis, in->dims[2 + axis], out->dims[2 + axis])) {
            return false;
        }
    }
    return (int64_t)step->kernel[0] * step->kernel[1] <= MAX_TAPS && in->dims[0] == out->dims[0] &&
           in->dims[1] == out->dims[1] && clamp_ok(step, out) &&
           (step->kind == N8_OP_AVERAGE_POOL ? average_ok(step, in, out) : same_scale(in, out));
}

static bool concat_ok(const struct n8_model *model, const struct n8_step *step,
                      const struct n8_tensor *out) {
    if (!n8_in_range(step->axis, 1, 3)) {
        return false;
    }
    int64_t sum = 0;
    for (size_t i = 0; i < step->input_count; i++) {
        const struct n8_tensor *in = &model->tensors[step->inputs[i]];
        for (int32_t axis = 0; axis < 4; axis++) {
            if (axis != step->axis && in->dims[axis] != out->dims[axis]) {
                return false;
            }
        }
        if (!types_are(in, N8_TYPE_S8, out, N8_TYPE_S8) || !same_scale(in, out)) {
            return false;
        }
        sum += in->dims[step->axis];
    }
    return sum == out->dims[step->axis];
}

// Where the arrays lie; all have one entry for each output channel.
static bool conv_arrays(struct n8_file *file, const struct n8_file_op *op,
                        const struct n8_conv2d_shape *s, struct n8_conv2d_epilogue *e,
                        const int8_t **weights) {
    if (s->out_channels < 1 || s->in_channels < 1 || s->kernel_height < 1 || s->kernel_width < 1 ||
        s->groups < 1 || s->kernel_height > N8_FORMAT_MAX_DIM ||
        s->kernel_width > N8_FORMAT_MAX_DIM) {
        return false;
    }
    const size_t channels = (size_t)s->out_channels;
    const uint64_t taps = (uint64_t)s->kernel_height * (uint64_t)s->kernel_width; // <= 2^40
    const uint64_t depth = (uint64_t)(s->in_channels / s->groups);                // <= 2^20
    if (depth == 0 || taps > UINT32_MAX / depth || taps * depth > SIZE_MAX / channels) {
        return false;
    }
    *weights = n8_read_array(file, op->weights, channels, (size_t)(taps * depth));
    e->bias = n8_read_array(file, op->bias, channels, sizeof(int32_t));
    e->multiplier = n8_read_array(file, op->multiplier, channels, sizeof(float));
    if (op->bias_f32 != 0) {
        e->bias_f32 = n8_read_array(file, op->bias_f32, channels, sizeof(float));
    }
    if (op->slopes != 0) {
        e->slope = n8_read_array(file, op->slopes, channels, sizeof(float));
    }
    return *weights != NULL && e->bias != NULL && e->multiplier != NULL &&
           (op->bias_f32 == 0) == (e->bias_f32 == NULL) && (op->slopes == 0) == (e->slope == NULL);
}

static enum n8_status read_conv(struct n8_file *file, const struct n8_file_op *op,
                                const struct n8_model *model, struct n8_step *step) {
    const struct n8_tensor *in = &model->tensors[step->inputs[0]];
    const struct n8_tensor *out = &model->tensors[step->output];
    const struct n8_tensor *residual =
        step->input_count == 2 ? &model->tensors[step->inputs[1]] : NULL;
    const bool types_ok = in->type == N8_TYPE_S8 && in->dims[0] == out->dims[0] &&
                          (out->type == N8_TYPE_F32 || clamp_ok(step, out));
    const bool residual_ok = residual == NULL
                                 ? step->residual_scale == 0.0f
                                 : step->residual_scale != 0.0f && residual->type == N8_TYPE_S8 &&
                                       same_dims(residual, out);
    if (!types_ok || !residual_ok) {
        return N8_E_FORMAT;
    }
    const struct n8_conv2d_shape shape = {
        .batch = out->dims[0],
        .in_height = in->dims[2],
        .in_width = in->dims[3],
        .in_channels = in->dims[1],
        .out_height = out->dims[2],
        .out_width = out->dims[3],
        .out_channels = out->dims[1],
        .kernel_height = step->kernel[0],
        .kernel_width = step->kernel[1],
        .stride_height = step->stride[0],
        .stride_width = step->stride[1],
        .dilation_height = step->dilation[0],
        .dilation_width = step->dilation[1],
        .pad_top = step->pad[0],
        .pad_left = step->pad[1],
        .groups = op->groups,
    };
    struct n8_conv2d_epilogue epilogue = {
        .type = out->type,
        .residual_scale = step->residual_scale,
        .residual_zero_point = residual == NULL ? 0 : residual->zero_point,
        .zero_point = out->zero_point,
        .lo = out->type == N8_TYPE_S8 ? step->lo : -128,
        .hi = out->type == N8_TYPE_S8 ? step->hi : 127,
    };
    const int8_t *weights = NULL;
    if (!conv_arrays(file, op, &shape, &epilogue, &weights)) {
        return N8_E_FORMAT;
    }
    const enum n8_status status =
        n8_conv_plan(&step->conv, &shape, in->zero_point, &epilogue, 2, &model->kernels);
    if (status != N8_OK) {
        return status;
    }
    step->conv.weights = weights; // in the file, until model.c packs them
    step->kernel_name = step->conv.kernel_name;
    step->macs = (uint64_t)out->pixels * (uint64_t)shape.out_channels * step->conv.taps *
                 step->conv.group_in;
    return N8_OK;
}

static bool elements_equal(const struct n8_tensor *a, const struct n8_tensor *b) {
    return a->pixels * (size_t)a->dims[1] == b->pixels * (size_t)b->dims[1];
}

// Steps without weights: what must hold, and the kernel that runs them.
static bool simple_ok(const struct n8_model *model, struct n8_step *step) {
    const struct n8_kernels *k = &model->kernels;
    const struct n8_tensor *in = &model->tensors[step->inputs[0]];
    const struct n8_tensor *out = &model->tensors[step->output];
    const bool one = step->input_count == 1;
    switch (step->kind) {
    case N8_OP_QUANTIZE:
        step->kernel_name = k->quantize_f32_s8_name;
        return one && types_are(in, N8_TYPE_F32, out, N8_TYPE_S8) && same_dims(in, out);
    case N8_OP_DEQUANTIZE:
        step->kernel_name = k->dequantize_s8_f32_name;
        return one && types_are(in, N8_TYPE_S8, out, N8_TYPE_F32) && same_dims(in, out);
    case N8_OP_REQUANTIZE:
        step->kernel_name = k->requantize_s8_name;
        return one && types_are(in, N8_TYPE_S8, out, N8_TYPE_S8) && same_dims(in, out) &&
               pointwise_ok(step, out);
    case N8_OP_ADD: {
        step->kernel_name = k->add_s8_name;
        const struct n8_tensor *other = &model->tensors[step->inputs[step->input_count - 1]];
        return step->input_count == 2 && types_are(in, N8_TYPE_S8, out, N8_TYPE_S8) &&
               other->type == N8_TYPE_S8 && same_dims(in, out) && same_dims(other, out) &&
               pointwise_ok(step, out);
    }
    case N8_OP_MAX_POOL:
        step->kernel_name = k->maxpool_s8_name;
        return one && types_are(in, N8_TYPE_S8, out, N8_TYPE_S8) && pool_ok(step, in, out);
    case N8_OP_AVERAGE_POOL:
        step->kernel_name = k->avgpool_s8_name;
        return one && types_are(in, N8_TYPE_S8, out, N8_TYPE_S8) && pool_ok(step, in, out);
    case N8_OP_CONCAT:
        step->kernel_name = "copy";
        return concat_ok(model, step, out);
    case N8_OP_RESHAPE:
        step->kernel_name = "copy";
        return one && types_are(in, N8_TYPE_S8, out, N8_TYPE_S8) && same_scale(in, out) &&
               elements_equal(in, out);
    case N8_OP_SOFTMAX:
        step->kernel_name = k->softmax_f32_name;
        return one && types_are(in, N8_TYPE_F32, out, N8_TYPE_F32) && same_dims(in, out) &&
               in->dims[2] == 1 && in->dims[3] == 1;
    default:
        return false;
    }
}

enum n8_status n8_read_step(struct n8_file *file, const struct n8_file_op *op,
                            const struct n8_model *model, struct n8_step *step) {
    step->kind = (enum n8_op)op->kind;
    step->output = op->output;
    memcpy(step->kernel, op->kernel, sizeof step->kernel);
    memcpy(step->stride, op->stride, sizeof step->stride);
    memcpy(step->dilation, op->dilation, sizeof step->dilation);
    memcpy(step->pad, op->pad, sizeof step->pad);
    memcpy(step->pad_end, op->pad_end, sizeof step->pad_end);
    step->count_pad = (op->flags & N8_OP_COUNT_PAD) != 0;
    step->axis = op->axis;
    step->lo = op->lo;
    step->hi = op->hi;
    step->scale = op->scale;
    step->residual_scale = op->residual_scale;
    step->slope = op->slope;

    const uint32_t link_count = file->header.link_count;
    if (op->output >= model->tensor_count || op->input_count < 1 || op->inputs > link_count ||
        op->input_count > link_count - op->inputs) {
        return N8_E_FORMAT;
    }
    step->inputs = model->links + op->inputs;
    step->input_count = op->input_count;
    // A float input of the graph stays in the caller's buffer, in N C H W order, where only
    // the quantize step looks for it.
    for (size_t i = 0; i < step->input_count; i++) {
        const struct n8_tensor *in = &model->tensors[step->inputs[i]];
        if (in->type == N8_TYPE_F32 && in->input >= 0 && step->kind != N8_OP_QUANTIZE) {
            return N8_E_FORMAT;
        }
    }
    if (step->kind == N8_OP_CONV2D) {
        return step->input_count <= 2 ? read_conv(file, op, model, step) : N8_E_FORMAT;
    }
    return simple_ok(model, step) ? N8_OK : N8_E_FORMAT;
}
