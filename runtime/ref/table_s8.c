// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

void n8_table_s8_c(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                   size_t pixels, size_t count, const int8_t *table) {
    for (size_t p = 0; p < pixels; p++, out += out_stride, in += in_stride) {
        for (size_t i = 0; i < count; i++)
            out[i] = table[in[i] + 128];
    }
}
