// SPDX-License-Identifier: Apache-2.0
//
// (5d): where a kernel may requantize by one fused multiply-add, proved channel by channel.
#include "algorithm.h"

#include <math.h>

enum {
    MIDDLE = 3 << 22, // 1.5 * 2^23, a float32 between whose neighbours lies 1
    MIDDLE_BITS = 0x4b400000,
    HALF = 1 << 22, // what may be added to it and taken from it
};
#define NONE     UINT64_MAX
#define ROUNDING 0x1p-17 // of a float32 product below 256, at most

// The least x >= 0 with lo <= a x mod d <= hi, of 0 <= lo <= hi < d, a < d; NONE if there is none
// that could be used. As in Euclid's algorithm, a and d become d mod a and a.
static uint64_t first_between(uint64_t a, uint64_t d, uint64_t lo, uint64_t hi) {
    if (lo == 0) {
        return 0;
    }
    if (2 * a > d) { // downwards
        const uint64_t from = d - hi;
        hi = d - lo;
        lo = from;
        a = d - a;
    }
    if (a == 0) {
        return NONE;
    }
    const uint64_t x = (lo + a - 1) / a;
    if (a * x <= hi) {
        return x;
    }
    const uint64_t turns = first_between((a - d % a) % a, a, lo % a, hi % a);
    return turns > (UINT64_C(1) << 62) / d ? NONE : (lo + d * turns + a - 1) / a;
}

// An output channel as (5) sees it.
struct channel {
    float multiplier;
    int32_t least, most; // acc''
    int32_t lo, hi;      // of the output, less its zero point
};

// (5), less the zero point.
static int32_t requantize(const struct channel *c, int32_t sum) {
    const float v = rintf((float)sum * c->multiplier);
    if (v < (float)c->lo) {
        return c->lo;
    }
    return v > (float)c->hi ? c->hi : (int32_t)v;
}

// The open interval of what may be added to the exact product without changing a result.
static bool find_margin(const struct channel *c, double *low, double *high) {
    const double m = (double)c->multiplier, inverse = 1.0 / m;
    const int32_t first = requantize(c, c->least), last = requantize(c, c->most);
    *low = first > c->lo ? fmax(-m, first - 0.5 - c->least * m) : -m;
    *high = last < c->hi ? fmin(m, last + 0.5 - c->most * m) : m;
    for (int32_t q = first + 1; q <= last && *low < *high; q++) {
        // The least sum that gives q, and how far from it the exact product is, exactly.
        double sum = ceil((q - 0.5) * inverse), below = q - 0.5 - sum * m;
        if (below >= -ROUNDING || below + m <= ROUNDING) { // the product's rounding counts
            while (rintf((float)sum * c->multiplier) < (float)q) {
                sum++;
            }
            while (rintf((float)(sum - 1) * c->multiplier) >= (float)q) {
                sum--;
            }
            below = q - 0.5 - sum * m;
        }
        *low = below > *low ? below : *low;
        *high = below + m < *high ? below + m : *high;
    }
    return *low < *high;
}

bool n8_fuse_channel(float multiplier, int32_t bias, int64_t above, int64_t below,
                     const struct n8_conv2d_epilogue *e, int32_t *start, float *addend) {
    const int64_t most = bias + 127 * above + 128 * below;
    const int64_t least = bias - 128 * above - 127 * below;
    const double farthest = (double)(most > -least ? most : -least);
    if (farthest * (double)multiplier >= (double)N8_SMALL_RESULT || least <= -2 * HALF ||
        most >= 2 * HALF || most - least >= 2 * HALF) {
        return false;
    }
    *start = MIDDLE_BITS + bias;
    *addend = (float)(MIDDLE + e->zero_point);
    if (multiplier == 0.0f) {
        return true;
    }
    if (multiplier < 0x1p-22f || multiplier >= 1.0f) {
        return false;
    }
    const struct channel c = {.multiplier = multiplier,
                              .least = (int32_t)least,
                              .most = (int32_t)most,
                              .lo = e->lo - e->zero_point,
                              .hi = e->hi - e->zero_point};
    double low, high;
    if (!find_margin(&c, &low, &high)) {
        return false;
    }
    // multiplier = mantissa / 2^bits, and both ends of the interval are multiples of 1 / 2^bits.
    uint32_t binary;
    memcpy(&binary, &multiplier, sizeof binary);
    const uint64_t mantissa = (binary & 0x7fffff) | 0x800000;
    const int bits = 150 - (int)(binary >> 23);
    const uint64_t one = UINT64_C(1) << bits;
    const int64_t from = (int64_t)(low * (double)one) + 1, to = (int64_t)(high * (double)one) - 1;
    if (from > to) {
        return false;
    }
    // Sums are shifted by the least b for which the fraction of (MIDDLE + b) * multiplier lies
    // there.
    const int64_t b = -HALF - least;
    const uint64_t base = (uint64_t)(MIDDLE + b) * mantissa;
    const uint64_t lo = ((uint64_t)from - base) & (one - 1), span = (uint64_t)(to - from);
    const uint64_t x =
        lo + span >= one ? 0 : first_between(mantissa & (one - 1), one, lo, lo + span);
    if (x > (uint64_t)(HALF - 1 - most - b)) {
        return false;
    }
    const uint64_t product = base + x * mantissa;
    const int64_t added = from + (int64_t)((product - (uint64_t)from) & (one - 1));
    const int64_t whole = (int64_t)(product - (uint64_t)added) >> bits;
    *start += (int32_t)(b + (int64_t)x);
    *addend = (float)(MIDDLE + e->zero_point - whole);
    return true;
}

// The magnitudes of a channel's weights above 0, and of those below.
static void sum_weights(const int8_t *weights, size_t count, int64_t *above, int64_t *below) {
    *above = *below = 0;
    for (size_t i = 0; i < count; i++) {
        *above += weights[i] > 0 ? weights[i] : 0;
        *below -= weights[i] < 0 ? weights[i] : 0;
    }
}

size_t n8_conv_fuse(const struct n8_conv *conv, const int8_t *weights, size_t panel, int32_t *start,
                    float *addend) {
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t channels = (size_t)conv->shape.out_channels, each = channels / conv->groups;
    const size_t count = (size_t)conv->shape.kernel_height * (size_t)conv->shape.kernel_width *
                         (size_t)(conv->shape.in_channels / conv->shape.groups);
    size_t without = 0;
    for (size_t n = 0; n < channels;) {
        const size_t some = n8_smaller(panel, each - n % each);
        const size_t first = n / each * conv->group_entries + n % each;
        bool fuses = true;
        for (size_t i = 0; i < some && fuses; i++) {
            const size_t at = first + i;
            int64_t above, below;
            sum_weights(weights + (n + i) * count, count, &above, &below);
            fuses = n8_fuse_channel(e->multiplier[at], e->bias[at], above, below, e, &start[at],
                                    &addend[at]);
        }
        start[first] = fuses ? start[first] : 0;
        without += !fuses;
        n += some;
    }
    for (size_t i = 0; i < conv->group_entries * conv->groups; i++) {
        if (i % conv->group_entries >= each) { // what pads channels is the zero point
            start[i] = MIDDLE_BITS;
            addend[i] = (float)(MIDDLE + e->zero_point);
        }
    }
    return without;
}
