// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

void n8_dequantize_s8_f32_c(float *restrict out, const int8_t *restrict in, size_t count,
                            float scale, int32_t zero_point) {
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(in[i] - zero_point) * scale;
}
