// SPDX-License-Identifier: Apache-2.0
//
// Sigmoid and tanh of float32, (15): loops without branches, of which compilers make vectors, some
// side by side.
#include "elementary.h"

enum { BLOCK = 16 };

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// x, at least `least`, which is below 0, and at most `most`, which is above: compared as integers,
// as compilers then take the minima that processors have. NaN becomes one of the two.
static inline float within(float x, float least, float most) {
    const int32_t upper = (int32_t)bits_of(most);
    const int32_t bits = (int32_t)bits_of(x) < upper ? (int32_t)bits_of(x) : upper;
    return float_of((uint32_t)bits < bits_of(least) ? (uint32_t)bits : bits_of(least));
}

// e^-2x = q * (1 + c - h) / (1 + c + h). Here x, h and c are `unit` times as large, a power of two.
struct parts {
    float h, c, q;
};

static inline struct parts parts_of(float x, float unit) {
    const float magic = 12582912.0f + 127.0f; // with the bias of exponents
    const float shifted = magic - x * (0x1.715476p+1f / unit), k = magic - shifted;
    const float h = (x - k * (0x1.62e4p-2f * unit)) - k * (0x1.7f7d1cp-21f * unit), w = h * h;
    const float c = w * (0x1.555514p-2f / unit - w * (0x1.6a8b0cp-6f / (unit * unit * unit)));
    return (struct parts){h, c, float_of(bits_of(shifted) << 23)};
}

// Where the result would be denormal the divisor, four times as large as it needs to be, overflows.
static inline float sigmoid_of(float x) {
    const struct parts p = parts_of(2.0f * within(x, -88.0f, 20.0f), 4.0f);
    const float above = (4.0f + p.c) + p.h, below = (4.0f + p.c) - p.h;
    return above / (above + p.q * below);
}

static inline float tanh_of(float x) {
    const struct parts p = parts_of(within(x, -10.0f, 10.0f), 1.0f);
    const float u = 1.0f + p.q, v = p.q - 1.0f;
    return ((u * p.h - v * p.c) - v) / ((u * p.c - v * p.h) + u);
}

static inline void blocks(float *out, const float *in, size_t count, float function(float)) {
    for (; count >= BLOCK; count -= BLOCK, in += BLOCK, out += BLOCK) {
        float y[BLOCK];
        for (size_t i = 0; i < BLOCK; i++) {
            const uint32_t none = -(uint32_t)(in[i] != in[i]);
            y[i] = float_of((bits_of(function(in[i])) & ~none) | (bits_of(NAN) & none));
        }
        for (size_t i = 0; i < BLOCK; i++)
            out[i] = y[i];
    }
}

void n8_sigmoid_or_tanh(float *out, const float *in, size_t count, bool tanh) {
    const size_t left = count % BLOCK, whole = count - left;
    if (tanh)
        blocks(out, in, whole, tanh_of);
    else
        blocks(out, in, whole, sigmoid_of);
    if (left > 0) {
        float last[BLOCK] = {0};
        memcpy(last, in + whole, left * sizeof *in);
        n8_sigmoid_or_tanh(last, last, BLOCK, tanh);
        memcpy(out + whole, last, left * sizeof *out);
    }
}
