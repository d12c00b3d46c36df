// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"
#include "winograd.h"

enum {
    SIDE = N8_WINOGRAD_SIDE,
    OUT = N8_WINOGRAD_OUT,
    BIAS = 576 / 16, // the factor of outputs, without that of the point (1, 1)
    BITS = 6,        // 64 acc'' is what a ninth of outputs is
};
#define NINTH UINT32_C(0x38e38e39) // modulo 2^32

// acc'' of the 16 outputs of one channel.
static void sums_of(const struct n8_winograd_output_args *args, size_t t, size_t n,
                    int32_t acc[OUT * OUT]) {
    uint32_t m[SIDE], rows[OUT * SIDE], y[OUT * OUT];
    for (size_t j = 0; j < SIDE; j++) {
        for (size_t i = 0; i < SIDE; i++) {
            const char *at = (const char *)args->sums + n8_winograd_plane(i, j) * args->plane;
            m[i] = ((const uint32_t *)(const void *)(at + t * args->tile))[n];
        }
        if (j == 0) // what is added to the point (1, 1) is added to every output
            m[0] += (uint32_t)args->bias[n] * BIAS;
        n8_winograd_output(rows + j, SIDE, m);
    }
    for (size_t i = 0; i < OUT; i++)
        n8_winograd_output(y + i * OUT, 1, rows + i * SIDE);
    for (size_t i = 0; i < OUT * OUT; i++) {
        const int lacking = (i / OUT >= 2 ? 2 : 0) + (i % OUT >= 2 ? 2 : 0);
        acc[i] = (int32_t)(y[i] * NINTH) >> (BITS - lacking);
    }
}

void n8_winograd_output_s8_c(const struct n8_winograd_output_args *args) {
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    for (size_t t = 0; t < args->tiles; t++) {
        for (size_t n = 0; n < args->channels; n++) {
            int32_t acc[OUT * OUT];
            sums_of(args, t, n, acc);
            for (size_t i = 0; i < OUT * OUT; i++) {
                float v = (float)acc[i] * args->multiplier[n];
                if (args->residual) {
                    const int8_t r =
                        args->residual[args->residual_places[t * OUT * OUT + i] + (ptrdiff_t)n];
                    v += (float)(r - args->residual_zero_point) * args->residual_scale;
                }
                if (args->slope)
                    v = n8_leaky(v, args->slope[n]);
                args->out[args->places[t * OUT * OUT + i] + (ptrdiff_t)n] = n8_round_s8(v, limits);
            }
        }
    }
}
