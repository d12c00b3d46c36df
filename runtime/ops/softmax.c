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
    return N8_OK;
}

static void run(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const uint8_t *from = n8_in_buffer(session, step, 0);
    uint8_t *to = n8_out_buffer(session, step);
    for (size_t n = 0; n < (size_t)in->dims[0]; n++) {
        session->model->kernels.softmax_f32(
            (float *)(void *)(to + n * in->pixel_stride),
            (const float *)(const void *)(from + n * in->pixel_stride), (size_t)in->dims[1]);
    }
}

const struct n8_operator n8_op_softmax = {
    .name = "softmax",
    .in = N8_TYPE_F32,
    .out = N8_TYPE_F32,
    .least_inputs = 1,
    .most_inputs = 1,
    .check = check,
    .plan = plan,
    .run = run,
};
