// SPDX-License-Identifier: Apache-2.0
#ifndef N8C_LOG_H
#define N8C_LOG_H

#include <stdint.h>
#include <string.h>

// ln(x) of a positive, normal x to within 2 units in the last place, in the same arithmetic
// everywhere: C libraries differ. 2 atanh((m - 1) / (m + 1)) of the mantissa near 1.
static inline double n8c_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    // The exponent of x / sqrt(1/2), so that the mantissa lies around 1.
    uint64_t moved = bits - UINT64_C(0x3fe6a09e667f3bcd);
    int64_t exponent = (int64_t)moved >> 52;
    bits -= moved & UINT64_C(0xfff0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1) / (m + 1), z = s * s;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    double tail = s * z * p;
    return (double)exponent * 0.69314718055994531 + 2 * (s + tail);
}

#endif // N8C_LOG_H
