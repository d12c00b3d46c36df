// SPDX-License-Identifier: Apache-2.0
//
// Another scale, or an activation on its own: (6) with one operand.
#include "ops.h"

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    return n8_check_same_shape(reader, n8_input(reader->model, step, 0),
                               n8_output(reader->model, step));
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.requantize_s8_name;
    step->units = n8_output(reader->model, step)->pixels;
    return N8_OK;
}

// A unit is a pixel.
static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    (void)scratch;
    const struct n8_tensor *out = n8_output(session->model, step);
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    struct n8_pointwise_args args = {
        .count = stretch.count,
        .a_scale = step->row.scale,
        .slope = step->row.slope,
        .a_zero_point = n8_input(session->model, step, 0)->zero_point,
        .zero_point = out->zero_point,
        .lo = step->row.lo,
        .hi = step->row.hi,
    };
    for (size_t p = begin; p < end; p += stretch.pixels) {
        args.out = (int8_t *)n8_out_pixel(session, step, p);
        args.a = (const int8_t *)n8_in_pixel(session, step, 0, p);
        session->model->kernels.requantize_s8(&args);
    }
}

const struct n8_operator n8_op_requantize = {
    .name = "requantize",
    .in = N8_TYPE_S8,
    .out = N8_TYPE_S8,
    .least_inputs = 1,
    .most_inputs = 1,
    .fields = N8_FIELD_SCALE | N8_FIELD_SLOPE | N8_FIELD_CLAMP,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_READS_EXACTLY,
    .check = check,
    .plan = plan,
    .run = run,
};
