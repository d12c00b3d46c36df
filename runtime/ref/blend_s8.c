// SPDX-License-Identifier: Apache-2.0
#include "blend.h"

void n8_blend_s8_c(const struct n8_blend_args *args) {
    const struct n8_blend_args p = *args;
    const struct n8_bounds limits = n8_bounds_of(p.zero_point, p.lo, p.hi);
    const int8_t *restrict a = p.in[0], *restrict b = p.in[1];
    const int8_t *restrict c = p.in[2], *restrict d = p.in[3];
    const int32_t zero = p.in_zero_point;
    int8_t *restrict out = p.out;
    for (size_t i = 0; i < p.channels; i++) {
        const float v = n8_blend((float)(a[i] - zero), (float)(b[i] - zero), (float)(c[i] - zero),
                                 (float)(d[i] - zero), &p);
        out[i] = n8_round_s8(v * p.scale, limits);
    }
}
