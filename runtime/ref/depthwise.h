// SPDX-License-Identifier: Apache-2.0
//
// Rows of a depthwise convolution (5), for weights in blocks of any number of channels.
// With a constant kernel size the loops over the taps unroll: there is one for 3x3, one for any.
#ifndef N8_REF_DEPTHWISE_H
#define N8_REF_DEPTHWISE_H

#include "epilogue.h"

#include <stdbool.h>
#include <string.h>

#define N8_DEPTHWISE_LANES 8

N8_INLINE bool n8_is_padding(const struct n8_depthwise_args *args, size_t p, size_t x,
                             size_t width) {
    return (args->left && p == 0 && x == 0) ||
           (args->right && p == args->pixels - 1 && x == width - 1);
}

N8_INLINE void n8_depthwise_blocks(const struct n8_depthwise_args *args, const int8_t *const *rows,
                                   int8_t *row_out, size_t height, size_t width, size_t block) {
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    const size_t taps = height * width;
    int8_t padding[N8_DEPTHWISE_LANES];
    memset(padding, args->in_zero_point, sizeof padding);
    for (size_t c = 0; c < args->channels; c += N8_DEPTHWISE_LANES) {
        const int8_t *weights = args->weights + c / block * block * taps + c % block;
        const int32_t *bias = args->bias + c;
        const float *multiplier = args->multiplier + c;
        const float *slope = args->slope ? args->slope + c : NULL;
        for (size_t p = 0; p < args->pixels; p++) {
            int32_t sum[N8_DEPTHWISE_LANES];
            for (size_t i = 0; i < N8_DEPTHWISE_LANES; i++)
                sum[i] = bias[i];
            for (size_t y = 0; y < height; y++) {
                const int8_t *w = weights + y * width * block;
                for (size_t x = 0; x < width; x++) {
                    const ptrdiff_t column = (ptrdiff_t)x - args->left;
                    const int8_t *in =
                        n8_is_padding(args, p, x, width)
                            ? padding
                            : rows[y] + (ptrdiff_t)p * args->step + column * args->tap_stride + c;
                    // a product fits 16 bits: at most 128 * 128
                    for (size_t i = 0; i < N8_DEPTHWISE_LANES; i++)
                        sum[i] += (int16_t)(in[i] * w[i]);
                    w += block;
                }
            }
            float v[N8_DEPTHWISE_LANES];
            for (size_t i = 0; i < N8_DEPTHWISE_LANES; i++)
                v[i] = (float)sum[i] * multiplier[i];
            if (slope) {
                for (size_t i = 0; i < N8_DEPTHWISE_LANES; i++)
                    v[i] = n8_leaky(v[i], slope[i]);
            }
            int8_t *restrict out = row_out + (ptrdiff_t)p * args->out_stride + c;
            for (size_t i = 0; i < N8_DEPTHWISE_LANES; i++)
                out[i] = n8_round_s8(v[i], limits);
        }
    }
}

N8_INLINE void n8_depthwise(const struct n8_depthwise_args *args, size_t height, size_t width,
                            int32_t ratio) {
    for (int32_t r = args->outputs - 1; r >= 0; r--) {
        const int8_t *const *rows = args->rows + r * ratio;
        int8_t *out = args->out + r * args->out_row_stride;
        // The block of the C rows as a constant, for speed; nothing depends on it.
        if (N8_FOR_SPEED && args->block == N8_DEPTHWISE_LANES)
            n8_depthwise_blocks(args, rows, out, height, width, N8_DEPTHWISE_LANES);
        else
            n8_depthwise_blocks(args, rows, out, height, width, args->block);
    }
}

// For 3 x 3 taps of either slot, in depthwise3x3s1_s8.c.
void n8_depthwise3x3(const struct n8_depthwise_args *args, int32_t ratio);

#endif // N8_REF_DEPTHWISE_H
