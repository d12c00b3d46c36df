// SPDX-License-Identifier: Apache-2.0
//
// What all steps in float32 agree on.
#ifndef N8_FLOATS_H
#define N8_FLOATS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// A NaN that is computed has the bits of this one: those that processors give differ.
static inline float n8_one_nan(float value) {
    return value != value ? NAN : value;
}

static inline bool n8_all_finite(const float *values, size_t count) {
    float sum = 0.0f; // 0 times what is not finite is NaN
    for (size_t i = 0; i < count; i++) {
        sum += 0.0f * values[i];
    }
    return sum == 0.0f;
}

#endif // N8_FLOATS_H
