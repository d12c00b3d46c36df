// SPDX-License-Identifier: Apache-2.0
//
// float32 along one axis, (14), or the logarithm of it.
#include "ref/elementary.h"
#include "ref/floats.h"
#include "step.h"

#include "size.h"

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (!n8_in_range(step->row.axis, 0, out->rank - 1)) {
        return n8_malformed(reader, "its axis is none of its output");
    }
    if (step->row.function != N8_FUNCTION_NONE && step->row.function != N8_FUNCTION_LOG) {
        return n8_malformed(reader, "its function is neither none nor log");
    }
    return N8_OK;
}

// y = d - log s, with d and s of (14).
static void log_softmax(float *out, const float *in, size_t count) {
    double largest = (double)in[0];
    for (size_t i = 1; i < count; i++) {
        largest = (double)in[i] > largest ? (double)in[i] : largest;
    }
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double d = (double)in[i] - largest;
        sum += d < -104.0 ? 0.0 : n8_exp(d);
    }
    const double log = n8_log(sum);
    for (size_t i = 0; i < count; i++) {
        out[i] = n8_one_nan((float)((double)in[i] - largest - log));
    }
}

// What the axis runs over: the channels of a pixel, or `size` pixels that are `inner` pixels
// apart, for each channel on its own.
struct rows {
    size_t size, inner;
};

static struct rows rows_of(const struct n8_model *model, const struct n8_step *step) {
    const struct n8_tensor *out = n8_output(model, step);
    struct rows rows = {.size = (size_t)out->onnx_dims[step->row.axis], .inner = 1};
    for (int32_t axis = out->rank - 1; axis > step->row.axis; axis--) {
        rows.inner *= axis == 1 ? 1 : (size_t)out->onnx_dims[axis];
    }
    return rows;
}

// A unit is a row. Scratch: one in and one out, where they are not contiguous.
static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *out = n8_output(reader->model, step);
    const size_t size = rows_of(reader->model, step).size;
    const bool plain = step->row.function == N8_FUNCTION_NONE;
    step->kernel_name = plain ? reader->model->kernels.softmax_f32_name : "scalar";
    step->units = n8_value_count(out) / size;
    step->scratch_size = step->row.axis == 1 ? 0 : n8_mul(2 * sizeof(float), size);
    return N8_OK;
}

static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    n8_softmax_fn *kernel =
        step->row.function == N8_FUNCTION_NONE ? session->model->kernels.softmax_f32 : log_softmax;
    const struct rows rows = rows_of(session->model, step);
    const size_t channels = (size_t)n8_output(session->model, step)->dims[1];
    float *row = scratch;
    for (size_t r = begin; r < end; r++) {
        if (step->row.axis == 1) {
            kernel(n8_out_pixel(session, step, r), n8_in_pixel(session, step, 0, r), rows.size);
            continue;
        }
        const size_t c = r % channels;
        const size_t at = r / channels;
        const size_t pixel = at / rows.inner * rows.size * rows.inner + at % rows.inner;
        for (size_t i = 0; i < rows.size; i++) {
            row[i] = ((const float *)n8_in_pixel(session, step, 0, pixel + i * rows.inner))[c];
        }
        kernel(row + rows.size, row, rows.size);
        for (size_t i = 0; i < rows.size; i++) {
            ((float *)n8_out_pixel(session, step, pixel + i * rows.inner))[c] = row[rows.size + i];
        }
    }
}

const struct n8_operator n8_op_softmax = {
    .name = "softmax",
    .types = {N8_TYPE_F32, N8_TYPE_F32},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_AXIS | N8_FIELD_FUNCTION,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
    .check = check,
    .plan = plan,
    .run = run,
};
