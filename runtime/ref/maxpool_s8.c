// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

#define BLOCK 64

static void pixel(const struct n8_pool_args *args, size_t at) {
    const int8_t lo = (int8_t)args->lo, hi = (int8_t)args->hi;
    for (size_t c = 0; c < args->channels; c += BLOCK) {
        const size_t n = args->channels - c < BLOCK ? args->channels - c : BLOCK;
        int8_t best[BLOCK];
        for (size_t i = 0; i < n; i++)
            best[i] = lo;
        for (size_t t = 0; t < args->taps; t++) {
            const int8_t *restrict row = args->rows[t] + at * args->step + c;
            for (size_t i = 0; i < n; i++)
                best[i] = row[i] > best[i] ? row[i] : best[i];
        }
        int8_t *restrict out = args->out + at * args->out_stride + c;
        for (size_t i = 0; i < n; i++)
            out[i] = best[i] < hi ? best[i] : hi;
    }
}

void n8_maxpool_s8_c(const struct n8_pool_args *args) {
    for (size_t p = 0; p < args->pixels; p++)
        pixel(args, p);
}
