// SPDX-License-Identifier: Apache-2.0
#include "checkasm.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct range data_range(struct rng *rng, bool inside) {
    static const struct range common[] = {
        {0, -127, 127},    // symmetric
        {-128, -128, 127}, // unsigned
        {3, -128, 127},    // asymmetric
        {-128, -128, 20},  // unsigned with ReLU6
        {5, 5, 127},       // asymmetric with ReLU
        {127, -128, 127},  {0, 0, 0},
    };
    const uint32_t pick = rng_below(rng, 10);
    if (pick < sizeof common / sizeof common[0])
        return common[pick];
    struct range range;
    range.lo = rng_range(rng, -128, 127);
    range.hi = rng_range(rng, range.lo, 127);
    range.zero_point = inside ? rng_range(rng, range.lo, range.hi) : rng_range(rng, -128, 127);
    return range;
}

// Patterns: 0 noise; 1, 2 the largest sums of both signs; 3 alternating signs; 4 extremes in
// random order; 5 small sums.
void data_operands(struct rng *rng, int pattern, int8_t *in, size_t in_size, int8_t *weights,
                   size_t weights_size) {
    rng_bytes(rng, in, in_size);
    rng_bytes(rng, weights, weights_size);
    for (size_t i = 0; i < in_size; i++) {
        switch (pattern) {
        case 1:
        case 2:
            in[i] = -128;
            break;
        case 3:
            in[i] = i % 2 ? 127 : -128;
            break;
        case 4:
            in[i] = in[i] < 0 ? -128 : 127;
            break;
        case DATA_TIES:
            in[i] = (int8_t)(in[i] % 4);
            break;
        default:
            break;
        }
    }
    for (size_t i = 0; i < weights_size; i++) {
        switch (pattern) {
        case 1:
            weights[i] = 127;
            break;
        case 2:
            weights[i] = -127;
            break;
        case 3:
            weights[i] = i % 2 ? -127 : 127;
            break;
        case 4:
            weights[i] = weights[i] < 0 ? -127 : 127;
            break;
        case DATA_TIES:
            weights[i] = (int8_t)(weights[i] % 2);
            break;
        default:
            weights[i] = weights[i] == -128 ? -127 : weights[i];
            break;
        }
    }
}

// What the weights of products that are summed in int16 may add up to (11), with activations down
// to -128, and the largest one of four.
enum { INT16_REACH = INT16_MAX / 128, LARGEST_OF_FOUR = INT16_REACH / 4 };

// Scales a weight so that the largest four just fit.
void data_limit(int8_t *weight) {
    *weight = (int8_t)(*weight * LARGEST_OF_FOUR / 127);
}

// Every other channel has a single weight that is so far below zero that with the largest other
// one, or three, it reaches the limit exactly: -128 of two, -66 of four.
void data_lowest(struct rng *rng, int8_t *weight, bool deep) {
    if (rng_below(rng, 2))
        *weight = (int8_t)((deep ? 3 * LARGEST_OF_FOUR : 127) - INT16_REACH);
}

// `reach`: the largest |sum| without the bias; with it int32 still holds (12).
void data_bias(struct rng *rng, int pattern, int32_t *bias, size_t count, int64_t reach) {
    const int32_t limit = (int32_t)(INT32_MAX - reach);
    for (size_t i = 0; i < count; i++) {
        if (pattern == DATA_TIES)
            bias[i] = rng_below(rng, 2) ? rng_range(rng, -400, 400) : rng_range(rng, -40, 40);
        else if (rng_below(rng, 4) == 0)
            bias[i] = rng_below(rng, 2) ? limit : -limit;
        else
            bias[i] = rng_range(rng, -100000, 100000);
    }
}

// Up to the limits of small values in kernel.h: |sum| < sums and |v| < 32639 less `others`, where
// the products of a channel reach `reach`.
void data_small(struct rng *rng, int pattern, int32_t *bias, float *multiplier, int32_t sums,
                int32_t reach, float others) {
    const int32_t limit = sums - 1 - reach;
    const int32_t range = pattern == DATA_TIES ? 400 : limit;
    *bias = rng_below(rng, 4) == 0 ? (rng_below(rng, 2) ? limit : -limit)
                                   : rng_range(rng, -range, range);
    const float most = (32638.0f - others) / (float)(reach + (*bias < 0 ? -*bias : *bias));
    if (pattern == DATA_TIES)
        *multiplier =
            most >= 0.5f ? (rng_below(rng, 2) ? 0.5f : 1.0f / 6.0f) : ldexpf(1.0f, ilogbf(most));
    else if (rng_below(rng, 8) == 0)
        *multiplier = 1e-30f;
    else
        *multiplier = rng_below(rng, 2) ? most : rng_float(rng, 0.0f, most);
}

