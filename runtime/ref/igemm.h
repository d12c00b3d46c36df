// SPDX-License-Identifier: Apache-2.0
//
// The implicit GEMM (3)(12) without its epilogue: tiles of 4 pixels x 4 channels.
//
// Both sides are widened to 16 bits in blocks of the depth first, so that the loop that does
// the work is a plain 16-bit dot product, which compilers turn into pmaddwd and smlal.
#ifndef N8_REF_IGEMM_H
#define N8_REF_IGEMM_H

#include "epilogue.h"

#define N8_IGEMM_BLOCK 256 // bytes of depth widened at a time

// Receives the sums of pixels p .. p + 3, channels n .. n + 3; stores `pixels` x `channels`.
typedef void n8_igemm_store_fn(const struct n8_igemm_args *args, size_t p, size_t n, size_t pixels,
                               size_t channels, int32_t sums[N8_MR][N8_NR]);

static inline void n8_igemm_accumulate(int32_t sums[N8_MR][N8_NR], const int8_t *const *rows,
                                       const int8_t *weights, size_t depth, size_t pixels) {
    int16_t w[N8_NR][N8_IGEMM_BLOCK];
    int16_t x[N8_IGEMM_BLOCK];
    for (size_t k = 0; k < depth; k += N8_IGEMM_BLOCK) {
        const size_t size = depth - k < N8_IGEMM_BLOCK ? depth - k : N8_IGEMM_BLOCK;
        const int8_t *restrict packed = weights + k * N8_NR;
        for (size_t i = 0; i < size; i += N8_KR) {
            for (size_t n = 0; n < N8_NR; n++, packed += N8_KR) {
                for (size_t j = 0; j < N8_KR; j++)
                    w[n][i + j] = packed[j];
            }
        }
        for (size_t p = 0; p < pixels; p++) {
            const int8_t *restrict row = rows[p] + k;
            for (size_t i = 0; i < size; i++)
                x[i] = row[i];
            int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            for (size_t i = 0; i < size; i++) {
                s0 += x[i] * w[0][i];
                s1 += x[i] * w[1][i];
                s2 += x[i] * w[2][i];
                s3 += x[i] * w[3][i];
            }
            sums[p][0] += s0;
            sums[p][1] += s1;
            sums[p][2] += s2;
            sums[p][3] += s3;
        }
    }
}

N8_INLINE void n8_igemm(const struct n8_igemm_args *args, n8_igemm_store_fn *store) {
    const size_t panel = args->taps * args->depth * N8_NR;
    const int8_t *weights = args->weights;
    for (size_t n = 0; n < args->channels; n += N8_NR, weights += panel) {
        const size_t channels = args->channels - n < N8_NR ? args->channels - n : N8_NR;
        const int8_t *const *rows = args->rows;
        for (size_t p = 0; p < args->pixels; p += N8_MR, rows += args->taps * N8_MR) {
            const size_t pixels = args->pixels - p < N8_MR ? args->pixels - p : N8_MR;
            int32_t sums[N8_MR][N8_NR];
            for (size_t i = 0; i < N8_MR; i++) {
                for (size_t j = 0; j < N8_NR; j++)
                    sums[i][j] = args->bias[n + j];
            }
            for (size_t t = 0; t < args->taps; t++)
                n8_igemm_accumulate(sums, rows + t * N8_MR, weights + t * args->depth * N8_NR,
                                    args->depth, pixels);
            store(args, p, n, pixels, channels, sums);
        }
    }
}

// Stores one pixel's values as int8 (5)(5b).
N8_INLINE void n8_igemm_store_s8(const struct n8_igemm_args *args, size_t p, size_t n,
                                 size_t channels, float v[N8_NR]) {
    const struct n8_limits limits = n8_limits_of(args->zero_point, args->lo, args->hi);
    int8_t q[N8_NR];
    if (args->slope) {
        for (size_t j = 0; j < N8_NR; j++)
            v[j] = n8_leaky(v[j], args->slope[n + j]);
    }
    for (size_t j = 0; j < N8_NR; j++)
        q[j] = n8_round_s8(v[j], limits);
    int8_t *out = (int8_t *)args->out + (ptrdiff_t)p * args->out_stride + n;
    for (size_t j = 0; j < channels; j++)
        out[j] = q[j];
}

#endif // N8_REF_IGEMM_H
