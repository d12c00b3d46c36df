// SPDX-License-Identifier: Apache-2.0
//
// Rounding, clamping and the leaky slope, once for all reference kernels, in a form that
// a compiler vectorizes for plain SSE2 and plain NEON.
#ifndef N8_REF_EPILOGUE_H
#define N8_REF_EPILOGUE_H

#include "kernel.h"

#include <string.h>

#define N8_INLINE static inline __attribute__((always_inline))

// Where all processors have another kernel in its place, one is built to be small.
#ifdef __OPTIMIZE_SIZE__
#define N8_FOR_SPEED 0
#else
#define N8_FOR_SPEED 1
#endif

// The limits of (2)(5)(6) in floats, moved by the zero point: these are integers, so
// clamp(rne(v) + zp, lo, hi) == rne(clamp(v, lo - zp, hi - zp)) + zp for every v.
struct n8_bounds {
    float lo, hi;
    int32_t zero_point;
};

N8_INLINE struct n8_bounds n8_bounds_of(int32_t zero_point, int32_t lo, int32_t hi) {
    return (struct n8_bounds){(float)(lo - zero_point), (float)(hi - zero_point), zero_point};
}

// clamp(rne(v) + zero_point, lo, hi), NaN as 0. Adding 1.5 * 2^23 leaves no bit for a
// fraction and the addition itself rounds half to even.
N8_INLINE int32_t n8_round(float v, struct n8_bounds limits) {
    const float magic = 12582912.0f;
    v = v == v ? v : 0.0f;
    v = v > limits.lo ? v : limits.lo;
    v = v < limits.hi ? v : limits.hi;
    return (int32_t)((v + magic) - magic) + limits.zero_point;
}

N8_INLINE int8_t n8_round_s8(float v, struct n8_bounds limits) {
    return (int8_t)n8_round(v, limits);
}

// Limits of 16 bits are less than 2^17 from a zero point.
N8_INLINE int16_t n8_round_s16(float v, struct n8_bounds limits) {
    return (int16_t)n8_round(v, limits);
}

// (5b): v < 0 ? v * slope : v. One of the terms is 0, so the sum is exact; written like this
// it needs no branch. 0 may lose its sign and NaN may become 0: the same to n8_round_s8.
N8_INLINE float n8_leaky(float v, float slope) {
    return (v > 0.0f ? v : 0.0f) + (v < 0.0f ? v : 0.0f) * slope;
}

// The body of a pointwise kernel: `out` becomes `v` of A and B, the values less their zero points,
// made leaky, rounded and clamped. A piece at a time, since `out` may be an operand.
#define N8_POINTWISE(args, type, round, v)                                                         \
    enum { PIECE = 256 / sizeof(type) };                                                           \
    const struct n8_bounds limits = n8_bounds_of((args)->zero_point, (args)->lo, (args)->hi);      \
    const float a_scale = (args)->a_scale, b_scale = (args)->b_scale, slope = (args)->slope;       \
    const int32_t a_zero_point = (args)->a_zero_point, b_zero_point = (args)->b_zero_point;        \
    type piece[PIECE];                                                                             \
    (void)a_scale, (void)b_scale;                                                                  \
    for (size_t done = 0; done < (args)->count; done += PIECE) {                                   \
        const type *a = (args)->a + done, *b = (args)->b + done;                                   \
        const size_t rest = (args)->count - done, count = rest < PIECE ? rest : PIECE;             \
        for (size_t i = 0; i < count; i++) {                                                       \
            const int32_t A = a[i] - a_zero_point, B = b[i] - b_zero_point;                        \
            piece[i] = round(n8_leaky(v, slope), limits);                                          \
        }                                                                                          \
        memcpy((args)->out + done, piece, count * sizeof *piece);                                  \
    }

#endif // N8_REF_EPILOGUE_H
