// SPDX-License-Identifier: Apache-2.0
//
// float32 to int8, (2).
#include "ops.h"

#include "size.h"
#include "transpose.h"

#include <string.h>

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    return n8_check_same_shape(reader, n8_input(reader->model, step, 0),
                               n8_output(reader->model, step));
}

enum {
    PIECE = 1024, // pixels of a plane that stay in L1
    PLANES = 8,   // that are quantized before they are laid out
};

// An input of the network is quantized in pieces of its planes.
static size_t pieces_of(const struct n8_tensor *in) {
    return n8_pieces(in->pixels / (size_t)in->dims[0], PIECE);
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    step->kernel_name = reader->model->kernels.quantize_f32_s8_name;
    step->units = in->input >= 0 ? (size_t)in->dims[0] * pieces_of(in) : in->pixels;
    return N8_OK;
}

// Plane or pixel of the caller, whose buffer may be aligned to anything, by way of `real` if it is
// not.
static void quantize_row(const struct n8_kernels *kernels, const struct n8_tensor *out, int8_t *to,
                         const uint8_t *from, float *real, size_t count) {
    const bool aligned = (uintptr_t)from % _Alignof(float) == 0;
    if (!aligned) {
        memcpy(real, from, count * sizeof(float));
    }
    kernels->quantize_f32_s8(to, aligned ? (const float *)(const void *)from : real, count,
                             1.0f / out->scale, out->zero_point, out->lo, out->hi);
}

// An input of the network, N C H W: quantized channel by channel, and laid out as N H W C on
// the way. A unit is a piece, with all its channels.
static void quantize_input(const struct n8_session *session, const struct n8_step *step,
                           size_t begin, size_t end) {
    const struct n8_kernels *kernels = &session->model->kernels;
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const uint8_t *base = session->inputs[in->input];
    const size_t area = in->pixels / (size_t)in->dims[0];
    const size_t channels = (size_t)in->dims[1];
    // What pads a pixel may be written, unless it is a slice: then it is another tensor's.
    const size_t room = out->slice ? channels : out->pixel_stride;
    float real[PIECE];
    int8_t pieces[PLANES][PIECE];
    for (size_t unit = begin; unit < end; unit++) {
        const size_t n = unit / pieces_of(in);
        const size_t first = unit % pieces_of(in) * PIECE;
        const size_t count = area - first < PIECE ? area - first : PIECE;
        uint8_t *to = n8_out_pixel(session, step, n * area + first);
        const uint8_t *from = base + (n * channels * area + first) * sizeof(float);
        if (area == 1) { // its channels are neighbours
            for (size_t c = 0; c < channels; c += PIECE) {
                quantize_row(kernels, out, (int8_t *)to + c, from + c * sizeof(float), real,
                             channels - c < PIECE ? channels - c : PIECE);
            }
            continue;
        }
        for (size_t c = 0; c < channels; c++) {
            quantize_row(kernels, out, pieces[c % PLANES], from + c * area * sizeof(float), real,
                         count);
            if (c % PLANES == PLANES - 1 || c == channels - 1) {
                const size_t group = c / PLANES * PLANES;
                n8_interleave(kernels, to + group, out->pixel_stride, room - group,
                              (uint8_t *)pieces[0], PIECE, c + 1 - group, count, 1);
            }
        }
    }
}

static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    (void)scratch;
    const struct n8_tensor *out = n8_output(session->model, step);
    if (n8_input(session->model, step, 0)->input >= 0) {
        quantize_input(session, step, begin, end);
        return;
    }
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    for (size_t p = begin; p < end; p += stretch.pixels) {
        session->model->kernels.quantize_f32_s8(
            (int8_t *)n8_out_pixel(session, step, p),
            (const float *)(const void *)n8_in_pixel(session, step, 0, p), stretch.count,
            1.0f / out->scale, out->zero_point, out->lo, out->hi);
    }
}

const struct n8_operator n8_op_quantize = {
    .name = "quantize",
    .in = N8_TYPE_F32,
    .out = N8_TYPE_S8,
    .least_inputs = 1,
    .most_inputs = 1,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
    .check = check,
    .plan = plan,
    .run = run,
};
