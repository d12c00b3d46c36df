// SPDX-License-Identifier: Apache-2.0
//
// The implicit GEMM (3)(12) of the levels of vectors; the kernels differ in what becomes of the
// sums, which is a constant wherever this is inlined.
//
// A tile is N8_IGEMM_MR pixels x N8_IGEMM_VECTORS registers of channels. Its sums stay in
// registers, weights are loaded as they lie, and each step multiplies them by the same kr bytes of
// a pixel in all lanes:
//
//   kr = 4, VNNI      vpdpbusd adds four products of unsigned by signed bytes, exactly. x ^ 0x80 is
//                     x + 128 as an unsigned byte, so that sums begin with bias - 128 * sum of w,
//                     modulo 2^32, and end as acc''.
//   kr = 2, others    both are widened to 16 bits, and pmaddwd adds two products, exactly, which
//                     int32 holds whatever they are. (pmaddubsw would saturate.) The rows of a tile
//                     are widened once for a panel, BLOCK bytes at a time.
#ifndef N8_VECTOR_IGEMM_H
#define N8_VECTOR_IGEMM_H

#include "vector.h"

enum n8_igemm_kind { N8_IGEMM_S32, N8_IGEMM_F32, N8_IGEMM_S8, N8_IGEMM_S8_ADD };

// The geometry of the rows of kernels.inc.
#define N8_IGEMM_VECTORS 2
#define N8_IGEMM_NR      (N8_IGEMM_VECTORS * N8_LANES)
#if defined(__AVX512VNNI__)
#define N8_IGEMM_MR 8
#define N8_IGEMM_KR 4
#else
#define N8_IGEMM_MR 4
#define N8_IGEMM_KR 2
#endif

typedef n8_s32s n8_igemm_sums[N8_IGEMM_MR][N8_IGEMM_VECTORS];

#if defined(__AVX512VNNI__)

N8_INLINE n8_s32s n8_igemm_multiply(n8_s32s sum, n8_s32s x, n8_s32s w) {
    return (n8_s32s)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
}

// Register v of a step of a panel.
N8_INLINE n8_s32s n8_load_panel(const int8_t *weights, size_t v) {
    n8_s32s w;
    memcpy(&w, weights + v * sizeof w, sizeof w);
    return w;
}

// The products of one tap.
N8_INLINE void n8_igemm_tap(n8_igemm_sums sums, size_t rows, const int8_t *const *row,
                            const int8_t *weights, size_t depth) {
    for (size_t k = 0; k < depth; k += N8_IGEMM_KR) {
        n8_s32s w[N8_IGEMM_VECTORS];
#pragma GCC unroll 2
        for (size_t v = 0; v < N8_IGEMM_VECTORS; v++)
            w[v] = n8_load_panel(weights, v);
        weights += N8_IGEMM_NR * N8_IGEMM_KR;
#pragma GCC unroll 8
        for (size_t m = 0; m < rows; m++) {
            uint32_t bytes;
            memcpy(&bytes, row[m] + k, sizeof bytes);
            const n8_s32s x = (n8_s32s)((n8_u32s){0} + bytes) ^ (int32_t)0x80808080;
#pragma GCC unroll 2
            for (size_t v = 0; v < N8_IGEMM_VECTORS; v++)
                sums[m][v] = n8_igemm_multiply(sums[m][v], x, w[v]);
        }
    }
}

// What the sums of a panel begin with.
N8_INLINE void n8_igemm_begin(n8_s32s begin[N8_IGEMM_VECTORS], const int32_t *bias,
                              const int8_t *weights, size_t steps) {
    enum { STEP = N8_IGEMM_NR * N8_IGEMM_KR };
    const n8_s32s ones = (n8_s32s){0} + 0x01010101;
    n8_s32s even[N8_IGEMM_VECTORS] = {0}, odd[N8_IGEMM_VECTORS] = {0}; // do not wait for each other
    for (size_t i = 0; i < steps; i += 2, weights += 2 * STEP) {
        const int8_t *next = i + 1 < steps ? weights + STEP : NULL;
#pragma GCC unroll 2
        for (size_t v = 0; v < N8_IGEMM_VECTORS; v++) {
            even[v] = n8_igemm_multiply(even[v], ones, n8_load_panel(weights, v));
            if (next)
                odd[v] = n8_igemm_multiply(odd[v], ones, n8_load_panel(next, v));
        }
    }
#pragma GCC unroll 2
    for (size_t v = 0; v < N8_IGEMM_VECTORS; v++) {
        const n8_u32s sum = (n8_u32s)even[v] + (n8_u32s)odd[v];
        begin[v] = (n8_s32s)((n8_u32s)n8_load_s32(bias + v * N8_LANES) - (sum << 7));
    }
}

