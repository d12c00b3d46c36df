// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"
#include "tile_s8.h"

#include <string.h>

void n8_deinterleave_s8_c(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                          size_t channels, size_t pixels) {
    for (size_t p = 0; p < pixels; p += N8_TILE_ROWS) {
        const size_t count = pixels - p < N8_TILE_ROWS ? pixels - p : N8_TILE_ROWS;
        uint64_t rows[N8_TILE_ROWS] = {0};
        for (size_t i = 0; i < N8_TILE_ROWS && i < count; i++)
            memcpy(&rows[i], in + (p + i) * in_stride, sizeof rows[i]);
        n8_transpose_tile(rows);
        for (size_t c = 0; c < N8_TILE_ROWS && c < channels; c++)
            n8_copy_row(out + c * out_stride + p, &rows[c], count);
    }
}
