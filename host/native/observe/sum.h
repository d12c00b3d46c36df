// SPDX-License-Identifier: Apache-2.0
//
// Exact sums over samples: integers of N8C_SUM_WORDS words, which count 2^-96. A sample's own sum
// is clamped to 2^127 and rounded to a multiple of 2^-96, ties to even; so it depends on nothing
// but the sample, and integers add up to the same in any order. Fewer than 2^32 samples of at most
// 2^127 * 2^96 = 2^223 stay below 2^255: nothing overflows.
#ifndef N8C_SUM_H
#define N8C_SUM_H

#include "neon8_calibrate.h"

#include <math.h>
#include <string.h>

// value: finite.
static inline void n8c_sum_add(uint64_t *sum, double value) {
    value = value > 0x1p127 ? 0x1p127 : value < -0x1p127 ? -0x1p127 : value;
    value *= 0x1p96; // exact
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t mantissa = (bits & 0xfffffffffffff) | UINT64_C(1) << 52;
    int shift = (int)(bits >> 52 & 0x7ff) - 1075;
    if (shift < 0) { // below 2^52, so perhaps no integer
        mantissa = (uint64_t)rint(fabs(value));
        shift = 0;
    }
    unsigned __int128 shifted = (unsigned __int128)mantissa << shift % 64;
    uint64_t words[N8C_SUM_WORDS] = {(uint64_t)shifted, (uint64_t)(shifted >> 64)};
    uint64_t sign = bits >> 63 ? UINT64_MAX : 0, carry = sign & 1; // -x is ~x + 1
    size_t first = (size_t)shift / 64;
    for (size_t i = 0; first + i < N8C_SUM_WORDS && (i < 2 || sign + carry != 0); i++) {
        uint64_t word = words[i] ^ sign, part = sum[first + i] + carry;
        carry = part < carry;
        sum[first + i] = part + word;
        carry += part + word < word;
    }
}

#endif // N8C_SUM_H
