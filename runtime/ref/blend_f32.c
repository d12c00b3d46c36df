// SPDX-License-Identifier: Apache-2.0
#include "blend.h"
#include "floats.h"

void n8_blend_f32_c(const struct n8_blend_args *args) {
    const struct n8_blend_args p = *args;
    const float *restrict a = p.in[0], *restrict b = p.in[1];
    const float *restrict c = p.in[2], *restrict d = p.in[3];
    float *restrict out = p.out;
    for (size_t i = 0; i < p.channels; i++)
        out[i] = n8_one_nan(n8_blend(a[i], b[i], c[i], d[i], &p));
}
