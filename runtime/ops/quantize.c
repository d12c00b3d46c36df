// SPDX-License-Identifier: Apache-2.0
//
// float32 to int8 or int16, (2).
#include "step.h"

#include "move/planes.h"
#include "size.h"

#include <string.h>

enum { PLANES = 8 }; // that are quantized before they are laid out

// True if the caller has the channels of a pixel far from one another.
static bool has_planes(const struct n8_tensor *in) {
    return in->input >= 0 && !in->last && in->pixels != (size_t)in->dims[0];
}

// A unit is a piece of planes, with all its channels, or else a pixel.
enum n8_status n8_plan_quantize(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *in = step->in;
    const struct n8_kernels *kernels = &reader->model->kernels;
    step->kernel_name = step->out->type == N8_TYPE_S16 ? kernels->quantize_f32_s16_name
                                                       : kernels->quantize_f32_s8_name;
    step->units = has_planes(in) ? n8_piece_count(in) : in->pixels;
    return N8_OK;
}

// At most N8_PIECE values, by way of `real` where they are not aligned, as the caller's may be.
static void quantize_row(const struct n8_kernels *kernels, const struct n8_tensor *out, void *to,
                         const uint8_t *from, float *real, size_t count) {
    const bool aligned = (uintptr_t)from % _Alignof(float) == 0;
    if (!aligned) {
        memcpy(real, from, count * sizeof(float));
    }
    const float *in = aligned ? (const float *)(const void *)from : real;
    if (out->type == N8_TYPE_S16) {
        kernels->quantize_f32_s16(to, in, count, 1.0f / out->scale, out->zero_point, out->lo,
                                  out->hi);
    } else {
        kernels->quantize_f32_s8(to, in, count, 1.0f / out->scale, out->zero_point, out->lo,
                                 out->hi);
    }
}

// N C H W: quantized channel by channel, and laid out as N H W C on the way.
static void quantize_planes(const struct n8_session *session, const struct n8_step *step,
                            size_t begin, size_t end) {
    const struct n8_kernels *kernels = &session->model->kernels;
    const struct n8_tensor *in = step->in, *out = step->out;
    const uint8_t *base = session->inputs[in->input];
    const size_t area = in->pixels / (size_t)in->dims[0];
    const size_t channels = (size_t)in->dims[1];
    const size_t size = n8_value_size(out);
    float real[N8_PIECE];
    int16_t pieces[PLANES][N8_PIECE]; // or as many bytes
    for (size_t unit = begin; unit < end; unit++) {
        const struct n8_piece at = n8_piece_at(in, unit);
        uint8_t *to = n8_out_pixel(session, step, at.image * area + at.first);
        const uint8_t *from = base + (at.image * channels * area + at.first) * sizeof(float);
        for (size_t c = 0; c < channels; c++) {
            quantize_row(kernels, out, pieces[c % PLANES], from + c * area * sizeof(float), real,
                         at.count);
            if (c % PLANES == PLANES - 1 || c == channels - 1) {
                const size_t group = c / PLANES * PLANES;
                n8_interleave(kernels, to + group * size, out->pixel_stride,
                              n8_pixel_room(out) - group * size, (uint8_t *)pieces[0],
                              sizeof pieces[0], c + 1 - group, at.count, size);
            }
        }
    }
}

// N H W C: pixels without room between are one row; what pads them comes in afterwards.
static void quantize_pixels(const struct n8_session *session, const struct n8_step *step,
                            const uint8_t *from, size_t stride, size_t begin, size_t end) {
    const struct n8_kernels *kernels = &session->model->kernels;
    const struct n8_tensor *out = step->out;
    const size_t channels = (size_t)out->dims[1];
    const bool dense = stride == channels * sizeof(float) && channels <= N8_PIECE;
    const size_t at_once = dense ? N8_PIECE / channels : 1;
    const size_t size = n8_value_size(out);
    float real[N8_PIECE];
    int16_t row[N8_PIECE]; // or as many bytes
    for (size_t p = begin; p < end; p += at_once) {
        const size_t pixels = n8_smaller(end - p, at_once);
        const size_t count = pixels * channels;
        uint8_t *to = n8_out_pixel(session, step, p);
        const bool padded = pixels > 1 && out->pixel_stride != channels * size;
        for (size_t i = 0; i < count; i += N8_PIECE) {
            quantize_row(kernels, out, padded ? (uint8_t *)row : to + i * size,
                         from + p * stride + i * sizeof(float), real,
                         n8_smaller(count - i, N8_PIECE));
        }
        if (padded) {
            n8_move_pixels(kernels, to, out->pixel_stride, n8_pixel_room(out), (uint8_t *)row,
                           channels * size, channels * size, pixels);
        }
    }
}

void n8_run_quantize(const struct n8_session *session, const struct n8_step *step, size_t begin,
                     size_t end, void *scratch) {
    const struct n8_tensor *in = step->in;
    if (has_planes(in)) {
        quantize_planes(session, step, begin, end);
    } else if (in->input >= 0) {
        quantize_pixels(session, step, session->inputs[in->input],
                        (size_t)in->dims[1] * sizeof(float), begin, end);
    } else {
        quantize_pixels(session, step, n8_in_buffer(session, step, 0), in->pixel_stride, begin,
                        end);
    }
}

const struct n8_operator n8_op_quantize = {
    .name = "quantize",
    .types = {N8_TYPE_F32, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .s16 = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
    .ends = N8_END_INPUT,
};
