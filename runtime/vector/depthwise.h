// SPDX-License-Identifier: Apache-2.0
//
// Rows of a depthwise convolution (5): 2 * N8_LANES channels at a time, taps two by two, whose
// products are added as pairs of 16-bit values. The weights of such channels are brought into that
// form once for a row. They lie in blocks of 8 channels, as many as a pixel's are a multiple of, so
// that nothing after a pixel is read: it may be a slice between others.
#ifndef N8_VECTOR_DEPTHWISE_H
#define N8_VECTOR_DEPTHWISE_H

#include "vector.h"

#define N8_DEPTHWISE_BLOCK 8
#define N8_DEPTHWISE_ONCE  (2 * N8_LANES) // channels

// What a pair of taps adds to the sums of channels.
N8_INLINE void n8_depthwise_pair(struct n8_two *sums, n8_s16s a, n8_s16s b, struct n8_two w) {
    const struct n8_two x = n8_pairs(a, b);
    sums->first = n8_add_products(sums->first, x.first, w.first);
    sums->second = n8_add_products(sums->second, x.second, w.second);
}

// The first `count` channels of a pixel, as far as there are so many at once; the others are 0.
N8_INLINE n8_s16s n8_depthwise_load(const int8_t *from, size_t count) {
#if N8_LANES == 16
    if (count < N8_DEPTHWISE_ONCE) {
        const __mmask32 some = (__mmask32)((1ull << count) - 1);
        return (n8_s16s)_mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(some, from));
    }
#elif N8_LANES == 8
    if (count < N8_DEPTHWISE_ONCE) {
        const __m128i half = _mm_loadl_epi64((const __m128i *)(const void *)from);
        return (n8_s16s)_mm256_cvtepi8_epi16(half);
    }
#endif
    return n8_load_s8_as_s16(from);
}

// The weights of tap t of `count` channels.
N8_INLINE n8_s16s n8_depthwise_tap(const int8_t *weights, size_t t, size_t taps, size_t count) {
    int64_t blocks[N8_DEPTHWISE_ONCE / N8_DEPTHWISE_BLOCK] = {0};
#pragma GCC unroll 4
    for (size_t i = 0; i < N8_DEPTHWISE_ONCE / N8_DEPTHWISE_BLOCK; i++) {
        if (i * N8_DEPTHWISE_BLOCK < count)
            memcpy(&blocks[i], weights + (i * taps + t) * N8_DEPTHWISE_BLOCK, sizeof blocks[i]);
    }
    return n8_load_s8_as_s16((const int8_t *)(const void *)blocks);
}

// The weights of taps t and t + 1, the latter 0 where there is none.
N8_INLINE struct n8_two n8_depthwise_weights(const int8_t *weights, size_t t, size_t taps,
                                             size_t count) {
    const n8_s16s none = {0};
    const n8_s16s second = t + 1 < taps ? n8_depthwise_tap(weights, t + 1, taps, count) : none;
    return n8_pairs(n8_depthwise_tap(weights, t, taps, count), second);
}

// The entries of channels, in the order of pairs.
struct n8_depthwise_channels {
    struct n8_two bias, multiplier, slope; // the latter two the bits of floats
};

// `array` has an entry for each of `count` channels.
N8_INLINE struct n8_two n8_depthwise_entries(const void *array, size_t count) {
    const char *from = array;
    struct n8_two entries = {{0}, {0}};
#pragma GCC unroll 4
    for (size_t i = 0; i < N8_LANES; i += 4) {
        if (2 * i < count) {
            memcpy((char *)&entries.first + 4 * i, from + 8 * i, 16);
            memcpy((char *)&entries.second + 4 * i, from + 8 * i + 16, 16);
        }
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

// Requantizes sums and stores the first `count` channels.
N8_INLINE void n8_depthwise_store(int8_t *out, struct n8_two sums,
                                  const struct n8_depthwise_channels *of, bool leaky,
                                  const struct n8_rounding *to, size_t count) {
    const struct n8_two rounded = {
        n8_depthwise_round(sums.first, of->multiplier.first, of->slope.first, leaky, to),
        n8_depthwise_round(sums.second, of->multiplier.second, of->slope.second, leaky, to),
    };
    const n8_s16s q = n8_halves(rounded);
    if (count >= N8_DEPTHWISE_ONCE) {
        n8_store_s16_as_s8(out, q);
        return;
    }
    int8_t bytes[N8_DEPTHWISE_ONCE];
    n8_store_s16_as_s8(bytes, q);
    memcpy(out, bytes, count);
}

N8_INLINE struct n8_depthwise_channels n8_depthwise_channels(const struct n8_depthwise_args *args,
                                                             size_t c) {
    const size_t count = args->channels - c;
    struct n8_depthwise_channels of = {
        .bias = n8_depthwise_entries(args->bias + c, count),
        .multiplier = n8_depthwise_entries(args->multiplier + c, count),
    };
    of.slope = args->slope ? n8_depthwise_entries(args->slope + c, count) : of.multiplier;
    return of;
}

// The channels from c on, `count` of them, of a row as below.
N8_INLINE void n8_depthwise_part(const struct n8_depthwise_args *args, const int8_t *const *places,
                                 size_t taps, size_t c, size_t count) {
    enum { MOST = 5 };
    const struct n8_rounding to = n8_rounding_of(args->zero_point, args->lo, args->hi);
    const bool leaky = args->slope;
    const struct n8_depthwise_channels of = n8_depthwise_channels(args, c);
    const int8_t *weights = args->weights + c * taps;
    struct n8_two w[MOST];
#pragma GCC unroll 5
    for (size_t t = 0; t < taps; t += 2)
        w[t / 2] = n8_depthwise_weights(weights, t, taps, count);
    int8_t *out = args->out + c;
    ptrdiff_t at = (ptrdiff_t)c;
    for (size_t p = 0; p < args->pixels; p++, at += args->step, out += args->out_stride) {
        struct n8_two sums = of.bias;
#pragma GCC unroll 5
        for (size_t t = 0; t < taps; t += 2) {
            const n8_s16s a = n8_depthwise_load(places[t] + at, count);
            const n8_s16s b = t + 1 < taps ? n8_depthwise_load(places[t + 1] + at, count) : a;
            n8_depthwise_pair(&sums, a, b, w[t / 2]);
        }
        n8_depthwise_store(out, sums, &of, leaky, &to, count);
    }
}

// A row of a kernel of `taps` taps in all, a constant, whose places under output 0 are in `places`.
N8_INLINE void n8_depthwise_row(const struct n8_depthwise_args *args, const int8_t *const *places,
                                size_t taps) {
    size_t c = 0;
    for (; c + N8_DEPTHWISE_ONCE <= args->channels; c += N8_DEPTHWISE_ONCE)
        n8_depthwise_part(args, places, taps, c, N8_DEPTHWISE_ONCE);
    if (c < args->channels)
        n8_depthwise_part(args, places, taps, c, args->channels - c);
}

// For 3 x 3 taps.
N8_INLINE void n8_depthwise3x3(const struct n8_depthwise_args *args) {
    const int8_t *places[9];
    for (size_t t = 0; t < 9; t++)
        places[t] = args->rows[t / 3] + (ptrdiff_t)(t % 3) * args->tap_stride;
    n8_depthwise_row(args, places, 9);
}

#endif // N8_VECTOR_DEPTHWISE_H
