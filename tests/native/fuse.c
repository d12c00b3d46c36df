// SPDX-License-Identifier: Apache-2.0
//
// (5d): for random channels that one fused multiply-add serves, every sum they can reach.
#include "conv/algorithm.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const uint64_t DIGEST = UINT64_C(0x7abde47db2a2f985);

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

// The same channels as in tests/host/quant/test_fused.py; two of three are proved.
struct channel {
    float multiplier;
    int32_t bias;
    int64_t above, under;
    struct n8_conv2d_epilogue e;
};

static struct channel draw(void) {
    struct channel c = {0};
    c.e.lo = below(4) == 0 ? -100 : -128;
    c.e.hi = below(4) == 0 ? 90 : 127;
    c.e.zero_point = below(2) == 0 ? -128 : (int32_t)below(256) - 128;
    const uint32_t reach = UINT32_C(1) << below(15);
    c.above = below(reach);
    c.under = reach - c.above;
    c.bias = (int32_t)below(1 << 18) - (1 << 17);
    const uint32_t exponent = 104 + below(24), mantissa = below(1 << 23);
    const uint32_t bits = exponent << 23 | (below(3) == 0 ? 0 : mantissa);
    memcpy(&c.multiplier, &bits, sizeof bits);
    return c;
}

static int64_t last_sum(const struct channel *c) {
    return c->bias + 127 * c->above + 128 * c->under;
}

static int64_t first_sum(const struct channel *c) {
    return c->bias - 128 * c->above - 127 * c->under;
}

static int64_t farthest(const struct channel *c) {
    return last_sum(c) > -first_sum(c) ? last_sum(c) : -first_sum(c);
}

static bool all_agree(const struct channel *c, int32_t start, float addend) {
    for (int64_t sum = first_sum(c); sum <= last_sum(c); sum++) {
        if (!agrees((int32_t)sum, c->bias, c->multiplier, start, addend, &c->e)) {
            printf("sum %d of bias %d, multiplier %a, zero point %d: another byte\n", (int)sum,
                   (int)c->bias, (double)c->multiplier, (int)c->e.zero_point);
            return false;
        }
    }
    return true;
}

int main(void) {
    // Its numbers are the same everywhere, and fmaf() is slow where no instruction does it.
    enum { CHANNELS = 4000, TRIED = sizeof(void *) == 8 ? 600 : 40 };
    const double most = 32638 * 127 / 128; // results that the compiler admits, which is stricter
    int fused = 0;
    uint64_t digest = 0;
    for (int i = 0; i < CHANNELS; i++) {
        const struct channel c = draw();
        int32_t start = 0;
        float addend = 0.0f;
        const bool holds =
            n8_fuse_channel(c.multiplier, c.bias, c.above, c.under, &c.e, &start, &addend);
        fused += holds;
        if (holds && i < TRIED && !all_agree(&c, start, addend)) {
            return 1;
        }
        const bool same = holds && (double)c.multiplier * (double)farthest(&c) < most;
        digest = (digest ^ (same ? (uint32_t)start : 0)) * UINT64_C(0x100000001b3);
        digest = (digest ^ (same ? (uint32_t)(int32_t)addend : 0)) * UINT64_C(0x100000001b3);
    }
    printf("%d channels of %d, digest %#llx\n", fused, CHANNELS, (unsigned long long)digest);
    return digest == DIGEST && fused > CHANNELS / 4 ? 0 : 1;
}
