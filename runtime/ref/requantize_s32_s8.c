// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_requantize_s32_s8_c(int8_t *restrict out, const int32_t *restrict in, size_t pixels,
                            size_t channels, const float *restrict multiplier, int32_t zero_point,
                            int32_t lo, int32_t hi) {
    const struct n8_bounds limits = n8_bounds_of(zero_point, lo, hi);
    for (size_t p = 0; p < pixels; p++, in += channels, out += channels) {
        for (size_t c = 0; c < channels; c++)
            out[c] = n8_round_s8((float)in[c] * multiplier[c], limits);
    }
}
