// SPDX-License-Identifier: Apache-2.0
//
// Integers of N8C_LIMBS times 32 bits, in limbs that are not canonical until settled.
#ifndef N8C_LIMBS_H
#define N8C_LIMBS_H

#include "neon8_calibrate.h"

#include <math.h>
#include <string.h>

// So many samples may be added, and N8C_STAGED more, before a limb could overflow: each adds
// less than 2^34.
#define N8C_SUMS_MAX (UINT64_C(1) << 28)

// limbs += value / 2^N8C_GRID, rounded to an integer, ties to even. |value| < 2^318.
static inline void n8c_limbs_add(int64_t *limbs, double value) {
    double whole = value * 0x1p128;
    if (fabs(whole) < 0x1p52)
        whole = rint(whole);
    if (whole == 0)
        return;
    uint64_t bits;
    memcpy(&bits, &whole, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1075;
    uint64_t mantissa = (bits & 0xfffffffffffff) | UINT64_C(1) << 52;
    if (exponent < 0) { // an integer below 2^52
        mantissa >>= -exponent;
        exponent = 0;
    }
    size_t limb = (size_t)exponent / 32;
    int shift = exponent % 32;
    uint64_t low = (mantissa & 0xffffffff) << shift;
    uint64_t high = (mantissa >> 32) << shift;
    int64_t sign = bits >> 63 ? -1 : 1;
    limbs[limb] += sign * (int64_t)(low & 0xffffffff);
    limbs[limb + 1] += sign * (int64_t)((low >> 32) + (high & 0xffffffff));
    if (limb + 2 < N8C_LIMBS)
        limbs[limb + 2] += sign * (int64_t)(high >> 32);
}

// Adds `count` <= N8C_STAGED values, values[0], values[stride], and so on. They are nearly always
// of about the same size; then one integer of 128 bits holds their sum.
static inline void n8c_limbs_add_all(int64_t *limbs, const double *values, size_t stride,
                                     size_t count) {
    enum { SPREAD = 39 }; // 53 bits + 39 + 3 for N8C_STAGED + a shift below 32 leave the sign
    _Static_assert(N8C_STAGED <= 8, "more need more than 3 bits");
    int least = 2047, most = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i * stride], sizeof bits);
        int exponent = (int)(bits >> 52 & 0x7ff);
        least = exponent < least ? exponent : least;
        most = exponent > most ? exponent : most;
    }
    int at = least - 1075 - N8C_GRID; // of the lowest bit of all
    if (most - least > SPREAD || at < 0 || at / 32 + 3 >= N8C_LIMBS) {
        for (size_t i = 0; i < count; i++)
            n8c_limbs_add(limbs, values[i * stride]);
        return;
    }
    __int128 sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i * stride], sizeof bits);
        int shift = (int)(bits >> 52 & 0x7ff) - least;
        __int128 mantissa = (bits & 0xfffffffffffff) | UINT64_C(1) << 52;
        sum += (bits >> 63 ? -mantissa : mantissa) * ((__int128)1 << shift);
    }
    sum *= (__int128)1 << at % 32;
    limbs += at / 32;
    limbs[0] += (int64_t)(sum & 0xffffffff);
    limbs[1] += (int64_t)(sum >> 32 & 0xffffffff);
    limbs[2] += (int64_t)(sum >> 64 & 0xffffffff);
    limbs[3] += (int64_t)(sum >> 96);
}

static inline void n8c_limbs_settle(int64_t *limbs) {
    for (size_t i = 0; i + 1 < N8C_LIMBS; i++) {
        int64_t rest = limbs[i] & 0xffffffff;
        limbs[i + 1] += (limbs[i] - rest) / ((int64_t)1 << 32); // exact
        limbs[i] = rest;
    }
}

#endif // N8C_LIMBS_H
