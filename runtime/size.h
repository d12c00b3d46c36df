// SPDX-License-Identifier: Apache-2.0
//
// Sizes of memory, checked: a product that does not fit is SIZE_MAX, which no buffer has
// and which every later sum and product keeps.
#ifndef N8_SIZE_H
#define N8_SIZE_H

#include <stddef.h>
#include <stdint.h>

static inline size_t n8_mul(size_t a, size_t b) {
    if (a == SIZE_MAX || b == SIZE_MAX || (b != 0 && a > (SIZE_MAX - 1) / b)) {
        return SIZE_MAX;
    }
    return a * b;
}

static inline size_t n8_add(size_t a, size_t b) {
    return a >= SIZE_MAX - b ? SIZE_MAX : a + b;
}

static inline size_t n8_smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t n8_larger(size_t a, size_t b) {
    return a > b ? a : b;
}

// `count` strides, modulo what pointers have: as much as an image has where something is read
// there.
static inline ptrdiff_t n8_strides(ptrdiff_t stride, int64_t count) {
    return (ptrdiff_t)((size_t)stride * (size_t)count);
}

// For what runs once, when a model is opened, in files that are built to be fast.
#define N8_ONCE __attribute__((cold))

// Up to the next multiple of `unit`, a power of two.
static inline size_t n8_round_up(size_t a, size_t unit) {
    return a > SIZE_MAX - unit ? SIZE_MAX : (a + unit - 1) & ~(unit - 1);
}

// How many pieces of `unit`, which is not 0, cover `a`.
static inline size_t n8_pieces(size_t a, size_t unit) {
    return a == SIZE_MAX ? SIZE_MAX : a / unit + (a % unit != 0);
}

#endif // N8_SIZE_H
