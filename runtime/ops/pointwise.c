// SPDX-License-Identifier: Apache-2.0
//
// add, (6), and requantize: another scale, or an activation on its own. The first is the second
// with two operands.
#include "ops.h"

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    for (size_t i = 0; i < step->row.input_count; i++) {
        const enum n8_status status = n8_check_same_shape(reader, n8_input(reader->model, step, i),
                                                          n8_output(reader->model, step));
        if (status != N8_OK) {
            return status;
        }
    }
    return N8_OK;
}

static enum n8_status plan_add(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.add_s8_name;
    step->units = n8_output(reader->model, step)->pixels;
    return N8_OK;
}

static enum n8_status plan_requantize(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.requantize_s8_name;
    step->units = n8_output(reader->model, step)->pixels;
    return N8_OK;
}

static struct n8_pointwise_args args_of(const struct n8_session *session,
                                        const struct n8_step *step) {
    const struct n8_tensor *out = n8_output(session->model, step);
    return (struct n8_pointwise_args){
        .a_scale = step->row.scale,
        .slope = step->row.slope,
        .a_zero_point = n8_input(session->model, step, 0)->zero_point,
        .zero_point = out->zero_point,
        .lo = step->row.lo,
        .hi = step->row.hi,
    };
}

// A unit is a pixel.
static void run_add(const struct n8_session *session, const struct n8_step *step, size_t begin,
                    size_t end, void *scratch) {
    (void)scratch;
    struct n8_pointwise_args args = args_of(session, step);
    args.b_scale = step->row.residual_scale;
    args.b_zero_point = n8_input(session->model, step, 1)->zero_point;
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    args.count = stretch.count;
    for (size_t p = begin; p < end; p += stretch.pixels) {
        args.out = (int8_t *)n8_out_pixel(session, step, p);
        args.a = (const int8_t *)n8_in_pixel(session, step, 0, p);
        args.b = (const int8_t *)n8_in_pixel(session, step, 1, p);
        session->model->kernels.add_s8(&args);
    }
}

static void run_requantize(const struct n8_session *session, const struct n8_step *step,
                           size_t begin, size_t end, void *scratch) {
    (void)scratch;
    struct n8_pointwise_args args = args_of(session, step);
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    args.count = stretch.count;
    for (size_t p = begin; p < end; p += stretch.pixels) {
        args.out = (int8_t *)n8_out_pixel(session, step, p);
        args.a = (const int8_t *)n8_in_pixel(session, step, 0, p);
        session->model->kernels.requantize_s8(&args);
    }
}

const struct n8_operator n8_op_add = {
    .name = "add",
    .in = N8_TYPE_S8,
    .out = N8_TYPE_S8,
    .least_inputs = 2,
    .most_inputs = 2,
    .fields = N8_FIELD_SCALE | N8_FIELD_RESIDUAL | N8_FIELD_SLOPE | N8_FIELD_CLAMP,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_OVER_SECOND,
    .check = check,
    .plan = plan_add,
    .run = run_add,
};

const struct n8_operator n8_op_requantize = {
    .name = "requantize",
    .in = N8_TYPE_S8,
    .out = N8_TYPE_S8,
    .least_inputs = 1,
    .most_inputs = 1,
    .fields = N8_FIELD_SCALE | N8_FIELD_SLOPE | N8_FIELD_CLAMP,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST,
    .check = check,
    .plan = plan_requantize,
    .run = run_requantize,
};
