// SPDX-License-Identifier: Apache-2.0
//
// Another scale, or an activation on its own: (6) with one operand.
#include "move/widen.h"
#include "step.h"

// With int16 on either side, the kernel of int16 additions does it; its second operand has scale 0.
static bool has_s16(const struct n8_model *model, const struct n8_step *step) {
    return n8_input(model, step, 0)->type == N8_TYPE_S16 ||
           n8_output(model, step)->type == N8_TYPE_S16;
}

enum n8_status n8_plan_requantize(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_kernels *kernels = &reader->model->kernels;
    step->kernel_name =
        has_s16(reader->model, step) ? kernels->add_s16_name : kernels->requantize_s8_name;
    return N8_OK;
}

// `count` values that follow one another.
static void requantize_s16(const struct n8_session *session, const struct n8_step *step,
                           uint8_t *to, const uint8_t *from, size_t count) {
    enum { PIECE = 256 };
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    int16_t piece[PIECE];
    struct n8_add_s16_args args = {
        .out = piece,
        .a = piece,
        .b = piece,
        .a_scale = step->row.scale,
        .slope = step->row.slope,
        .a_zero_point = in->zero_point,
        .zero_point = out->zero_point,
        .lo = step->row.lo,
        .hi = step->row.hi,
    };
    for (size_t done = 0; done < count; done += PIECE) {
        args.count = count - done < PIECE ? count - done : PIECE;
        n8_widen(piece, from + done * n8_value_size(in), args.count, in->type);
        session->model->kernels.add_s16(&args);
        n8_narrow(to + done * n8_value_size(out), piece, args.count, out->type);
    }
}

// A unit is a pixel.
void n8_run_requantize(const struct n8_session *session, const struct n8_step *step, size_t begin,
                       size_t end, void *scratch) {
    const struct n8_tensor *out = n8_output(session->model, step);
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    const bool s16 = has_s16(session->model, step);
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
        uint8_t *to = n8_out_pixel(session, step, p);
        const uint8_t *from = n8_in_pixel(session, step, 0, p);
        if (s16) {
            requantize_s16(session, step, to, from, stretch.count);
            continue;
        }
        args.out = (int8_t *)to;
        args.a = (const int8_t *)from;
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
