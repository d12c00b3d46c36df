// SPDX-License-Identifier: Apache-2.0
#include "winograd.h"

#include <string.h>

enum { SIDE = N8_WINOGRAD_SIDE, LANES = N8_WINOGRAD_LANES };

// Eight values, which take one operation where the processor has vectors.
typedef int16_t lanes __attribute__((vector_size(LANES * sizeof(int16_t))));

static inline lanes load(const int8_t *from) {
    int16_t values[LANES];
    lanes it;
    for (size_t i = 0; i < LANES; i++) {
        values[i] = from[i];
    }
    memcpy(&it, values, sizeof it);
    return it;
}

static inline void store(int16_t *to, lanes values) {
    memcpy(to, &values, sizeof values);
}

// One direction of the transform from 3 taps at two points: |u| <= 7 |g| at most.
static inline void transform(lanes u[2], size_t pair, lanes g0, lanes g1, lanes g2) {
    if (pair == 1) {
        u[0] = 6 * g2;
        u[1] = 6 * g0;
    } else {
        const lanes ends = pair == 0 ? g0 + g2 : g0 + 4 * g2, middle = pair == 0 ? g1 : 2 * g1;
        u[0] = ends + middle;
        u[1] = ends - middle;
    }
}

void n8_winograd_weights_s8_c(int16_t *out, size_t plane, const int8_t *in, size_t depth,
                              size_t width, size_t pair) {
    for (size_t k = 0; k < depth; k++, in += N8_WINOGRAD_TAPS * LANES, out += width) {
        lanes rows[3][2], u[2];
        for (size_t x = 0; x < 3; x++) {
            transform(rows[x], pair, load(in + x * LANES), load(in + (3 + x) * LANES),
                      load(in + (6 + x) * LANES));
        }
        for (size_t i = 0; i < 2; i++) {
            for (size_t j = 0; j < SIDE; j += 2) {
                int16_t *to = out + (j < 4 ? 4 * i + j : 8 + 2 * i) * plane;
                transform(u, j / 2, rows[0][i], rows[1][i], rows[2][i]);
                store(to, u[0]);
                store(to + plane, u[1]);
            }
        }
    }
}
