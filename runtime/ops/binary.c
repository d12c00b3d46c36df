// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of two tensors in float32, broadcast as ONNX does, (22).
#include "ref/floats.h"
#include "step.h"

// Axis `axis` of the output, which has `rank` of them, in an operand: axes are counted from the
// last on. Its size, 1 where the operand has no such axis.
static int32_t size_along(const struct n8_tensor *operand, int32_t rank, int32_t axis) {
    const int32_t own = axis - (rank - operand->rank);
    return own < 0 ? 1 : operand->onnx_dims[own];
}

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (step->row.function != N8_FUNCTION_PRELU && step->row.function != N8_FUNCTION_MINIMUM &&
        step->row.function != N8_FUNCTION_MAXIMUM &&
        (step->row.function < N8_FUNCTION_ADD || step->row.function > N8_FUNCTION_DIVIDE)) {
        return n8_malformed(reader, "its function does not take two values");
    }
    for (size_t i = 0; i < 2; i++) {
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

// An operand as the output sees it: floats from one index of an axis to the next, 0 where it is
// broadcast.
struct operand {
    const float *values;
    size_t stride[N8_FORMAT_MAX_RANK];
};

static struct operand operand_of(const struct n8_session *session, const struct n8_step *step,
                                 size_t index) {
    const struct n8_tensor *out = n8_output(session->model, step);
    const struct n8_tensor *in = n8_input(session->model, step, index);
    struct operand operand = {
        .values = n8_in_buffer(session, step, index),
    };
    size_t stride = in->pixel_stride / sizeof(float);
    for (int32_t axis = out->rank - 1; axis >= out->rank - in->rank; axis--) {
        const int32_t own = axis - (out->rank - in->rank);
        if (in->onnx_dims[own] != 1) {
            operand.stride[axis] = own == 1 ? 1 : stride;
        }
        stride *= own == 1 ? 1 : (size_t)in->onnx_dims[own];
    }
    return operand;
}

// Where the operand's part of output pixel `pixel` begins.
static const float *at_pixel(const struct operand *operand, const struct n8_tensor *out,
                             size_t pixel) {
    const float *at = operand->values;
    for (int32_t axis = out->rank - 1; axis >= 0; axis--) {
        if (axis != 1) {
            const size_t size = (size_t)out->onnx_dims[axis];
            at += pixel % size * operand->stride[axis];
            pixel /= size;
        }
    }
    return at;
}

#define EACH(value)                                                                                \
    for (size_t i = 0; i < count; i++) {                                                           \
        const float x = a[i * a_step];                                                             \
        const float y = b[i * b_step];                                                             \
        out[i] = n8_one_nan(value);                                                                \
    }                                                                                              \
    break

static inline void combine(uint32_t function, float *out, const float *a, size_t a_step,
                           const float *b, size_t b_step, size_t count) {
    switch (function) {
    case N8_FUNCTION_ADD:
        EACH(x + y);
    case N8_FUNCTION_SUBTRACT:
        EACH(x - y);
    case N8_FUNCTION_MULTIPLY:
        EACH(x * y);
    case N8_FUNCTION_DIVIDE:
        EACH(x / y);
    case N8_FUNCTION_MINIMUM:
        EACH(x != x || x < y ? x : y);
    case N8_FUNCTION_MAXIMUM:
        EACH(x != x || x > y ? x : y);
    default: // N8_FUNCTION_PRELU
        EACH(x < 0.0f ? x * y : x);
    }
}

static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    const struct n8_tensor *out = n8_output(session->model, step);
    const struct operand a = operand_of(session, step, 0);
    const struct operand b = operand_of(session, step, 1);
    const size_t a_step = a.stride[1];
    const size_t b_step = b.stride[1];
    const size_t count = (size_t)out->dims[1];
    for (size_t p = begin; p < end; p++) {
        float *to = n8_out_pixel(session, step, p);
        const float *x = at_pixel(&a, out, p);
        const float *y = at_pixel(&b, out, p);
        if (a_step == 1 && b_step == 1) { // constants, which compilers make vectors of
            combine(step->row.function, to, x, 1, y, 1, count);
        } else if (a_step == 1 && b_step == 0) {
            combine(step->row.function, to, x, 1, y, 0, count);
        } else {
            combine(step->row.function, to, x, a_step, y, b_step, count);
        }
    }
}

const struct n8_operator n8_op_binary = {
    .name = "binary",
    .types = {N8_TYPE_F32, N8_TYPE_F32},
    .inputs = {2, 2},
    .fields = N8_FIELD_FUNCTION,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_OVER_SECOND,
    .check = check,
    .run = run,
};
