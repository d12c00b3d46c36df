// SPDX-License-Identifier: Apache-2.0
#include "step.h"

#include "move/widen.h"

#include <string.h>

// Values from one pixel to the next, those of the channels' padding among them.
static size_t value_stride(const struct n8_tensor *tensor) {
    return tensor->pixel_stride / n8_value_size(tensor);
}

struct n8_stretch n8_stretch_of(const struct n8_model *model, const struct n8_step *step,
                                size_t pixels) {
    const struct n8_tensor *out = step->out;
    bool together = !out->slice;
    for (size_t i = 0; i < step->row.input_count; i++) {
        const struct n8_tensor *in = n8_input(model, step, i);
        together = together && (memcmp(in->dims, out->dims, sizeof in->dims) != 0 ||
                                (!in->slice && value_stride(in) == value_stride(out)));
    }
    return together ? (struct n8_stretch){pixels, pixels * value_stride(out)}
                    : (struct n8_stretch){1, (size_t)out->dims[1]};
}

enum { OPERANDS = 3 }; // of a step that broadcasts, at most

// Axis `axis` of the output, which has `rank` of them, in an operand. Its size, 1 where the operand
// has no such axis.
static int32_t size_along(const struct n8_tensor *operand, int32_t rank, int32_t axis) {
    const int32_t own = axis - (rank - operand->rank);
    return own < 0 ? 1 : operand->onnx_dims[own];
}

enum n8_status n8_check_broadcast(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    for (size_t i = 0; i < step->row.input_count; i++) {
        const struct n8_tensor *in = n8_input(reader->model, step, i);
        bool fits = in->rank <= out->rank;
        for (int32_t axis = 0; fits && axis < out->rank; axis++) {
            const int32_t size = size_along(in, out->rank, axis);
            fits = size == 1 || size == out->onnx_dims[axis];
        }
        if (!fits) {
            return n8_malformed(reader, "an input cannot be broadcast");
        }
    }
    return N8_OK;
}

// An operand as the output sees it: bytes from one index of an axis to the next, 0 where it is
// broadcast.
struct operand {
    const uint8_t *values;
    size_t stride[N8_FORMAT_MAX_RANK];
};

static struct operand operand_of(const struct n8_session *session, const struct n8_step *step,
                                 size_t index) {
    const struct n8_tensor *out = step->out;
    const struct n8_tensor *in = n8_input(session->model, step, index);
    struct operand operand = {
        .values = n8_in_buffer(session, step, index),
    };
    size_t stride = in->pixel_stride;
    for (int32_t axis = out->rank - 1; axis >= out->rank - in->rank; axis--) {
        const int32_t own = axis - (out->rank - in->rank);
        if (in->onnx_dims[own] != 1) {
            operand.stride[axis] = own == 1 ? n8_value_size(in) : stride;
        }
        stride *= own == 1 ? 1 : (size_t)in->onnx_dims[own];
    }
    return operand;
}

// Where the operand's part of output pixel `pixel` begins.
static const uint8_t *at_pixel(const struct operand *operand, const struct n8_tensor *out,
                               size_t pixel) {
    const uint8_t *at = operand->values;
    for (int32_t axis = out->rank - 1; axis >= 0; axis--) {
        const size_t size = (size_t)out->onnx_dims[axis];
        if (axis != 1 && size != 1) {
            at += pixel % size * operand->stride[axis];
            pixel /= size;
        }
    }
    return at;
}

enum { REPEATED = 256 }; // values of 4 bytes, at most

// True if an operand is a value for each channel, one after another.
static bool of_channels(const struct operand *operand, const struct n8_tensor *in,
                        const struct n8_tensor *out) {
    return operand->stride[1] == n8_value_size(in) && n8_value_count(in) == (size_t)out->dims[1];
}

