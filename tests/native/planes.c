// SPDX-License-Identifier: Apache-2.0
//
// Planes and pixels: every value in its place, and nothing written beyond it or, where there is
// room, beyond that.
#include "move/planes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 19, MANY = 600, STRIDE = 4 * (MOST + 8), CANARY = 0x55 };

static struct n8_kernels kernels;

static void fill(uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 167 + (i >> 8));
}

// Value c of row r of `from` is value r of row c of `to`, of which `room` bytes may differ from
// before.
static bool is_misplaced(const uint8_t *to, size_t to_stride, size_t to_rows, size_t room,
                         const uint8_t *from, size_t from_stride, size_t rows, size_t columns,
                         size_t size) {
    for (size_t c = 0; c < to_rows; c++) {
        const uint8_t *row = to + c * to_stride;
        for (size_t r = 0; c < columns && r < rows; r++) {
            if (memcmp(row + r * size, from + r * from_stride + c * size, size) != 0)
                return true;
        }
        for (size_t i = c < columns ? room : 0; i < to_stride; i++) {
            if (row[i] != CANARY)
                return true;
        }
    }
    return false;
}

static bool is_wrong(size_t channels, size_t pixels, size_t size, size_t room) {
    static uint8_t from[MOST * STRIDE], to[MOST * STRIDE];
    fill(from, sizeof from);
    memset(to, CANARY, sizeof to);
    n8_interleave(&kernels, to, STRIDE, room, from, STRIDE, channels, pixels, size);
    if (is_misplaced(to, STRIDE, MOST, room, from, STRIDE, channels, pixels, size))
        return true;
    memset(to, CANARY, sizeof to);
    n8_deinterleave(&kernels, to, STRIDE, from, STRIDE, channels, pixels, size);
    return is_misplaced(to, STRIDE, MOST, pixels * size, from, STRIDE, pixels, channels, size);
}

// More pixels than a kernel is given at once.
static bool is_wrong_of_many(size_t channels, size_t size) {
    static uint8_t planes[MOST * MANY * 4], pixels[MANY * STRIDE];
    const size_t plane = MANY * size, values = channels * size;
    fill(planes, sizeof planes);
    memset(pixels, CANARY, sizeof pixels);
    n8_interleave(&kernels, pixels, STRIDE, values, planes, plane, channels, MANY, size);
    if (is_misplaced(pixels, STRIDE, MANY, values, planes, plane, channels, MANY, size))
        return true;
    memset(planes, CANARY, sizeof planes);
    n8_deinterleave(&kernels, planes, plane, pixels, STRIDE, channels, MANY, size);
    return is_misplaced(planes, plane, channels, plane, pixels, STRIDE, MANY, channels, size);
}

int main(void) {
    int failures = 0;
    if (n8_kernels_select(N8_ISA_AUTO, &kernels) != N8_OK)
        return 1;
    for (size_t channels = 1; channels <= MOST; channels++) {
        for (size_t size = 1; size <= 4; size += 3) {
            for (size_t pixels = 1; pixels <= MOST; pixels++) {
                for (size_t more = 0; more <= 8; more += 4) {
                    if (is_wrong(channels, pixels, size, channels * size + more)) {
                        printf("%zu x %zu of %zu bytes, %zu more\n", channels, pixels, size, more);
                        failures++;
                    }
                }
            }
            if (is_wrong_of_many(channels, size)) {
                printf("%zu x %d of %zu bytes\n", channels, MANY, size);
                failures++;
            }
        }
    }
    return failures != 0;
}
