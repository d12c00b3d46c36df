// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

enum { COLUMNS = 8 };

void n8_tables_s8_c(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                    size_t pixels, const int8_t *const *tables) {
    const int8_t *table[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++)
        table[i] = tables[i] + 128;
    for (size_t p = 0; p < pixels; p++, out += out_stride, in += in_stride) {
#pragma GCC unroll 8
        for (size_t i = 0; i < COLUMNS; i++)
            out[i] = table[i][in[i]];
    }
}
