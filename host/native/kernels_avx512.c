// SPDX-License-Identifier: Apache-2.0
#include "activate.h"

#include <immintrin.h>

void n8c_add_avx512(struct n8c_sums *sums, const float *in, size_t count) {
    __m512d total = _mm512_loadu_pd(sums->total), squares = _mm512_loadu_pd(sums->squares);
    __m256 least = _mm256_loadu_ps(sums->least), most = _mm256_loadu_ps(sums->most);
    for (size_t i = 0; i < count; i += N8C_LANES) {
        size_t left = count - i;
        __mmask8 valid = left < N8C_LANES ? (__mmask8)((1u << left) - 1) : (__mmask8)0xff;
        __m256 x = _mm256_maskz_loadu_ps(valid, in + i);
        __m512d wide = _mm512_cvtps_pd(x);
        total = _mm512_add_pd(total, wide);
        squares = _mm512_add_pd(squares, _mm512_mul_pd(wide, wide));
        least = _mm256_mask_min_ps(least, valid, x, least);
        most = _mm256_mask_max_ps(most, valid, x, most);
    }
    _mm512_storeu_pd(sums->total, total);
    _mm512_storeu_pd(sums->squares, squares);
    _mm256_storeu_ps(sums->least, least);
    _mm256_storeu_ps(sums->most, most);
}

size_t n8c_bins_avx512(uint32_t *out, const float *in, size_t count, float factor) {
    const __m512 scale = _mm512_set1_ps(factor), zero = _mm512_setzero_ps();
    const __m512i negative = _mm512_set1_epi32(N8C_BINS);
    size_t found = 0;
    for (size_t i = 0; i < count; i += 16) {
        size_t left = count - i;
        __mmask16 valid = left < 16 ? (__mmask16)((1u << left) - 1) : (__mmask16)0xffff;
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
