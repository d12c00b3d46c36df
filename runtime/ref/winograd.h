// SPDX-License-Identifier: Apache-2.0
//
// The transforms of Winograd F(4,3) in one direction (13), in the order of points of kernel.h:
// 1, -1, infinity, 0, 2, -2.
#ifndef N8_REF_WINOGRAD_H
#define N8_REF_WINOGRAD_H

#include "kernel.h"

enum {
    N8_WINOGRAD_SIDE = 6,
    N8_WINOGRAD_PLANES = 36,
    N8_WINOGRAD_OUT = 4,
    N8_WINOGRAD_TAPS = 9,
    N8_WINOGRAD_PAIRS = 3, // of rows of planes: their weights are made at once
    N8_WINOGRAD_LANES = 8, // channels of the output that are transformed at once
};

static inline size_t n8_winograd_plane(size_t i, size_t j) {
    return j < 4 ? 4 * i + j : 24 + 2 * i + j - 4;
}

// From 6 inputs, `step` apart, |d| <= x, to |v| <= 10 x.
static inline void n8_winograd_input(int32_t *v, const int32_t *d, size_t step) {
    const int32_t d0 = d[0], d1 = d[step], d2 = d[2 * step];
    const int32_t d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
    v[0] = d4 + d3 - 4 * (d1 + d2);
    v[1] = d4 - d3 + 4 * (d1 - d2);
    v[2] = 4 * d1 - 5 * d3 + d5;
    v[3] = 4 * d0 - 5 * d2 + d4;
    v[4] = d4 - d2 + 2 * (d3 - d1);
    v[5] = d4 - d2 - 2 * (d3 - d1);
}

// From 6 sums to 4 outputs, modulo 2^32, of which the last two lack a factor of 4.
static inline void n8_winograd_output(uint32_t *y, size_t step, const uint32_t *m) {
    const uint32_t s1 = m[0] + m[1], d1 = m[0] - m[1];
    const uint32_t s2 = m[4] + m[5], d2 = m[4] - m[5];
    y[0] = m[3] + s2 - 4 * s1;
    y[step] = 2 * d2 - 4 * d1;
    y[2 * step] = s2 - s1;
    y[3 * step] = 2 * d2 - d1 + m[2];
}

#endif // N8_REF_WINOGRAD_H
