// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_normalize_s16_c(const struct n8_normalize_args *args) {
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    const int32_t factor = args->factor, shift = args->shift;
    const float rate = args->rate, slope = args->slope;
    const int16_t *restrict in = args->in;
    int16_t *restrict out = args->out;
    const float *restrict gain = args->gain, *restrict offset = args->offset;
    for (size_t i = 0; i < args->count; i++) {
        const float v = (float)(in[i] * factor - shift) * rate;
        out[i] = n8_round_s16(n8_leaky(v * gain[i] + offset[i], slope), limits);
    }
}