#else

enum { N8_IGEMM_BLOCK = 256 };

// The bytes up to the next multiple of 8, to which a row is readable, each widened.
N8_INLINE void n8_igemm_widen(int16_t *to, const int8_t *from, size_t size) {
    enum { PIECE = 8, WIDE = 2 * N8_LANES };
    size_t k = 0;
    for (; k + WIDE <= size; k += WIDE) {
        const n8_s16s words = n8_load_s8_as_s16(from + k);
        memcpy(to + k, &words, sizeof words);
    }
    for (; k < size; k += PIECE) {
#if defined(__x86_64__)
        const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(from + k));
        const __m128i words = _mm_cvtepi8_epi16(bytes);
#else
        const int16x8_t words = vmovl_s8(vld1_s8(from + k));
#endif
        memcpy(to + k, &words, sizeof words);
    }
}

N8_INLINE void n8_igemm_tap(n8_igemm_sums sums, size_t rows, const int8_t *const *row,
                            const int8_t *weights, size_t depth) {
    int16_t wide[N8_IGEMM_MR][N8_IGEMM_BLOCK];
    for (size_t from = 0; from < depth; from += N8_IGEMM_BLOCK) {
        const size_t size = depth - from < N8_IGEMM_BLOCK ? depth - from : N8_IGEMM_BLOCK;
#pragma GCC unroll 4
        for (size_t m = 0; m < rows; m++)
            n8_igemm_widen(wide[m], row[m] + from, size);
        for (size_t k = 0; k < size; k += N8_IGEMM_KR) {
            n8_s32s w[N8_IGEMM_VECTORS];
#pragma GCC unroll 2
            for (size_t v = 0; v < N8_IGEMM_VECTORS; v++, weights += sizeof(n8_s32s) / 2)
                w[v] = (n8_s32s)n8_load_s8_as_s16(weights);
#pragma GCC unroll 4
            for (size_t m = 0; m < rows; m++) {
                int32_t pair;
                memcpy(&pair, wide[m] + k, sizeof pair);
                const n8_s32s x = (n8_s32s){0} + pair;
#pragma GCC unroll 2
                for (size_t v = 0; v < N8_IGEMM_VECTORS; v++)
                    sums[m][v] = n8_add_products(sums[m][v], x, w[v]);
            }
        }
    }
}

N8_INLINE void n8_igemm_begin(n8_s32s begin[N8_IGEMM_VECTORS], const int32_t *bias,
                              const int8_t *weights, size_t steps) {
#pragma GCC unroll 2
    for (size_t v = 0; v < N8_IGEMM_VECTORS; v++)
        begin[v] = n8_load_s32(bias + v * N8_LANES);
}

#endif

// The first `count` lanes, all of them where `whole`, of pixel p, from channel n on.
N8_INLINE void n8_igemm_store(const struct n8_igemm_args *args, enum n8_igemm_kind kind,
                              const struct n8_rounding *to, size_t p, size_t n, n8_s32s sums,
                              bool whole, size_t count) {
    char *out = (char *)args->out + (ptrdiff_t)p * args->out_stride;
    if (kind == N8_IGEMM_S32) {
        memcpy(out + n * sizeof(int32_t), &sums, whole ? sizeof sums : count * sizeof(int32_t));
        return;
    }
    n8_f32s v = n8_float(sums) * n8_load_f32(args->multiplier + n);
    if (kind == N8_IGEMM_F32) {
        v += n8_load_f32(args->bias_f32 + n);
        memcpy(out + n * sizeof(float), &v, whole ? sizeof v : count * sizeof(float));
        return;
    }
    if (kind == N8_IGEMM_S8_ADD) {
        const int8_t *r = args->residual + (ptrdiff_t)p * args->residual_stride + n;
        const n8_s32s added = whole ? n8_load_s8(r) : n8_load_some_s8(r, count);
        v += n8_float(added - args->residual_zero_point) * args->residual_scale;
    }
    if (args->slope)
        v = n8_leaky_all(v, n8_load_f32(args->slope + n));
    const n8_s32s q =
        args->small & N8_SMALL_RESULTS ? n8_round_numbers(v, to) : n8_round_all(v, to);
    if (whole)
        n8_store_s8((int8_t *)out + n, q);
    else
        n8_store_some_s8((int8_t *)out + n, q, count);
}

