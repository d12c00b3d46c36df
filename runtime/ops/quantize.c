// SPDX-License-Identifier: Apache-2.0
//
// float32 to int8, (2).
#include "ops.h"

#include <string.h>

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    return n8_check_same_shape(reader, n8_input(reader->model, step, 0),
                               n8_output(reader->model, step));
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.quantize_f32_s8_name;
    return N8_OK;
}

// An input of the network, N C H W: quantized plane by plane in pieces that stay in L1, and
// laid out as N H W C on the way. The caller's buffer may be aligned to anything.
static void quantize_input(const struct n8_session *session, const struct n8_tensor *in,
                           const struct n8_tensor *out, int8_t *to) {
    enum { PIECE = 1024 };
    float real[PIECE];
    int8_t piece[PIECE];
    const float inverse = 1.0f / out->scale;
    const uint8_t *from = session->inputs[in->input];
    const bool aligned = (uintptr_t)from % _Alignof(float) == 0;
    const size_t area = in->pixels / (size_t)in->dims[0];
    for (size_t n = 0; n < (size_t)in->dims[0]; n++, to += area * out->pixel_stride) {
        for (size_t c = 0; c < (size_t)in->dims[1]; c++) {
            for (size_t p = 0; p < area; p += PIECE) {
                const size_t count = area - p < PIECE ? area - p : PIECE;
                if (!aligned) {
                    memcpy(real, from, count * sizeof(float));
                }
                session->model->kernels.quantize_f32_s8(
                    piece, aligned ? (const float *)(const void *)from : real, count, inverse,
                    out->zero_point, out->lo, out->hi);
                from += count * sizeof(float);
                for (size_t i = 0; i < count; i++) {
                    to[(p + i) * out->pixel_stride + c] = piece[i];
                }
            }
        }
    }
}

static void run(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    int8_t *to = (int8_t *)n8_out_buffer(session, step);
    if (in->input >= 0) {
        quantize_input(session, in, out, to);
        return;
    }
    const float inverse = 1.0f / out->scale;
    const uint8_t *from = n8_in_buffer(session, step, 0);
    for (size_t p = 0; p < in->pixels; p++) {
        session->model->kernels.quantize_f32_s8(
            to + p * out->pixel_stride, (const float *)(const void *)(from + p * in->pixel_stride),
            (size_t)in->dims[1], inverse, out->zero_point, out->lo, out->hi);
    }
}

const struct n8_operator n8_op_quantize = {
    .name = "quantize",
    .in = N8_TYPE_F32,
    .out = N8_TYPE_S8,
    .least_inputs = 1,
    .most_inputs = 1,
    .check = check,
    .plan = plan,
    .run = run,
};