void n8_run_broadcast(const struct n8_session *session, const struct n8_step *step, size_t begin,
                      size_t end, n8_combine_fn *combine) {
    const struct n8_tensor *out = step->out;
    const size_t inputs = step->row.input_count, channels = (size_t)out->dims[1];
    struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    // Operands of channels alone are repeated, so that there are some short pixels at once.
    const size_t some = n8_smaller(stretch.pixels, REPEATED / channels);
    bool repeats = some > 1 && n8_value_size(out) == sizeof(int32_t);
    struct operand operands[OPERANDS];
    const void *from[OPERANDS];
    size_t steps[OPERANDS];
    for (size_t i = 0; i < inputs; i++) {
        const struct n8_tensor *in = n8_input(session->model, step, i);
        const bool same = memcmp(in->dims, out->dims, sizeof in->dims) == 0;
        operands[i] = operand_of(session, step, i);
        steps[i] = same ? 1 : out->rank > 1 ? operands[i].stride[1] / n8_value_size(in) : 0;
        if (!same && n8_value_count(in) != 1) {
            stretch = (struct n8_stretch){1, channels};
            repeats = repeats && of_channels(&operands[i], in, out);
        }
    }
    int32_t repeated[OPERANDS][REPEATED];
    if (repeats && stretch.pixels == 1) {
        stretch = (struct n8_stretch){some, some * channels};
        for (size_t i = 0; i < inputs; i++) {
            if (of_channels(&operands[i], n8_input(session->model, step, i), out)) {
                for (size_t p = 0; p < some; p++) {
                    memcpy(&repeated[i][p * channels], operands[i].values,
                           channels * sizeof(int32_t));
                }
                operands[i] = (struct operand){.values = (const uint8_t *)repeated[i]};
            }
        }
    }
    // Pixels along the last axis follow each other by a stride of each operand: no divisions.
    const int32_t last = out->rank - 1;
    const size_t row = last > 1 && stretch.pixels == 1 ? (size_t)out->onnx_dims[last] : 1;
    size_t left = 0; // pixels of this row
    for (size_t p = begin; p < end; p += stretch.pixels) {
        for (size_t i = 0; i < inputs; i++) {
            from[i] = left > 0 ? (const uint8_t *)from[i] + operands[i].stride[last]
                               : at_pixel(&operands[i], out, p);
        }
        left = left > 0 ? left - 1 : row - p % row - 1;
        const size_t count = n8_smaller(end - p, stretch.pixels) * (stretch.count / stretch.pixels);
        combine(step, n8_out_pixel(session, step, p), from, steps, count);
    }
}

void n8_run_s16(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, n8_compute_s16_fn *compute) {
    enum { PIECE = 256 }; // values that are widened or narrowed at once
    const bool in_s16 = step->in->type == N8_TYPE_S16, out_s16 = step->out->type == N8_TYPE_S16;
    const size_t in_size = n8_value_size(step->in), out_size = n8_value_size(step->out);
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    int16_t piece[PIECE];
    for (size_t p = begin; p < end; p += stretch.pixels) {
        const uint8_t *from = n8_in_pixel(session, step, 0, p);
        uint8_t *to = n8_out_pixel(session, step, p);
        for (size_t done = 0, count; done < stretch.count; done += count) {
            count = stretch.count - done;
            count = in_s16 && out_s16 ? count : n8_smaller(count, PIECE);
            const void *given = from + done * in_size;
            void *made = to + done * out_size;
            if (!in_s16) {
                n8_widen(piece, given, count, N8_TYPE_S8);
            }
            compute(session, step, out_s16 ? made : piece, in_s16 ? given : piece, count);
            if (!out_s16) {
                n8_narrow(made, piece, count, N8_TYPE_S8);
            }
        }
    }
}

struct n8_conv2d_shape n8_matrix_shape(int32_t rows, int32_t depth, int32_t columns) {
    return (struct n8_conv2d_shape){
        .batch = 1,
        .in_height = rows,
        .in_width = 1,
        .in_channels = depth,
        .out_height = rows,
        .out_width = 1,
        .out_channels = columns,
        .kernel_height = 1,
        .kernel_width = 1,
        .stride_height = 1,
        .stride_width = 1,
        .dilation_height = 1,
        .dilation_width = 1,
        .groups = 1,
    };
}

enum n8_status n8_check_same_scale(struct n8_reader *reader, const struct n8_tensor *a,
                                   const struct n8_tensor *b) {
    if (a->scale != b->scale || a->zero_point != b->zero_point) {
        return n8_malformed(reader, "its inputs and output differ in scale or zero point");
    }
    return N8_OK;
}

enum n8_status n8_check_moved(struct n8_reader *reader, const struct n8_tensor *in,
                              const struct n8_tensor *out) {
    if (out->type == N8_TYPE_S16 && (in->lo < out->lo || in->hi > out->hi)) {
        return n8_malformed(reader, "an input exceeds its output's range");
    }
    return n8_check_same_scale(reader, in, out);
}

enum n8_status n8_check_rearranged(struct n8_reader *reader, const struct n8_step *step) {
    if (n8_value_count(step->in) != n8_value_count(step->out)) {
        return n8_malformed(reader, "its output has not as many values");
    }
    return n8_check_moved(reader, step->in, step->out);
}

enum n8_status n8_copy_tables(struct n8_reader *reader, const struct n8_step *step, int8_t *to,
                              size_t count) {
    const int8_t *table = step->arrays[0];
    for (size_t i = 0; i < count; i++) {
        if (!n8_in_range(table[i], step->out->lo, step->out->hi)) {
            return n8_malformed(reader, "a value of its table is outside the range of its output");
        }
    }
    memcpy(to, table, count);
    return N8_OK;
}

enum n8_status n8_pack_copy(struct n8_reader *reader, struct n8_step *step, void *memory) {
    memcpy(memory, step->arrays[0], step->packed_size);
    return N8_OK;
}
