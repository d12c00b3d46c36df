// SPDX-License-Identifier: Apache-2.0
#include "widen.h"

#include <string.h>

enum { MANY = 32, FEW = 8 }; // values that take few operations where the processor has vectors

// Counts are constants wherever these are called, for vectors.
static inline __attribute__((always_inline)) void widen(int16_t *restrict to,
                                                        const int8_t *restrict from, size_t count) {
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
    }
}

static inline __attribute__((always_inline)) void
narrow(int8_t *restrict to, const int16_t *restrict from, size_t count) {
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++) {
        to[i] = (int8_t)from[i];
    }
}

void n8_widen(int16_t *to, const void *from, size_t count, enum n8_type type) {
    if (type == N8_TYPE_S16) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    const int8_t *bytes = from;
    for (; count >= MANY; count -= MANY, to += MANY, bytes += MANY) {
        widen(to, bytes, MANY);
    }
    for (; count >= FEW; count -= FEW, to += FEW, bytes += FEW) {
        widen(to, bytes, FEW);
    }
    for (; count > 0; count--) {
        *to++ = *bytes++;
    }
}

void n8_narrow(void *to, const int16_t *from, size_t count, enum n8_type type) {
    if (type == N8_TYPE_S16) {
        memcpy(to, from, count * sizeof *from);
        return;
    }
    int8_t *bytes = to;
    for (; count >= MANY; count -= MANY, bytes += MANY, from += MANY) {
        narrow(bytes, from, MANY);
    }
    for (; count >= FEW; count -= FEW, bytes += FEW, from += FEW) {
        narrow(bytes, from, FEW);
    }
    for (; count > 0; count--) {
        *bytes++ = (int8_t)*from++;
    }
}
