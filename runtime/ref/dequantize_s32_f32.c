// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

void n8_dequantize_s32_f32_c(float *restrict out, const int32_t *restrict in, size_t pixels,
                             size_t channels, const float *restrict scale,
                             const float *restrict bias) {
    for (size_t p = 0; p < pixels; p++, in += channels, out += channels) {
        for (size_t c = 0; c < channels; c++)
            out[c] = (float)in[c] * scale[c] + (bias ? bias[c] : 0.0f);
    }
}
