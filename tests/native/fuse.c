// SPDX-License-Identifier: Apache-2.0
//
// (5d): for random channels that one fused multiply-add serves, every sum they can reach.
#include "conv/algorithm.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t state = 1;

static uint32_t below(uint32_t end) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 32) * end >> 32);
}

static int32_t clamp(int32_t value, const struct n8_conv2d_epilogue *e) {
    return value < e->lo ? e->lo : value > e->hi ? e->hi : value;
}

// What a kernel makes of a sum, and whether that is (5).
static bool agrees(int32_t sum, int32_t bias, float multiplier, int32_t start, float addend,
                   const struct n8_conv2d_epilogue *e) {
    const int32_t bits = (int32_t)((uint32_t)start + (uint32_t)(sum - bias));
    float value;
    memcpy(&value, &bits, sizeof value);
    const float fused = fmaf(value, multiplier, addend);
    int32_t result;
    memcpy(&result, &fused, sizeof result);
    const int32_t expected = (int32_t)rintf((float)sum * multiplier) + e->zero_point;
    return clamp((int16_t)result, e) == clamp(expected, e);
}

int main(void) {
    enum { CHANNELS = 400 };
    int fused = 0;
    for (int i = 0; i < CHANNELS; i++) {
        const bool relu = below(2) == 0;
        const struct n8_conv2d_epilogue e = {.zero_point = relu ? -128 : (int32_t)below(256) - 128,
                                             .lo = below(4) == 0 ? -100 : -128,
                                             .hi = below(4) == 0 ? 90 : 127};
        const int64_t reach = 1 << below(15);
        const int64_t above = (int64_t)below((uint32_t)reach), under = reach - above;
        const int32_t bias = (int32_t)below(1 << 18) - (1 << 17);
        const float most = 32000.0f / (128.0f * (float)reach + fabsf((float)bias));
        const float mantissa = 1.0f + (float)below(1 << 23) * 0x1p-23f;
        float multiplier = ldexpf(mantissa, -(int)below(20));
        multiplier = below(20) == 0 ? 0.0f : below(3) == 0 ? 0x1p-8f : multiplier;
        if (multiplier > most) {
            continue;
        }
        int32_t start;
        float addend;
        if (!n8_fuse_channel(multiplier, bias, above, under, &e, &start, &addend)) {
            continue;
        }
        fused++;
        for (int64_t sum = bias - 128 * above - 127 * under;
             sum <= bias + 127 * above + 128 * under; sum++) {
            if (!agrees((int32_t)sum, bias, multiplier, start, addend, &e)) {
                printf("sum %d of bias %d, multiplier %a, zero point %d: another byte\n", (int)sum,
                       (int)bias, (double)multiplier, (int)e.zero_point);
                return 1;
            }
        }
    }
    printf("%d channels of %d\n", fused, CHANNELS);
    return fused > CHANNELS / 4 ? 0 : 1;
}
