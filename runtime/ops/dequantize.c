// SPDX-License-Identifier: Apache-2.0
//
// int8 to float32, (1).
#include "ops.h"

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    return n8_check_same_shape(reader, n8_input(reader->model, step, 0),
                               n8_output(reader->model, step));
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.dequantize_s8_f32_name;
    return N8_OK;
}

static void run(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const int8_t *from = (const int8_t *)n8_in_buffer(session, step, 0);
    uint8_t *to = n8_out_buffer(session, step);
    for (size_t p = 0; p < in->pixels; p++) {
        session->model->kernels.dequantize_s8_f32((float *)(void *)(to + p * out->pixel_stride),
                                                  from + p * in->pixel_stride, (size_t)in->dims[1],
                                                  in->scale, in->zero_point);
    }
}

const struct n8_operator n8_op_dequantize = {
    .name = "dequantize",
    .in = N8_TYPE_S8,
    .out = N8_TYPE_F32,
    .least_inputs = 1,
    .most_inputs = 1,
    .check = check,
    .plan = plan,
    .run = run,
};
