// SPDX-License-Identifier: Apache-2.0
#include "activate.h"

#include <immintrin.h>

void n8c_add_avx2(struct n8c_sums *out, const struct n8c_sums *before, const float *in,
                  size_t count) {
    __m256d total[4], square[4];
    __m256 least[2], most[2];
    for (size_t j = 0; j < 4; j++) {
        total[j] = before ? _mm256_loadu_pd(before->totals + 4 * j) : _mm256_setzero_pd();
        square[j] = before ? _mm256_loadu_pd(before->squares + 4 * j) : _mm256_setzero_pd();
    }
    for (size_t j = 0; j < 2; j++) {
        least[j] = before ? _mm256_loadu_ps(before->minima + 8 * j) : _mm256_set1_ps(INFINITY);
        most[j] = before ? _mm256_loadu_ps(before->maxima + 8 * j) : _mm256_set1_ps(-INFINITY);
    }
    size_t whole = count - count % N8C_LANES;
    for (size_t i = 0; i < whole; i += N8C_LANES) {
        n8c_prefetch(in + i);
        for (size_t j = 0; j < 4; j++) {
            __m256d x = _mm256_cvtps_pd(_mm_loadu_ps(in + i + 4 * j));
            total[j] = _mm256_add_pd(total[j], x);
            square[j] = _mm256_add_pd(square[j], _mm256_mul_pd(x, x));
        }
        for (size_t j = 0; j < 2; j++) {
            __m256 x = _mm256_loadu_ps(in + i + 8 * j);
            least[j] = _mm256_min_ps(x, least[j]);
            most[j] = _mm256_max_ps(x, most[j]);
        }
    }
    for (size_t j = 0; j < 4; j++) {
        _mm256_storeu_pd(out->totals + 4 * j, total[j]);
        _mm256_storeu_pd(out->squares + 4 * j, square[j]);
    }
    for (size_t j = 0; j < 2; j++) {
        _mm256_storeu_ps(out->minima + 8 * j, least[j]);
        _mm256_storeu_ps(out->maxima + 8 * j, most[j]);
    }
    if (whole < count)
        n8c_add_c(out, out, in + whole, count - whole);
    else
        n8c_sums_finish(out);
}

#define LANE(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3

// Brings the lanes whose bit is set to the front.
static const uint8_t front[16][16] = {
    {0},
    {LANE(0)},
    {LANE(1)},
    {LANE(0), LANE(1)},
    {LANE(2)},
    {LANE(0), LANE(2)},
    {LANE(1), LANE(2)},
    {LANE(0), LANE(1), LANE(2)},
    {LANE(3)},
    {LANE(0), LANE(3)},
    {LANE(1), LANE(3)},
    {LANE(0), LANE(1), LANE(3)},
    {LANE(2), LANE(3)},
    {LANE(0), LANE(2), LANE(3)},
    {LANE(1), LANE(2), LANE(3)},
    {LANE(0), LANE(1), LANE(2), LANE(3)},
};

static inline size_t keep(uint32_t *out, __m128i bins, unsigned kept) {
    __m128i order = _mm_loadu_si128((const __m128i *)front[kept]);
    _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(bins, order));
    return (size_t)__builtin_popcount(kept);
}

size_t n8c_bins_avx2(uint32_t *out, const float *in, size_t count, float factor) {
    const __m256 scale = _mm256_set1_ps(factor), zero = _mm256_setzero_ps();
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256i negative = _mm256_set1_epi32(N8C_BINS);
    size_t found = 0, i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 x = _mm256_loadu_ps(in + i);
        __m256i bin = _mm256_cvttps_epi32(_mm256_mul_ps(_mm256_andnot_ps(sign, x), scale));
        __m256i below = _mm256_castps_si256(_mm256_cmp_ps(x, zero, _CMP_LT_OQ));
        bin = _mm256_add_epi32(bin, _mm256_and_si256(below, negative));
        bin = _mm256_slli_epi32(bin, N8C_LOG_WAYS);
        unsigned kept = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, zero, _CMP_NEQ_UQ));
        found += keep(out + found, _mm256_castsi256_si128(bin), kept & 15);
        found += keep(out + found, _mm256_extracti128_si256(bin, 1), kept >> 4);
    }
    return found + n8c_bins_c(out + found, in + i, count - i, factor);
}

void n8c_activate_avx2(float *out, const float *in, size_t count, float slope, float lo, float hi) {
    n8c_activate(out, in, count, slope, lo, hi);
}
