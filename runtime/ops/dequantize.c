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
    step->units = n8_output(reader->model, step)->pixels;
    return N8_OK;
}

// A unit is a pixel.
static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    (void)scratch;
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    for (size_t p = begin; p < end; p += stretch.pixels) {
        session->model->kernels.dequantize_s8_f32((float *)(void *)n8_out_pixel(session, step, p),
                                                  (const int8_t *)n8_in_pixel(session, step, 0, p),
                                                  stretch.count, in->scale, in->zero_point);
    }
}

const struct n8_operator n8_op_dequantize = {
    .name = "dequantize",
    .in = N8_TYPE_S8,
    .out = N8_TYPE_F32,
    .least_inputs = 1,
    .most_inputs = 1,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
    .check = check,
    .plan = plan,
    .run = run,
};
