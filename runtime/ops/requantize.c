// SPDX-License-Identifier: Apache-2.0
//
// Another scale, or an activation on its own: (6) with one operand.
#include "step.h"

// With int16 on either side, the kernel of int16 additions does it; its second operand has scale 0.
static bool has_s16(const struct n8_step *step) {
    return step->in->type == N8_TYPE_S16 || step->out->type == N8_TYPE_S16;
}

enum n8_status n8_plan_requantize(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_kernels *kernels = &reader->model->kernels;
    step->kernel_name = has_s16(step) ? kernels->add_s16_name : kernels->requantize_s8_name;
    return N8_OK;
}

static void requantize_s16(const struct n8_session *session, const struct n8_step *step,
                           int16_t *out, const int16_t *in, size_t count) {
    session->model->kernels.add_s16(&(struct n8_add_s16_args){
        .out = out,
        .a = in,
        .b = in,
        .count = count,
        .a_scale = step->row.scale,
        .slope = step->row.slope,
        .a_zero_point = step->in->zero_point,
        .zero_point = step->out->zero_point,
        .lo = step->row.lo,
        .hi = step->row.hi,
    });
}

// A unit is a pixel.
void n8_run_requantize(const struct n8_session *session, const struct n8_step *step, size_t begin,
                       size_t end, void *scratch) {
    if (has_s16(step)) {
        n8_run_s16(session, step, begin, end, requantize_s16);
        return;
    }
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    struct n8_pointwise_args args = {
        .count = stretch.count,
        .a_scale = step->row.scale,
        .slope = step->row.slope,
        .a_zero_point = step->in->zero_point,
        .zero_point = step->out->zero_point,
        .lo = step->row.lo,
        .hi = step->row.hi,
    };
    for (size_t p = begin; p < end; p += stretch.pixels) {
        args.out = n8_out_pixel(session, step, p);
        args.a = n8_in_pixel(session, step, 0, p);
        session->model->kernels.requantize_s8(&args);
    }
}

const struct n8_operator n8_op_requantize = {
    .name = "requantize",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_SCALE | N8_FIELD_SLOPE | N8_FIELD_CLAMP,
    .s16 = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_READS_EXACTLY,
};
