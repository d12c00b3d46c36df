// SPDX-License-Identifier: Apache-2.0
#ifndef N8C_ACTIVATE_H
#define N8C_ACTIVATE_H

// min(max(x < 0 ? x * slope : x, lo), hi); NaN stays NaN.
static inline float n8c_activate(float x, float slope, float lo, float hi) {
    x = x < 0 ? x * slope : x;
    x = x < lo ? lo : x;
    return x > hi ? hi : x;
}

#endif // N8C_ACTIVATE_H
