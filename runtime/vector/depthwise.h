// SPDX-License-Identifier: Apache-2.0
//
// Rows of a depthwise convolution (5): 2 * N8_LANES channels at a time, taps two by two, whose
// products are added as pairs of 16-bit values. The weights of such channels are brought into that
// form once for a row.
#ifndef N8_VECTOR_DEPTHWISE_H
#define N8_VECTOR_DEPTHWISE_H

#include "vector.h"

#define N8_DEPTHWISE_BLOCK (2 * N8_LANES)
_Static_assert(N8_DEPTHWISE_BLOCK <= N8_SLACK, "read past a tensor");

// What a pair of taps adds to the sums of a block of channels.
N8_INLINE void n8_depthwise_pair(struct n8_two *sums, n8_s16s a, n8_s16s b, struct n8_two w) {
    const struct n8_two x = n8_pairs(a, b);
    sums->first = n8_add_products(sums->first, x.first, w.first);
    sums->second = n8_add_products(sums->second, x.second, w.second);
}

// The weights of taps t and t + 1 of a block, the latter 0 where there is none.
N8_INLINE struct n8_two n8_depthwise_weights(const int8_t *weights, size_t t, size_t taps) {
    const int8_t *w = weights + t * N8_DEPTHWISE_BLOCK;
    const n8_s16s none = {0};
    const n8_s16s second = t + 1 < taps ? n8_load_s8_as_s16(w + N8_DEPTHWISE_BLOCK) : none;
    return n8_pairs(n8_load_s8_as_s16(w), second);
}

// The entries of a block of channels, in the order of pairs.
struct n8_depthwise_channels {
    struct n8_two bias, multiplier, slope; // the latter two the bits of floats
};

// `array` has an entry for each channel of the block.
N8_INLINE struct n8_two n8_depthwise_entries(const void *array) {
    const char *from = array;
    struct n8_two entries;
    for (size_t i = 0; i < N8_LANES; i += 4) {
        memcpy((char *)&entries.first + 4 * i, from + 8 * i, 16);
        memcpy((char *)&entries.second + 4 * i, from + 8 * i + 16, 16);
    }
    return entries;
}

N8_INLINE n8_s32s n8_depthwise_round(n8_s32s sum, n8_s32s multiplier, n8_s32s slope, bool leaky,
                                     const struct n8_rounding *to) {
    n8_f32s v = n8_float(sum) * (n8_f32s)multiplier;
    if (leaky)
        v = n8_leaky_all(v, (n8_f32s)slope);
    return n8_round_all(v, to);
}

// Requantizes the sums of a block and stores the first `count` channels.
N8_INLINE void n8_depthwise_store(int8_t *out, struct n8_two sums,
                                  const struct n8_depthwise_channels *of, bool leaky,
                                  const struct n8_rounding *to, size_t count) {
    const struct n8_two rounded = {
        n8_depthwise_round(sums.first, of->multiplier.first, of->slope.first, leaky, to),
        n8_depthwise_round(sums.second, of->multiplier.second, of->slope.second, leaky, to),
    };
    const n8_s16s q = n8_halves(rounded);
    if (count >= N8_DEPTHWISE_BLOCK) {
        n8_store_s16_as_s8(out, q);
        return;
    }
    int8_t bytes[N8_DEPTHWISE_BLOCK];
    n8_store_s16_as_s8(bytes, q);
    memcpy(out, bytes, count);
}

N8_INLINE struct n8_depthwise_channels n8_depthwise_channels(const struct n8_depthwise_args *args,
                                                             size_t c) {
    struct n8_depthwise_channels of = {
        .bias = n8_depthwise_entries(args->bias + c),
        .multiplier = n8_depthwise_entries(args->multiplier + c),
    };
    of.slope = args->slope ? n8_depthwise_entries(args->slope + c) : of.multiplier;
    return of;
}

// A row of a kernel of `taps` taps in all, a constant, whose places under output 0 are in `places`.
N8_INLINE void n8_depthwise_row(const struct n8_depthwise_args *args, const int8_t *const *places,
                                size_t taps) {
    enum { MOST = 5 };
    const struct n8_rounding to = n8_rounding_of(args->zero_point, args->lo, args->hi);
    const bool leaky = args->slope;
    for (size_t c = 0; c < args->channels; c += N8_DEPTHWISE_BLOCK) {
        const struct n8_depthwise_channels of = n8_depthwise_channels(args, c);
        const int8_t *weights = args->weights + c * taps;
        struct n8_two w[MOST];
#pragma GCC unroll 5
        for (size_t t = 0; t < taps; t += 2)
            w[t / 2] = n8_depthwise_weights(weights, t, taps);
        int8_t *out = args->out + c;
        ptrdiff_t at = (ptrdiff_t)c;
        for (size_t p = 0; p < args->pixels; p++, at += args->step, out += args->out_stride) {
            struct n8_two sums = of.bias;
#pragma GCC unroll 5
            for (size_t t = 0; t < taps; t += 2) {
                const n8_s16s a = n8_load_s8_as_s16(places[t] + at);
                const n8_s16s b = t + 1 < taps ? n8_load_s8_as_s16(places[t + 1] + at) : a;
                n8_depthwise_pair(&sums, a, b, w[t / 2]);
            }
            n8_depthwise_store(out, sums, &of, leaky, &to, args->channels - c);
        }
    }
}

// For 3 x 3 taps.
N8_INLINE void n8_depthwise3x3(const struct n8_depthwise_args *args) {
    const int8_t *places[9];
    for (size_t t = 0; t < 9; t++)
        places[t] = args->rows[t / 3] + (ptrdiff_t)(t % 3) * args->tap_stride;
    n8_depthwise_row(args, places, 9);
}

#endif // N8_VECTOR_DEPTHWISE_H
