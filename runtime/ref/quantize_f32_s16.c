// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_quantize_f32_s16_c(int16_t *restrict out, const float *restrict in, size_t count,
                           float inverse, int32_t zero_point, int32_t lo, int32_t hi) {
    const struct n8_bounds limits = n8_bounds_of(zero_point, lo, hi);
    for (size_t i = 0; i < count; i++)
        out[i] = n8_round_s16(in[i] * inverse, limits);
}
