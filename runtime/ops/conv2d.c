// SPDX-License-Identifier: Apache-2.0
//
// Convolution with its epilogue, (4) to (6): conv.h does the work, this file takes it from the
// model file to a session.
#include "step.h"

#include "conv/algorithm.h"
#include "size.h"
#include "window.h"

enum { INT16_COST = 2 }; // of a product with an int16 value or weight, in those of int8

// A convolution: every output pixel's window lies where stride and padding put it, and none is
// left out.
static bool covers(const struct n8_file_op *row, int axis, int32_t in, int32_t out) {
    const int64_t span = (int64_t)row->dilation[axis] * (row->kernel[axis] - 1) + 1;
    const int64_t room = (int64_t)in + row->pad[axis] + row->pad_end[axis] - span;
    return room >= 0 && room / row->stride[axis] + 1 == out;
}

// Groups and sizes of a convolution.
enum n8_status n8_check_conv(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = step->in, *out = step->out;
    if (row->groups < 1 || in->dims[1] % row->groups != 0 || out->dims[1] % row->groups != 0) {
        return n8_malformed(reader, "its groups do not divide its channels");
    }
    if (in->dims[0] != out->dims[0] || !covers(row, 0, in->dims[2], out->dims[2]) ||
        !covers(row, 1, in->dims[3], out->dims[3])) {
        return n8_malformed(reader, "its output is not as large as it must be");
    }
    return N8_OK;
}

enum n8_status n8_check_conv2d(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = step->in, *out = step->out;
    const bool added = row->input_count == 2;
    const bool floats = out->type == N8_TYPE_F32;
    N8_TRY(n8_check_conv(reader, step));
    if (floats ? row->slopes != 0 || added || row->lo != -128 || row->hi != 127
               : row->bias_f32 != 0) {
        return n8_malformed(reader, "it has a field that its type of output does not use");
    }
    if ((row->residual_scale != 0.0f) != added) {
        return n8_malformed(reader,
                            "it has a residual without a scale, or a scale without a residual");
    }
    if (row->indices != 0) {
        return n8_malformed(reader, "it is requantized in integers (10), which is gone");
    }
    if (row->int16_depth < 2) {
        return n8_malformed(reader, "its int16 depth is below 2");
    }
    const uint32_t forms = row->flags & ~(uint32_t)N8_OP_WEIGHTS_S16;
    if ((in->type == N8_TYPE_S16 || row->flags != forms) && (row->int16_depth != 2 || forms != 0)) {
        return n8_malformed(reader,
                            "its input or weights are int16, and it claims what is for int8");
    }
    const uint32_t winograd = N8_OP_WINOGRAD_WHOLE | N8_OP_WINOGRAD_HALF;
    const bool neighbours = row->kernel[1] == 3 && row->stride[1] == 1 && row->dilation[1] == 1;
    if (forms == winograd || (forms != 0 && !neighbours)) {
        return n8_malformed(reader,
                            "it claims both forms of (23), or one of a window that has none");
    }
    if (added && memcmp(n8_input(reader->model, step, 1)->dims, out->dims, sizeof out->dims) != 0) {
        return n8_malformed(reader, "its inputs and output differ in shape");
    }
    return N8_OK;
}

// Q of (12): no value of the tensor is further from 0.
static uint32_t reach_of(const struct n8_tensor *in) {
    if (in->type != N8_TYPE_S16) {
        return 128;
    }
    return (uint32_t)(in->hi > -in->lo ? in->hi : -in->lo); // not negative: lo <= hi
}

// Whether nothing beyond the channels of a pixel is read, by none of the kernels that may serve the
// layer on some processor: the plan of the memory does not depend on which of them is chosen.
static bool reads_exactly(const struct n8_step *step, const struct n8_tensor *in) {
    const size_t channels = (size_t)(in->dims[1] / step->row.groups);
    if (step->conv.algorithm == N8_ALGORITHM_depthwise) { // as are all depthwise layers of int8
        return step->conv.shape.out_channels % N8_PIXEL == 0;
    }
    return step->conv.algorithm == N8_ALGORITHM_depthwise_s16 ||
           channels * n8_value_size(in) % N8_MAX_STEP == 0;
}

