// SPDX-License-Identifier: Apache-2.0
//
// float32 over C, (14).
#include "ops.h"

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    if (in->dims[2] != 1 || in->dims[3] != 1) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its height and width are not 1");
    }
    return n8_check_same_shape(reader, in, n8_output(reader->model, step));
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.softmax_f32_name;
    step->units = n8_output(reader->model, step)->pixels;
    return N8_OK;
}

// A unit is a pixel.
static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    (void)scratch;
    const size_t channels = (size_t)n8_output(session->model, step)->dims[1];
    for (size_t p = begin; p < end; p++) {
        session->model->kernels.softmax_f32(
            (float *)(void *)n8_out_pixel(session, step, p),
            (const float *)(const void *)n8_in_pixel(session, step, 0, p), channels);
    }
}

const struct n8_operator n8_op_softmax = {
    .name = "softmax",
    .in = N8_TYPE_F32,
    .out = N8_TYPE_F32,
    .least_inputs = 1,
    .most_inputs = 1,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
    .check = check,
    .plan = plan,
    .run = run,
};
