// SPDX-License-Identifier: Apache-2.0
//
// int8 or int16 to float32, (1).
#include "step.h"

#include "move/planes.h"
#include "size.h"

#include <string.h>

enum { PLANES = 8 }; // that are laid out before they become floats

enum n8_status n8_plan_dequantize(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    const struct n8_kernels *kernels = &reader->model->kernels;
    step->kernel_name = step->in->type == N8_TYPE_S16 ? kernels->dequantize_s16_f32_name
                                                      : kernels->dequantize_s8_f32_name;
    step->units = out->caller ? n8_piece_count(out) : out->pixels;
    return N8_OK;
}

static void dequantize(const struct n8_kernels *kernels, const struct n8_tensor *in, float *to,
                       const void *from, size_t count) {
    if (in->type == N8_TYPE_S16) {
        kernels->dequantize_s16_f32(to, from, count, in->scale, in->zero_point);
    } else {
        kernels->dequantize_s8_f32(to, from, count, in->scale, in->zero_point);
    }
}

// A plane or pixel of the caller, whose buffer may have any alignment; by way of `real` where it
// is not that of floats.
static void dequantize_row(const struct n8_kernels *kernels, const struct n8_tensor *in,
                           uint8_t *to, const void *from, float *real, size_t count) {
    const bool aligned = (uintptr_t)to % _Alignof(float) == 0;
    dequantize(kernels, in, aligned ? (float *)(void *)to : real, from, count);
    if (!aligned) {
        memcpy(to, real, count * sizeof(float));
    }
}

// A piece for the caller: laid out in planes first, which become floats where they are wanted.
static void dequantize_piece(const struct n8_session *session, const struct n8_step *step,
                             struct n8_piece at) {
    const struct n8_kernels *kernels = &session->model->kernels;
    const struct n8_tensor *in = step->in, *out = step->out;
    const size_t area = out->pixels / (size_t)out->dims[0];
    const size_t channels = (size_t)out->dims[1];
    const uint8_t *from = n8_in_pixel(session, step, 0, at.image * area + at.first);
    uint8_t *to = session->outputs[out->output];
    to += (at.image * channels * area + at.first) * sizeof(float);
    const size_t size = n8_value_size(in);
    float real[N8_PIECE];
    int16_t pieces[PLANES][N8_PIECE]; // or as many bytes
    if (area == 1) {                  // its channels are neighbours
        for (size_t c = 0; c < channels; c += N8_PIECE) {
            dequantize_row(kernels, in, to + c * sizeof(float), from + c * size, real,
                           n8_smaller(channels - c, N8_PIECE));
        }
        return;
    }
    for (size_t c = 0; c < channels; c++) {
        if (c % PLANES == 0) {
            n8_deinterleave(kernels, (uint8_t *)pieces[0], sizeof pieces[0], from + c * size,
                            in->pixel_stride, n8_smaller(channels - c, PLANES), at.count, size);
        }
        dequantize_row(kernels, in, to + c * area * sizeof(float), pieces[c % PLANES], real,
                       at.count);
    }
}

static void dequantize_pixels(const struct n8_session *session, const struct n8_step *step,
                              size_t begin, size_t end) {
    const struct n8_kernels *kernels = &session->model->kernels;
    const struct n8_tensor *in = step->in;
    const size_t channels = (size_t)step->out->dims[1];
    const size_t used = channels * n8_value_size(in);
    if (step->out->slice || channels > N8_PIECE / 2 || in->pixel_stride == used) {
        const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
        for (size_t p = begin; p < end; p += stretch.pixels) {
            dequantize(kernels, in, n8_out_pixel(session, step, p),
                       n8_in_pixel(session, step, 0, p), stretch.count);
        }
        return;
    }
    // Few channels: without what pads the pixels, many of them are one row.
    int16_t dense[N8_PIECE]; // or as many bytes
    for (size_t p = begin; p < end; p += N8_PIECE / channels) {
        const size_t pixels = end - p < N8_PIECE / channels ? end - p : N8_PIECE / channels;
        n8_move_pixels(kernels, (uint8_t *)dense, used, used, n8_in_pixel(session, step, 0, p),
                       in->pixel_stride, used, pixels);
        dequantize(kernels, in, n8_out_pixel(session, step, p), dense, pixels * channels);
    }
}

// A unit is a piece of an output that stays with the caller, with all its channels, else a pixel.
void n8_run_dequantize(const struct n8_session *session, const struct n8_step *step, size_t begin,
                       size_t end, void *scratch) {
    if (!step->out->caller) {
        dequantize_pixels(session, step, begin, end);
        return;
    }
    for (size_t unit = begin; unit < end; unit++) {
        dequantize_piece(session, step, n8_piece_at(step->out, unit));
    }
}

const struct n8_operator n8_op_dequantize = {
    .name = "dequantize",
    .types = {N8_TYPE_S8, N8_TYPE_F32},
    .inputs = {1, 1},
    .same_shape = true,
    .s16 = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
    .ends = N8_END_OUTPUT,
};
