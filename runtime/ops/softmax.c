// SPDX-License-Identifier: Apache-2.0
//
// float32 along one axis, (14).
#include "ops.h"

#include "size.h"
#include "strides.h"

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (!n8_in_range(step->row.axis, 0, out->rank - 1)) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its axis is none of its output");
    }
    return n8_check_same_dims(reader, in, out);
}

// Rows along the axis lie in memory as [outer][size][stride].
struct rows {
    size_t outer, size, stride;
};

static struct rows rows_of(const struct n8_tensor *tensor, int32_t axis) {
    size_t strides[N8_FORMAT_MAX_RANK];
    n8_axis_strides(tensor, strides);
    struct rows rows = {.size = (size_t)tensor->onnx_dims[axis], .stride = strides[axis]};
    rows.outer = tensor->pixels * (size_t)tensor->dims[1] / rows.size / rows.stride;
    return rows;
}

// Scratch: one row in and one out, where they are not contiguous.
static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    const struct rows rows = rows_of(n8_output(reader->model, step), step->row.axis);
    step->kernel_name = reader->model->kernels.softmax_f32_name;
    step->scratch_size = rows.stride == 1 ? 0 : n8_mul(2 * sizeof(float), rows.size);
    return N8_OK;
}

struct context {
    const struct n8_session *session;
    struct rows rows;
    const float *in;
    float *out;
};

static void work(void *argument, size_t begin, size_t end, size_t worker) {
    const struct context *c = argument;
    n8_softmax_fn *kernel = c->session->model->kernels.softmax_f32;
    float *row = (float *)(void *)(c->session->scratch + worker * c->session->scratch_stride);
    const size_t size = c->rows.size;
    const size_t stride = c->rows.stride;
    for (size_t r = begin; r < end; r++) {
        const size_t at = r / stride * size * stride + r % stride;
        if (stride == 1) {
            kernel(c->out + at, c->in + at, size);
            continue;
        }
        for (size_t i = 0; i < size; i++) {
            row[i] = c->in[at + i * stride];
        }
        kernel(row + size, row, size);
        for (size_t i = 0; i < size; i++) {
            c->out[at + i * stride] = row[size + i];
        }
    }
}

static void run(struct n8_session *session, const struct n8_step *step) {
    struct context context = {
        .session = session,
        .rows = rows_of(n8_output(session->model, step), step->row.axis),
        .in = (const float *)(const void *)n8_in_buffer(session, step, 0),
        .out = (float *)(void *)n8_out_buffer(session, step),
    };
    const size_t rows = context.rows.outer * context.rows.stride;
    n8_threads_run(session->threads, rows, work, &context);
}

const struct n8_operator n8_op_softmax = {
    .name = "softmax",
    .in = N8_TYPE_F32,
    .out = N8_TYPE_F32,
    .least_inputs = 1,
    .most_inputs = 1,
    .fields = N8_FIELD_AXIS,
    .check = check,
    .plan = plan,
    .run = run,
};