// Draws the scale of a residual, of small values; returns what a residual then adds at most.
float data_residual_scale(struct rng *rng, int pattern, float *scale) {
    const float most = 32000.0f / 255.0f;
    *scale = pattern == DATA_TIES     ? 0.5f
             : rng_below(rng, 2) == 0 ? most
                                      : rng_float(rng, 0.0f, most);
    return *scale * 255.0f;
}

// A sixth is rounded up, and so a product that rounds to x.5 is more than that before: a fused
// multiply-add, which skips that rounding (6), misses the tie.
void data_multipliers(struct rng *rng, int pattern, float *out, size_t count) {
    static const float ties[] = {0.5f, 0.25f, 1.5f, 1.0f, 1.0f / 6.0f, 1.0f / 6.0f};
    static const float extremes[] = {1e-30f, 0x1p64f, 1.0f, 0.0f, 1e-12f};
    for (size_t i = 0; i < count; i++) {
        if (pattern == DATA_TIES)
            out[i] = ties[rng_below(rng, sizeof ties / sizeof ties[0])];
        else if (rng_below(rng, 16) == 0)
            out[i] = extremes[rng_below(rng, 5)];
        else
            out[i] = ldexpf(rng_float(rng, 1.0f, 2.0f), rng_range(rng, -20, -6));
    }
}

// Biases of float outputs with these multipliers of their channels: among others 0 of both
// signs, the smallest there are, and those that leave of a product as little as there can be.
void data_float_biases(struct rng *rng, const float *multipliers, float *out, size_t count) {
    static const float special[] = {0.0f, -0.0f, FLT_MIN, -FLT_MIN, 1e-37f, FLT_MAX, -FLT_MAX};
    for (size_t i = 0; i < count; i++) {
        const uint32_t pick = rng_below(rng, 16);
        const float product = (float)rng_range(rng, -500, 500) * multipliers[i];
        if (pick < sizeof special / sizeof special[0])
            out[i] = special[pick];
        else if (pick < 10 && product != 0.0f)
            out[i] = nextafterf(product, rng_below(rng, 2) ? 0.0f : 2.0f * product);
        else
            out[i] = rng_float(rng, -1000.0f, 1000.0f);
    }
}

void data_floats(struct rng *rng, float *out, size_t count, float unit) {
    static const float special[] = {
        NAN,    -NAN,    INFINITY, -INFINITY, 0.0f,          -0.0f, FLT_MIN, -FLT_MIN,
        1e-45f, -1e-45f, FLT_MAX,  -FLT_MAX,  2147483648.0f, 1e10f, -1e10f,
    };
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        switch (rng_below(rng, 8)) {
        case 0:
            out[i] = special[rng_below(rng, sizeof special / sizeof special[0])];
            break;
        case 1:
            bits = (uint32_t)rng_next(rng);
            memcpy(&out[i], &bits, sizeof bits);
            break;
        case 2:
        case 3:
        case 4:
            out[i] = ((float)rng_range(rng, -300, 300) + 0.5f) * unit;
            break;
        default:
            out[i] = rng_float(rng, -200.0f, 200.0f) * unit;
            break;
        }
    }
}

// All of them one of the ends, or the ends among others; or of another magnitude.
void data_s16(struct rng *rng, int16_t *values, size_t count, int32_t lo, int32_t hi) {
    const uint32_t kind = rng_below(rng, 4), shift = 3 * rng_below(rng, 4);
    const int32_t end = rng_below(rng, 2) ? lo : hi;
    for (size_t i = 0; i < count; i++) {
        const bool ends = kind == 0 || (kind == 1 && rng_below(rng, 2));
        const int32_t own = kind == 0 || rng_below(rng, 2) ? end : lo + hi - end;
        values[i] = (int16_t)(ends ? own : rng_range(rng, lo >> shift, hi >> shift));
    }
}

// An accumulator: beyond what float holds, or of any magnitude.
int32_t data_sum(struct rng *rng) {
    static const int32_t special[] = {INT32_MIN, INT32_MAX, 16777217, -16777217, 33554435, 0, 1};
    const uint32_t pick = rng_below(rng, 14);
    return pick < 7 ? special[pick] : (int32_t)rng_next(rng) >> rng_below(rng, 24);
}

float data_slope(struct rng *rng) {
    static const float slopes[] = {0.0f, 1.0f, 0.5f, 0.01f, -1.0f, 0x1p30f};
    const uint32_t pick = rng_below(rng, 8);
    return pick < 6 ? slopes[pick] : rng_float(rng, -2.0f, 2.0f);
}

uint64_t data_int32(struct rng *rng, int32_t value) {
    return (rng_next(rng) << 32) | (uint32_t)value;
}

uint64_t data_float(struct rng *rng, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (rng_next(rng) << 32) | bits;
}
