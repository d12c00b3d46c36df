// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

#define BLOCK 64

static void pixel(const struct n8_pool_args *args, size_t at) {
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    const float multiplier = args->multiplier;
    const int32_t offset = -(int32_t)args->taps * args->in_zero_point;
    int8_t *to = args->out + at * args->out_stride;
    for (size_t c = 0; c < args->channels; c += BLOCK) {
        const size_t n = args->channels - c < BLOCK ? args->channels - c : BLOCK;
        int32_t sum[BLOCK];
        for (size_t i = 0; i < n; i++)
            sum[i] = offset;
        for (size_t t = 0; t < args->taps; t++) {
            const int8_t *restrict row = args->rows[t] + at * args->step + c;
            for (size_t i = 0; i < n; i++)
                sum[i] += row[i];
        }
        int8_t *restrict out = to + c;
        for (size_t i = 0; i < n; i++) {
            const float v = (float)sum[i] * multiplier;
            if (args->real)
                ((float *)(void *)to)[c + i] = v;
            else
                out[i] = n8_round_s8(v, limits);
        }
    }
}

void n8_avgpool_s8_c(const struct n8_pool_args *args) {
    for (size_t p = 0; p < args->pixels; p++)
        pixel(args, p);
}
