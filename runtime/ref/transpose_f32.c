// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <string.h>

// Words, not floats: what moves may be a NaN, and lie anywhere.
static inline void move(uint8_t *to, size_t to_stride, const uint8_t *from, size_t from_stride,
                        size_t rows, size_t columns) {
    for (size_t c = 0; c < columns; c++)
        for (size_t r = 0; r < rows; r++)
            memcpy(to + c * to_stride + r * sizeof(float),
                   from + r * from_stride + c * sizeof(float), sizeof(float));
}

void n8_transpose_f32_c(void *out, size_t out_stride, const void *in, size_t in_stride, size_t rows,
                        size_t columns) {
    enum { TILE = 4 };
    uint8_t *to = out;
    const uint8_t *from = in;
    // In tiles, which caches like.
    for (size_t c = 0; c < columns; c += TILE)
        for (size_t r = 0; r < rows; r += TILE)
            move(to + c * out_stride + r * sizeof(float), out_stride,
                 from + r * in_stride + c * sizeof(float), in_stride,
                 rows - r < TILE ? rows - r : TILE, columns - c < TILE ? columns - c : TILE);
}
