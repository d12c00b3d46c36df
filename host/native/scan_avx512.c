// SPDX-License-Identifier: Apache-2.0
#include "scan.h"

#include <immintrin.h>

#define SCAN n8c_scan_avx512

typedef __m512 floats;
typedef struct {
    __m512d low, high;
} doubles;

static inline __mmask16 first(size_t count) {
    return (__mmask16)((1u << count) - 1);
}

static inline floats load(const float *in) {
    return _mm512_loadu_ps(in);
}

static inline floats load_part(const float *in, size_t count) {
    return _mm512_maskz_loadu_ps(first(count), in);
}

static inline floats broadcast(float x) {
    return _mm512_set1_ps(x);
}

static inline floats pad(floats x, size_t count, float with) {
    return _mm512_mask_blend_ps(first(count), broadcast(with), x);
}

static inline floats min(floats a, floats b) {
    return _mm512_min_ps(a, b);
}

static inline floats max(floats a, floats b) {
    return _mm512_max_ps(a, b);
}

static inline float reduce_min(floats x) {
    return _mm512_reduce_min_ps(x);
}

static inline float reduce_max(floats x) {
    return _mm512_reduce_max_ps(x);
}

static inline floats mul(floats a, floats b) {
    return _mm512_mul_ps(a, b);
}

static inline floats add(floats a, floats b) {
    return _mm512_add_ps(a, b);
}

static inline floats magnitude(floats x) {
    return _mm512_abs_ps(x);
}

static inline doubles widen(floats x) {
    __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
    return (doubles){_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(high)};
}

static inline doubles zeros(void) {
    return (doubles){_mm512_setzero_pd(), _mm512_setzero_pd()};
}

static inline doubles load_doubles(const double *in) {
    return (doubles){_mm512_loadu_pd(in), _mm512_loadu_pd(in + 8)};
}

static inline void store_doubles(double *out, doubles x) {
    _mm512_storeu_pd(out, x.low);
    _mm512_storeu_pd(out + 8, x.high);
}

static inline doubles add_doubles(doubles a, doubles b) {
    return (doubles){_mm512_add_pd(a.low, b.low), _mm512_add_pd(a.high, b.high)};
}

// The square of a float is exact in double, so that fused or not makes no difference.
static inline doubles add_squares(doubles a, doubles x) {
    return (doubles){
        _mm512_fmadd_pd(x.low, x.low, a.low),
        _mm512_fmadd_pd(x.high, x.high, a.high),
    };
}

static inline double reduce_add(doubles x) {
    __m512d eight = _mm512_add_pd(x.low, x.high);
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

static inline size_t store_bins(int32_t *out, floats scaled, floats x) {
    __m512i bits = _mm512_castps_si512(x);
    __mmask16 kept = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x7fffffff));
    __m512i bins = _mm512_xor_si512(_mm512_cvttps_epi32(scaled), _mm512_srai_epi32(bits, 31));
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(kept, bins));
    return (size_t)__builtin_popcount(kept);
}

#include "scan.inc"
