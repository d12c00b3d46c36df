// SPDX-License-Identifier: Apache-2.0
//
// Tiles and edges of a transposition: every value in its place, and nothing written beyond it or,
// where there is room, beyond that.
#include "transpose.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 19, STRIDE = 4 * (MOST + 8), CANARY = 0x55 };

static bool is_wrong(size_t rows, size_t columns, size_t size, size_t room) {
    static uint8_t from[MOST * STRIDE], to[MOST * STRIDE];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 167 + (i >> 8));
    memset(to, CANARY, sizeof to);
    n8_transpose(to, STRIDE, room, from, STRIDE, rows, columns, size);
    for (size_t c = 0; c < MOST; c++) {
        const uint8_t *row = to + c * STRIDE;
        for (size_t r = 0; c < columns && r < rows; r++) {
            if (memcmp(row + r * size, from + r * STRIDE + c * size, size) != 0)
                return true;
        }
        for (size_t i = c < columns ? room : 0; i < STRIDE; i++) {
            if (row[i] != CANARY)
                return true;
        }
    }
    return false;
}

int main(void) {
    int failures = 0;
    for (size_t rows = 1; rows <= MOST; rows++) {
        for (size_t columns = 1; columns <= MOST; columns++) {
            for (size_t size = 1; size <= 4; size += 3) {
                for (size_t more = 0; more <= 8; more += 4) {
                    if (is_wrong(rows, columns, size, rows * size + more)) {
                        printf("%zu x %zu of %zu bytes, %zu more\n", rows, columns, size, more);
                        failures++;
                    }
                }
            }
        }
    }
    return failures != 0;
}