// `pixels` of the tile that begins with pixel p, of which `rows`, a constant, are computed.
N8_INLINE void n8_igemm_tile(const struct n8_igemm_args *args, enum n8_igemm_kind kind,
                             const struct n8_rounding *to, const int8_t *const *table,
                             const n8_s32s begin[N8_IGEMM_VECTORS], const int8_t *weights, size_t n,
                             size_t p, size_t rows, size_t pixels) {
    n8_igemm_sums sums;
#pragma GCC unroll 8
    for (size_t m = 0; m < rows; m++) {
#pragma GCC unroll 2
        for (size_t v = 0; v < N8_IGEMM_VECTORS; v++)
            sums[m][v] = begin[v];
    }
    for (size_t t = 0; t < args->taps; t++, table += N8_IGEMM_MR) {
        n8_igemm_tap(sums, rows, table, weights, args->depth);
        weights += args->depth * N8_IGEMM_NR;
    }
    const size_t channels = args->channels - n;
    if (channels >= N8_IGEMM_NR) {
#pragma GCC unroll 8
        for (size_t m = 0; m < rows; m++) {
            if (m == pixels) // not in the condition, which GCC could not unroll without optimizing
                break;
#pragma GCC unroll 2
            for (size_t v = 0; v < N8_IGEMM_VECTORS; v++)
                n8_igemm_store(args, kind, to, p + m, n + v * N8_LANES, sums[m][v], true, 0);
        }
        return;
    }
    n8_igemm_sums kept; // in memory, where an index may vary
#pragma GCC unroll 8
    for (size_t m = 0; m < rows; m++) {
#pragma GCC unroll 2
        for (size_t v = 0; v < N8_IGEMM_VECTORS; v++)
            kept[m][v] = sums[m][v];
    }
    for (size_t m = 0; m < rows && m < pixels; m++) {
        for (size_t v = 0; v * N8_LANES < channels; v++) {
            const size_t left = channels - v * N8_LANES;
            n8_igemm_store(args, kind, to, p + m, n + v * N8_LANES, kept[m][v], left >= N8_LANES,
                           left);
        }
    }
}

// All sums of a layer, panel by panel; a tile of few pixels computes no more of them than it must.
N8_INLINE void n8_igemm_all(const struct n8_igemm_args *args, enum n8_igemm_kind kind) {
    const size_t mr = N8_IGEMM_MR;
    const size_t depth = args->taps * args->depth;
    const struct n8_rounding to = n8_rounding_of(args->zero_point, args->lo, args->hi);
    const int8_t *weights = args->weights;
    for (size_t n = 0; n < args->channels; n += N8_IGEMM_NR, weights += depth * N8_IGEMM_NR) {
        n8_s32s begin[N8_IGEMM_VECTORS];
        n8_igemm_begin(begin, args->bias + n, weights, depth / N8_IGEMM_KR);
        const int8_t *const *table = args->rows;
        for (size_t p = 0; p < args->pixels; p += mr, table += args->taps * mr) {
            const size_t left = args->pixels - p;
            if (left > mr / 2)
                n8_igemm_tile(args, kind, &to, table, begin, weights, n, p, mr, left);
            else if (left > 1)
                n8_igemm_tile(args, kind, &to, table, begin, weights, n, p, mr / 2, left);
            else
                n8_igemm_tile(args, kind, &to, table, begin, weights, n, p, 1, left);
        }
    }
}

#endif // N8_VECTOR_IGEMM_H
