// SPDX-License-Identifier: Apache-2.0
//
// From the int32 accumulators of a convolution to what it makes where int16 is read or made, (4) to
// (6). The kernel makes int16; int8 outputs are narrowed afterwards.
#include "algorithm.h"

#include "move/widen.h"

enum { PIECE = 64 }; // channels that are widened or narrowed at once

static size_t size_of(enum n8_type type) {
    return type == N8_TYPE_S8 ? 1 : type == N8_TYPE_S16 ? sizeof(int16_t) : sizeof(float);
}

// (4)
static void output_floats(const struct n8_conv *conv, const struct n8_conv_accumulators *it,
                          uint8_t *out, ptrdiff_t out_stride) {
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    uint8_t *row = (uint8_t *)it->acc;
    for (size_t p = 0; p < it->pixels; p++, row += it->stride, out += out_stride) {
        int32_t *sums = (int32_t *)(void *)row;
        for (size_t c = 0; it->bias != NULL && c < it->channels; c++) {
            sums[c] = (int32_t)((uint32_t)sums[c] + (uint32_t)it->bias[c]);
        }
        conv->dequantize((float *)(void *)out, sums, 1, it->channels, e->multiplier + it->entry,
                         e->bias_f32 + it->entry);
    }
}

void n8_conv_output(const struct n8_conv *conv, const struct n8_conv_io *io,
                    const struct n8_conv_accumulators *it) {
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const ptrdiff_t pixel = (ptrdiff_t)it->pixel;
    uint8_t *out = (uint8_t *)io->out + pixel * io->out_stride + it->channel * size_of(e->type);
    if (e->type == N8_TYPE_F32) {
        output_floats(conv, it, out, io->out_stride);
        return;
    }
    const bool adds = io->residual != NULL;
    const bool widens = adds && conv->residual_type == N8_TYPE_S8;
    const bool narrows = e->type == N8_TYPE_S8;
    const uint8_t *residual = adds ? (const uint8_t *)io->residual + pixel * io->residual_stride +
                                         it->channel * size_of(conv->residual_type)
                                   : NULL;
    const uint8_t *sums = (const uint8_t *)it->acc;
    const bool pieces = widens || narrows;
    int16_t made[PIECE], added[PIECE];
    struct n8_output_args args = {
        .out_stride = io->out_stride,
        .sums_stride = it->stride,
        .residual_stride = io->residual_stride,
        .pixels = pieces ? 1 : it->pixels,
        .residual_scale = e->residual_scale,
        .residual_zero_point = e->residual_zero_point,
        .zero_point = e->zero_point,
        .lo = e->lo,
        .hi = e->hi,
    };
    for (size_t p = 0; p < it->pixels; p += args.pixels) {
        for (size_t c = 0; c < it->channels; c += args.channels) {
            const size_t rest = it->channels - c;
            args.channels = pieces && rest > PIECE ? PIECE : rest;
            uint8_t *to = out + (ptrdiff_t)p * io->out_stride + c * size_of(e->type);
            const uint8_t *from = adds ? residual + (ptrdiff_t)p * io->residual_stride +
                                             c * size_of(conv->residual_type)
                                       : NULL;
            if (widens) {
                n8_widen(added, from, args.channels, N8_TYPE_S8);
                from = (const uint8_t *)added;
            }
            args.out = narrows ? made : (int16_t *)(void *)to;
            args.residual = (const int16_t *)(const void *)from;
            args.sums = (const int32_t *)(const void *)(sums + (ptrdiff_t)p * it->stride) + c;
            args.bias = it->bias == NULL ? NULL : it->bias + c;
            args.multiplier = e->multiplier + it->entry + c;
            args.slope = e->slope == NULL ? NULL : e->slope + it->entry + c;
            conv->output(&args);
            if (narrows) {
                n8_narrow(to, made, args.channels, N8_TYPE_S8);
            }
        }
    }
}
