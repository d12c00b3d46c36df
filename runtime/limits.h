// SPDX-License-Identifier: Apache-2.0
//
// The numbers that arithmetic is defined for (docs/numerics.md). NaN is in none of them.
#ifndef N8_LIMITS_H
#define N8_LIMITS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { N8_MOST_TAPS = 256 }; // of a resize, (17)

static inline bool n8_in_range(int32_t value, int32_t lo, int32_t hi) {
    return lo <= value && value <= hi;
}

// The scale of a tensor, (1).
static inline bool n8_scale_ok(float scale) {
    return scale >= 1e-30f && scale <= 1e30f;
}

// The bounds that keep requantization free of NaN and of denormals that count.
static inline bool n8_multiplier_ok(float multiplier) {
    return multiplier == 0.0f || (multiplier >= 1e-30f && multiplier <= 0x1p64f);
}

// The bias of a float output, (4). Units that flush denormals would lose one where the product is
// 0; with normal ones no sum is denormal, as products are 0 or at least 1e-30.
static inline bool n8_float_bias_ok(float bias) {
    return bias == 0.0f || isnormal(bias);
}

// Leaky, (5b).
static inline bool n8_slope_ok(float slope) {
    return fabsf(slope) <= 0x1p30f;
}

#endif // N8_LIMITS_H
