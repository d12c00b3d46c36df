// SPDX-License-Identifier: Apache-2.0
#include "activate.h"

#include <immintrin.h>

// The lanes that hold values if so many are left.
static inline __mmask16 lanes(size_t left) {
    return (__mmask16)(left < 16 ? (1u << left) - 1 : 0xffffu);
}

static inline double over_lanes(__m512d low, __m512d high) {
    __m512d eight = _mm512_add_pd(low, high);
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

void n8c_add_avx512(struct n8c_sums *out, const struct n8c_sums *before, const float *in,
                    size_t count) {
    __m512d total0 = _mm512_setzero_pd(), total1 = total0, square0 = total0, square1 = total0;
    __m512 least = _mm512_set1_ps(INFINITY), most = _mm512_set1_ps(-INFINITY);
    if (before != NULL) {
        total0 = _mm512_loadu_pd(before->totals);
        total1 = _mm512_loadu_pd(before->totals + 8);
        square0 = _mm512_loadu_pd(before->squares);
        square1 = _mm512_loadu_pd(before->squares + 8);
        least = _mm512_loadu_ps(before->minima);
        most = _mm512_loadu_ps(before->maxima);
    }
    for (size_t i = 0; i < count; i += N8C_LANES) {
        __mmask16 valid = lanes(count - i);
        n8c_prefetch(in + i);
        __m512 x = _mm512_maskz_loadu_ps(valid, in + i);
        __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
        __m512d high =
            _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)));
        total0 = _mm512_add_pd(total0, low);
        total1 = _mm512_add_pd(total1, high);
        square0 = _mm512_add_pd(square0, _mm512_mul_pd(low, low));
        square1 = _mm512_add_pd(square1, _mm512_mul_pd(high, high));
        least = _mm512_mask_min_ps(least, valid, x, least);
        most = _mm512_mask_max_ps(most, valid, x, most);
    }
    _mm512_storeu_pd(out->totals, total0);
    _mm512_storeu_pd(out->totals + 8, total1);
    _mm512_storeu_pd(out->squares, square0);
    _mm512_storeu_pd(out->squares + 8, square1);
    _mm512_storeu_ps(out->minima, least);
    _mm512_storeu_ps(out->maxima, most);
    out->total = over_lanes(total0, total1);
    out->square = over_lanes(square0, square1);
    out->minimum = _mm512_reduce_min_ps(least);
    out->maximum = _mm512_reduce_max_ps(most);
}

size_t n8c_bins_avx512(uint32_t *out, const float *in, size_t count, float factor) {
    const __m512 scale = _mm512_set1_ps(factor), zero = _mm512_setzero_ps();
    const __m512i negative = _mm512_set1_epi32(N8C_BINS);
    size_t found = 0;
    for (size_t i = 0; i < count; i += 16) {
        __mmask16 valid = lanes(count - i);
        __m512 x = _mm512_maskz_loadu_ps(valid, in + i);
        __mmask16 kept = _mm512_cmp_ps_mask(x, zero, _CMP_NEQ_UQ);
        __m512i bin = _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_abs_ps(x), scale));
        bin = _mm512_mask_add_epi32(bin, _mm512_cmp_ps_mask(x, zero, _CMP_LT_OQ), bin, negative);
        bin = _mm512_slli_epi32(bin, N8C_LOG_WAYS);
        _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi32(kept, bin));
        found += (size_t)__builtin_popcount(kept);
    }
    return found;
}

void n8c_activate_avx512(float *out, const float *in, size_t count, float slope, float lo,
                         float hi) {
    n8c_activate(out, in, count, slope, lo, hi);
}
