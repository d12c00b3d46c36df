// SPDX-License-Identifier: Apache-2.0
#include "transpose.h"

#include <string.h>

enum {
    BYTES = 8,  // rows and columns of a tile of bytes, each row a word
    FLOATS = 4, // of a tile of floats
};

// Swaps the upper right quarter of a tile with the lower left one: the bytes of `mask`, moved up,
// of `a`, and those of `b`. A row is a little-endian word.
#define SWAP(a, b, bits, mask)                                                                     \
    do {                                                                                           \
        const uint64_t change = ((a) >> (bits) ^ (b)) & (mask);                                    \
        (b) ^= change;                                                                             \
        (a) ^= change << (bits);                                                                   \
    } while (0)

// Columns c .. c + 7 of eight rows, of which only the first `count` are not 0, 4 or 8.
static inline __attribute__((always_inline)) void
transpose_bytes(uint8_t *to, size_t to_stride, const uint8_t *const *rows, size_t c, size_t count) {
    const uint64_t quarters = 0x00000000ffffffff, pairs = 0x0000ffff0000ffff,
                   bytes = 0x00ff00ff00ff00ff;
    uint64_t r[BYTES] = {0};
    for (size_t i = 0; i < count; i++) {
        memcpy(&r[i], rows[i] + c, sizeof r[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        SWAP(r[i], r[i + 4], 32, quarters);
    }
    for (size_t i = 0; i < 4; i++) {
        SWAP(r[i / 2 * 4 + i % 2], r[i / 2 * 4 + i % 2 + 2], 16, pairs);
    }
    for (size_t i = 0; i < BYTES; i += 2) {
        SWAP(r[i], r[i + 1], 8, bytes);
    }
    for (size_t i = 0; i < BYTES; i++) {
        memcpy(to + (c + i) * to_stride, &r[i], sizeof r[i]);
    }
}

// Value by value; `size` is a constant wherever this is called.
static inline __attribute__((always_inline)) void transpose_rest(uint8_t *to, size_t to_stride,
                                                                 const uint8_t *from,
                                                                 size_t from_stride, size_t rows,
                                                                 size_t columns, size_t size) {
    for (size_t c = 0; c < columns; c++) {
        for (size_t r = 0; r < rows; r++) {
            memcpy(to + c * to_stride + r * size, from + r * from_stride + c * size, size);
        }
    }
}

// Up to eight rows, in tiles: returns how many columns of them are done. None where a word of a
// column has no room.
static size_t transpose_rows(uint8_t *to, size_t to_stride, size_t room, const uint8_t *from,
                             size_t from_stride, size_t rows, size_t columns) {
    const uint8_t *at[BYTES];
    size_t done = 0;
    for (size_t i = 0; i < BYTES; i++) {
        at[i] = from + (i < rows ? i : rows - 1) * from_stride;
    }
    if (room >= BYTES && rows <= BYTES / 2) {
        for (; columns - done >= BYTES; done += BYTES) {
            transpose_bytes(to, to_stride, at, done, BYTES / 2);
        }
    } else if (room >= BYTES) {
        for (; columns - done >= BYTES; done += BYTES) {
            transpose_bytes(to, to_stride, at, done, BYTES);
        }
    }
    return done;
}

static inline void transpose_floats(uint8_t *to, size_t to_stride, const uint8_t *from,
                                    size_t from_stride) {
    uint32_t values[FLOATS][FLOATS];
    for (size_t r = 0; r < FLOATS; r++) {
        for (size_t c = 0; c < FLOATS; c++) {
            memcpy(&values[c][r], from + r * from_stride + c * sizeof(uint32_t), sizeof(uint32_t));
        }
    }
    for (size_t c = 0; c < FLOATS; c++) {
        memcpy(to + c * to_stride, values[c], sizeof values[c]);
    }
}

// In tiles, and the edges value by value.
static void transpose_words(uint8_t *to, size_t to_stride, const uint8_t *from, size_t from_stride,
                            size_t rows, size_t columns) {
    const size_t size = sizeof(uint32_t);
    const size_t whole_rows = rows - rows % FLOATS, whole = columns - columns % FLOATS;
    for (size_t c = 0; c < whole; c += FLOATS) {
        for (size_t r = 0; r < whole_rows; r += FLOATS) {
            transpose_floats(to + c * to_stride + r * size, to_stride,
                             from + r * from_stride + c * size, from_stride);
        }
    }
    transpose_rest(to + whole_rows * size, to_stride, from + whole_rows * from_stride, from_stride,
                   rows - whole_rows, whole, size);
    transpose_rest(to + whole * to_stride, to_stride, from + whole * size, from_stride, rows,
                   columns - whole, size);
}

void n8_transpose(uint8_t *to, size_t to_stride, size_t room, const uint8_t *from,
                  size_t from_stride, size_t rows, size_t columns, size_t size) {
    if (size != 1) {
        transpose_words(to, to_stride, from, from_stride, rows, columns);
        return;
    }
    const size_t whole = rows - rows % BYTES;
    size_t done = 0;
    for (size_t r = 0; r < whole; r += BYTES) {
        done = transpose_rows(to + r, to_stride, room - r, from + r * from_stride, from_stride,
                              BYTES, columns);
    }
    transpose_rest(to + done * to_stride, to_stride, from + done, from_stride, whole,
                   columns - done, 1);
    if (whole < rows) {
        to += whole;
        from += whole * from_stride;
        done =
            transpose_rows(to, to_stride, room - whole, from, from_stride, rows - whole, columns);
        transpose_rest(to + done * to_stride, to_stride, from + done, from_stride, rows - whole,
                       columns - done, 1);
    }
}
