// SPDX-License-Identifier: Apache-2.0
#include "scan.h"

#include <immintrin.h>

#define SCAN n8c_scan_avx2

typedef struct {
    __m256 low, high;
} floats;
typedef struct {
    __m256d each[4];
} doubles;

// Eight lanes, all bits set in the first `count` of them.
static inline __m256i first(size_t count) {
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - count));
}

static inline floats load(const float *in) {
    return (floats){_mm256_loadu_ps(in), _mm256_loadu_ps(in + 8)};
}

static inline floats load_part(const float *in, size_t count) {
    size_t low = count < 8 ? count : 8;
    return (floats){
        _mm256_maskload_ps(in, first(low)),
        _mm256_maskload_ps(in + low, first(count - low)),
    };
}

static inline floats broadcast(float x) {
    return (floats){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

static inline floats pad(floats x, size_t count, float with) {
    size_t low = count < 8 ? count : 8;
    __m256 other = _mm256_set1_ps(with);
    return (floats){
        _mm256_blendv_ps(other, x.low, _mm256_castsi256_ps(first(low))),
        _mm256_blendv_ps(other, x.high, _mm256_castsi256_ps(first(count - low))),
    };
}

static inline floats min(floats a, floats b) {
    return (floats){_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

static inline floats max(floats a, floats b) {
    return (floats){_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

static inline float reduce_min(floats x) {
    __m256 eight = _mm256_min_ps(x.low, x.high);
    __m128 four = _mm_min_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_min_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_min_ss(two, _mm_movehdup_ps(two)));
}

static inline float reduce_max(floats x) {
    __m256 eight = _mm256_max_ps(x.low, x.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static inline floats mul(floats a, floats b) {
    return (floats){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

static inline floats add(floats a, floats b) {
    return (floats){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

static inline floats magnitude(floats x) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (floats){_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high)};
}

static inline doubles widen(floats x) {
    return (doubles){{
        _mm256_cvtps_pd(_mm256_castps256_ps128(x.low)),
        _mm256_cvtps_pd(_mm256_extractf128_ps(x.low, 1)),
        _mm256_cvtps_pd(_mm256_castps256_ps128(x.high)),
        _mm256_cvtps_pd(_mm256_extractf128_ps(x.high, 1)),
    }};
}

static inline doubles zeros(void) {
    __m256d zero = _mm256_setzero_pd();
    return (doubles){{zero, zero, zero, zero}};
}

static inline doubles load_doubles(const double *in) {
    doubles x;
    for (size_t i = 0; i < 4; i++)
        x.each[i] = _mm256_loadu_pd(in + 4 * i);
    return x;
}

static inline void store_doubles(double *out, doubles x) {
    for (size_t i = 0; i < 4; i++)
        _mm256_storeu_pd(out + 4 * i, x.each[i]);
}

static inline doubles add_doubles(doubles a, doubles b) {
    for (size_t i = 0; i < 4; i++)
        a.each[i] = _mm256_add_pd(a.each[i], b.each[i]);
    return a;
}

static inline doubles add_squares(doubles a, doubles x) {
    for (size_t i = 0; i < 4; i++)
        a.each[i] = _mm256_add_pd(a.each[i], _mm256_mul_pd(x.each[i], x.each[i]));
    return a;
}

static inline double reduce_add(doubles x) {
    __m256d low = _mm256_add_pd(x.each[0], x.each[2]), high = _mm256_add_pd(x.each[1], x.each[3]);
    __m256d four = _mm256_add_pd(low, high);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
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

static inline size_t compress_four(int32_t *out, __m128i bins, unsigned kept) {
    __m128i order = _mm_loadu_si128((const __m128i *)front[kept]);
    _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(bins, order));
    return (size_t)__builtin_popcount(kept);
}

static inline size_t store_eight(int32_t *out, __m256 scaled, __m256 x) {
    __m256i sign = _mm256_srai_epi32(_mm256_castps_si256(x), 31);
    __m256i bins = _mm256_xor_si256(_mm256_cvttps_epi32(scaled), sign);
    __m256 zero = _mm256_setzero_ps();
    unsigned kept = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, zero, _CMP_NEQ_UQ));
    size_t low = compress_four(out, _mm256_castsi256_si128(bins), kept & 15);
    return low + compress_four(out + low, _mm256_extracti128_si256(bins, 1), kept >> 4);
}

static inline size_t store_bins(int32_t *out, floats scaled, floats x) {
    size_t low = store_eight(out, scaled.low, x.low);
    return low + store_eight(out + low, scaled.high, x.high);
}

#include "scan.inc"
