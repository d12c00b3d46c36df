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

static inline void n8c_limbs_settle(int64_t *limbs) {
    for (size_t i = 0; i + 1 < N8C_LIMBS; i++) {
        int64_t rest = limbs[i] & 0xffffffff;
        limbs[i + 1] += (limbs[i] - rest) / ((int64_t)1 << 32); // exact
        limbs[i] = rest;
    }
}

#endif // N8C_LIMBS_H