enum n8_status n8_plan_conv2d(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = step->in, *out = step->out;
    const struct n8_tensor *added = row->input_count == 2 ? n8_input(reader->model, step, 1) : NULL;
    const bool s8 = in->type == N8_TYPE_S8;
    const struct n8_conv2d_shape shape = {
        .batch = out->dims[0],
        .in_height = in->dims[2],
        .in_width = in->dims[3],
        .in_channels = in->dims[1],
        .out_height = out->dims[2],
        .out_width = out->dims[3],
        .out_channels = out->dims[1],
        .kernel_height = row->kernel[0],
        .kernel_width = row->kernel[1],
        .stride_height = row->stride[0],
        .stride_width = row->stride[1],
        .dilation_height = row->dilation[0],
        .dilation_width = row->dilation[1],
        .pad_top = row->pad[0],
        .pad_left = row->pad[1],
        .groups = row->groups,
        .in_lo = s8 ? in->value_lo : 0,
        .in_hi = s8 ? in->value_hi : 0,
    };
    const size_t channels = (size_t)out->dims[1];
    const size_t depth = (size_t)(in->dims[1] / row->groups);
    const size_t taps = n8_mul((size_t)row->kernel[0], (size_t)row->kernel[1]);
    const void *weights = NULL, *bias = NULL, *multiplier = NULL, *bias_f32 = NULL, *slope = NULL;
    const bool weights_s16 = (row->flags & N8_OP_WEIGHTS_S16) != 0;
    const size_t window = n8_mul(taps, depth);
    N8_TRY(n8_read_array(reader, row->weights, channels,
                         n8_mul(window, weights_s16 ? sizeof(int16_t) : 1), &weights));
    N8_TRY(n8_read_array(reader, row->bias, channels, sizeof(int32_t), &bias));
    N8_TRY(n8_read_array(reader, row->multiplier, channels, sizeof(float), &multiplier));
    N8_TRY(n8_read_optional(reader, row->bias_f32, channels, sizeof(float), &bias_f32));
    N8_TRY(n8_read_optional(reader, row->slopes, channels, sizeof(float), &slope));
    const struct n8_conv2d_epilogue epilogue = {
        .type = out->type,
        .bias = bias,
        .multiplier = multiplier,
        .bias_f32 = bias_f32,
        .slope = slope,
        .residual_scale = row->residual_scale,
        .residual_zero_point = added == NULL ? 0 : added->zero_point,
        .zero_point = out->zero_point,
        .lo = row->lo,
        .hi = row->hi,
    };
    const struct n8_conv_input input = {
        .zero_point = in->zero_point,
        .type = in->type,
        .residual = added == NULL ? N8_TYPE_S8 : added->type,
        .reach = reach_of(in),
        .weights_s16 = weights_s16,
    };
    const struct n8_conv_certificate certificate = {.int16_depth = row->int16_depth,
                                                    .acc_bound = row->acc_bound,
                                                    .winograd =
                                                        row->flags & ~(uint32_t)N8_OP_WEIGHTS_S16};
    N8_TRY(n8_conv_plan(&step->conv, &shape, &input, &epilogue, &certificate,
                        &reader->model->kernels));
    step->conv.weights = weights; // in the file, until they are packed
    step->kernel_name = step->conv.kernel_name;
    step->units = step->conv.units;
    if (step->conv.algorithm == N8_ALGORITHM_depthwise && channels % N8_PIXEL != 0) {
        step->placing &= ~(uint32_t)N8_WRITES_SLICES; // the padding of the channels is written
    }
    if (added == NULL && reads_exactly(step, in)) {
        step->placing |= N8_READS_EXACTLY;
    }
    step->scratch_size = step->conv.scratch_size;
    step->packed_size = step->conv.packed_size;
    step->macs = (uint64_t)out->pixels * channels * taps * depth;
    step->mac_cost = in->type == N8_TYPE_S16 || weights_s16 ? INT16_COST : 1;
    return N8_OK;
}

enum n8_status n8_pack_conv2d(struct n8_reader *reader, struct n8_step *step, void *memory) {
    N8_TRY(n8_conv_prove(&step->conv, step->conv.weights, &step->proof, reader->error));
    if (step->proof.acc_bound != step->row.acc_bound) {
        return n8_malformed(reader, "its accumulator bound is not that of its weights");
    }
    n8_conv_pack(&step->conv, step->conv.weights, &step->proof, memory);
    return N8_OK;
}

void n8_run_conv2d(const struct n8_session *session, const struct n8_step *step, size_t begin,
                   size_t end, void *scratch) {
    struct n8_conv_io io = {
        .out = n8_out_buffer(session, step),
        .out_stride = (ptrdiff_t)step->out->pixel_stride,
        .in = n8_in_buffer(session, step, 0),
        .in_stride = (ptrdiff_t)step->in->pixel_stride,
    };
    if (step->row.input_count == 2) {
        io.residual = n8_in_buffer(session, step, 1);
        io.residual_stride = (ptrdiff_t)n8_input(session->model, step, 1)->pixel_stride;
    }
    n8_conv_run(&step->conv, &io, begin, end, scratch);
}

const struct n8_operator n8_op_conv2d = {
    .name = "conv2d",
    .types = {N8_TYPE_S8, 0},
    .s16 = true,
    .inputs = {1, 2},
    .fields =
        N8_FIELD_WINDOW | N8_FIELD_RESIDUAL | N8_FIELD_CLAMP | N8_FIELD_WEIGHTS | N8_FIELD_INDICES,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_SECOND,
};
