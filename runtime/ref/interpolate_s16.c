// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

static int32_t within(int32_t v, int32_t lo, int32_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

void n8_interpolate_s16_c(const struct n8_interpolate_args *args) {
    const int32_t shift = args->shift, fraction = args->fraction, half = 1 << fraction >> 1;
    for (size_t i = 0; i < args->count; i++) {
        const int32_t q = within(args->in[i], args->in_lo, args->in_hi);
        const uint32_t at = (uint32_t)(q - args->in_lo);
        const int16_t *line = args->lines + (at >> shift) * 2;
        const int32_t share = (int32_t)(at << (15 - shift) & INT16_MAX); // of 2^15
        int32_t v = line[0] + ((line[1] * share + (1 << 14)) >> 15);
        v = (within(v, INT16_MIN, INT16_MAX) + half) >> fraction;
        args->out[i] = (int16_t)within(v, args->lo, args->hi);
    }
}
