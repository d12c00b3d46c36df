// SPDX-License-Identifier: Apache-2.0
//
// The transposition of 8x8 bytes in words, which are little-endian rows.
#ifndef N8_REF_TILE_S8_H
#define N8_REF_TILE_S8_H

#include <stddef.h>
#include <stdint.h>

#include <string.h>

enum { N8_TILE_ROWS = 8 };

// The first `count` bytes of a row.
static inline void n8_copy_row(void *to, const void *from, size_t count) {
    if (count == N8_TILE_ROWS) {
        memcpy(to, from, N8_TILE_ROWS);
    } else {
        memcpy(to, from, count);
    }
}

// Swaps the upper right quarter of a tile with the lower left one: the bytes of `mask`, moved up,
// of `a`, and those of `b`.
static inline void n8_swap_quarters(uint64_t *a, uint64_t *b, unsigned bits, uint64_t mask) {
    const uint64_t change = (*a >> bits ^ *b) & mask;
    *b ^= change;
    *a ^= change << bits;
}

static inline void n8_transpose_tile(uint64_t *rows) {
    for (size_t i = 0; i < 4; i++) {
        n8_swap_quarters(&rows[i], &rows[i + 4], 32, 0x00000000ffffffff);
    }
    for (size_t i = 0; i < 4; i++) {
        uint64_t *row = &rows[i / 2 * 4 + i % 2];
        n8_swap_quarters(row, row + 2, 16, 0x0000ffff0000ffff);
    }
    for (size_t i = 0; i < N8_TILE_ROWS; i += 2) {
        n8_swap_quarters(&rows[i], &rows[i + 1], 8, 0x00ff00ff00ff00ff);
    }
}

#endif // N8_REF_TILE_S8_H
