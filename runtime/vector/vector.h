// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of the levels of PCs share: vectors as GCC and Clang know them, as wide as the
// registers of the level for which a kernel is compiled, and what these compilers do not find
// themselves. CMake compiles each file of this folder once for each level, with N8_VECTOR_LEVEL.
//
// All that loads or stores takes places that are aligned to nothing and touches exactly what its
// name and its count say.
#ifndef N8_VECTOR_VECTOR_H
#define N8_VECTOR_VECTOR_H

#include "ref/epilogue.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#else
#error "no vector levels are known for this processor"
#endif

// The name of the kernel of a slot, for this level.
#define N8_VECTOR_JOIN(slot, level) n8_##slot##_##level
#define N8_VECTOR_NAME(slot, level) N8_VECTOR_JOIN(slot, level)
#define N8_VECTOR_KERNEL(slot)      N8_VECTOR_NAME(slot, N8_VECTOR_LEVEL)

// 32-bit lanes of a register, and the intrinsics of that width.
#if defined(__AVX512BW__)
#define N8_LANES    16
#define N8_MM(name) _mm512_##name
typedef __m512i n8_mm;
#elif defined(__AVX2__)
#define N8_LANES    8
#define N8_MM(name) _mm256_##name
typedef __m256i n8_mm;
#else
#define N8_LANES    4
#define N8_MM(name) _mm_##name
#if defined(__x86_64__)
typedef __m128i n8_mm;
#endif
#endif

// A register; operators work on each lane, and a scalar operand stands for one in all lanes.
typedef int32_t n8_s32s __attribute__((vector_size(4 * N8_LANES)));
typedef uint32_t n8_u32s __attribute__((vector_size(4 * N8_LANES)));
typedef float n8_f32s __attribute__((vector_size(4 * N8_LANES)));
typedef int16_t n8_s16s __attribute__((vector_size(4 * N8_LANES)));
typedef int8_t n8_s8s __attribute__((vector_size(4 * N8_LANES)));

N8_INLINE n8_f32s n8_load_f32(const float *from) {
    n8_f32s value;
    memcpy(&value, from, sizeof value);
    return value;
}

N8_INLINE n8_s32s n8_load_s32(const int32_t *from) {
    n8_s32s value;
    memcpy(&value, from, sizeof value);
    return value;
}

// N8_LANES bytes, each widened.
N8_INLINE n8_s32s n8_load_s8(const int8_t *from) {
#if N8_LANES == 16
    return (n8_s32s)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#elif N8_LANES == 8
    return (n8_s32s)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
#else
    int32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
#if defined(__x86_64__)
    return (n8_s32s)_mm_cvtepi8_epi32(_mm_cvtsi32_si128(bytes));
#else
    const int8x8_t wide = vreinterpret_s8_s32(vdup_n_s32(bytes));
    return (n8_s32s)vmovl_s16(vget_low_s16(vmovl_s8(wide)));
#endif
#endif
}

// Stores values that fit, N8_LANES bytes.
N8_INLINE void n8_store_s8(int8_t *to, n8_s32s value) {
#if N8_LANES == 16
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8((__m512i)value));
#elif N8_LANES == 8
    const __m256i all = (__m256i)value;
    const __m128i halves =
        _mm_packs_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packs_epi16(halves, halves));
#else
#if defined(__x86_64__)
    const __m128i halves = _mm_packs_epi32((__m128i)value, (__m128i)value);
    const int32_t bytes = _mm_cvtsi128_si32(_mm_packs_epi16(halves, halves));
#else
    const int16x4_t halves = vmovn_s32((int32x4_t)value);
    const int32_t bytes =
        vget_lane_s32(vreinterpret_s32_s8(vmovn_s16(vcombine_s16(halves, halves))), 0);
#endif
    memcpy(to, &bytes, sizeof bytes);
#endif
}

// The first `count` of them, 0 <= count <= N8_LANES; what follows is 0.
N8_INLINE n8_s32s n8_load_some_s8(const int8_t *from, size_t count) {
#if N8_LANES == 16
    const __mmask16 some = (__mmask16)((1u << count) - 1);
    return (n8_s32s)_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(some, from));
#else
    int8_t bytes[N8_LANES] = {0};
    memcpy(bytes, from, count);
    return n8_load_s8(bytes);
#endif
}

N8_INLINE void n8_store_some_s8(int8_t *to, n8_s32s value, size_t count) {
#if N8_LANES == 16
    const __mmask16 some = (__mmask16)((1u << count) - 1);
    _mm512_mask_cvtepi32_storeu_epi8(to, some, (__m512i)value);
#else
    int8_t bytes[N8_LANES];
    n8_store_s8(bytes, value);
    memcpy(to, bytes, count);
#endif
}

// Twice as many bytes, each widened to 16 bits.
N8_INLINE n8_s16s n8_load_s8_as_s16(const int8_t *from) {
#if N8_LANES == 16
    return (n8_s16s)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)from));
#elif N8_LANES == 8
    return (n8_s16s)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
#elif defined(__x86_64__)
    return (n8_s16s)_mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)from));
#else
    return (n8_s16s)vmovl_s8(vld1_s8(from));
#endif
}

// Stores values that fit, 2 * N8_LANES bytes.
N8_INLINE void n8_store_s16_as_s8(int8_t *to, n8_s16s value) {
#if N8_LANES == 16
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi16_epi8((__m512i)value));
#elif N8_LANES == 8
    const __m256i all = (__m256i)value;
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    _mm_storeu_si128((__m128i *)(void *)to, bytes);
#elif defined(__x86_64__)
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packs_epi16((__m128i)value, (__m128i)value));
#else
    vst1_s8(to, vmovn_s16((int16x8_t)value));
#endif
}

// Two registers of 16-bit values, in an order that lets instructions combine them: pairs {a[i],
// b[i]} for i of the first half of every 128 bits, and of the second.
struct n8_two {
    n8_s32s first, second;
};

N8_INLINE struct n8_two n8_pairs(n8_s16s a, n8_s16s b) {
#if defined(__x86_64__)
    return (struct n8_two){(n8_s32s)N8_MM(unpacklo_epi16)((n8_mm)a, (n8_mm)b),
                           (n8_s32s)N8_MM(unpackhi_epi16)((n8_mm)a, (n8_mm)b)};
#else
    return (struct n8_two){(n8_s32s)vzip1q_s16((int16x8_t)a, (int16x8_t)b),
                           (n8_s32s)vzip2q_s16((int16x8_t)a, (int16x8_t)b)};
#endif
}

// The 16-bit values of that order, which fit, back in their own.
N8_INLINE n8_s16s n8_halves(struct n8_two values) {
#if defined(__x86_64__)
    return (n8_s16s)N8_MM(packs_epi32)((n8_mm)values.first, (n8_mm)values.second);
#else
    return (n8_s16s)vcombine_s16(vmovn_s32((int32x4_t)values.first),
                                 vmovn_s32((int32x4_t)values.second));
#endif
}

// sum + x[0] * w[0] + x[1] * w[1] of pairs of 16-bit values, which is exact unless all four are
// -32768.
N8_INLINE n8_s32s n8_add_products(n8_s32s sum, n8_s32s x, n8_s32s w) {
#if defined(__AVX512VNNI__)
    return (n8_s32s)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
#elif defined(__x86_64__)
    return sum + (n8_s32s)N8_MM(madd_epi16)((n8_mm)x, (n8_mm)w);
#else
    const int16x8_t a = (int16x8_t)x, b = (int16x8_t)w;
    const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
    return sum + (n8_s32s)vpaddq_s32(low, vmull_high_s16(a, b));
#endif
}

N8_INLINE n8_f32s n8_float(n8_s32s value) {
    return __builtin_convertvector(value, n8_f32s);
}

// a > b ? a : b and a < b ? a : b: b where one of them is NaN.
N8_INLINE n8_f32s n8_max(n8_f32s a, n8_f32s b) {
#if defined(__x86_64__)
    return (n8_f32s)N8_MM(max_ps)(a, b);
#else
    return (n8_f32s)vbslq_f32(vcgtq_f32((float32x4_t)a, (float32x4_t)b), (float32x4_t)a,
                              (float32x4_t)b);
#endif
}

N8_INLINE n8_f32s n8_min(n8_f32s a, n8_f32s b) {
#if defined(__x86_64__)
    return (n8_f32s)N8_MM(min_ps)(a, b);
#else
    return (n8_f32s)vbslq_f32(vcltq_f32((float32x4_t)a, (float32x4_t)b), (float32x4_t)a,
                              (float32x4_t)b);
#endif
}

// NaN as 0.
N8_INLINE n8_f32s n8_number(n8_f32s v) {
#if N8_LANES == 16
    return (n8_f32s)_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v);
#else
    return (n8_f32s)((n8_s32s)v & (v == v));
#endif
}

// (5b), as n8_leaky.
N8_INLINE n8_f32s n8_leaky_all(n8_f32s v, n8_f32s slope) {
    const n8_f32s zero = {0};
    return n8_max(v, zero) + n8_min(v, zero) * slope;
}

// What rounds: limits of floats, and the bits of the number whose last bit is 1, moved by the zero
// point; see "Compilers" in docs/numerics.md.
struct n8_rounding {
    n8_f32s lo, hi;
    n8_s32s bits;
};

N8_INLINE n8_f32s n8_all(float value) {
    return value - (n8_f32s){0}; // -0 remains
}

N8_INLINE struct n8_rounding n8_rounding_of(int32_t zero_point, int32_t lo, int32_t hi) {
    return (struct n8_rounding){n8_all((float)(lo - zero_point)), n8_all((float)(hi - zero_point)),
                                (n8_s32s){0} + (zero_point - 0x4b400000)};
}

// clamp(rne(v) + zero_point, lo, hi) of numbers, as n8_round: |hi - lo| is below 2^17.
N8_INLINE n8_s32s n8_round_numbers(n8_f32s v, const struct n8_rounding *to) {
    const float magic = 12582912.0f;
    v = n8_min(n8_max(v, to->lo), to->hi);
    return (n8_s32s)(v + magic) + to->bits;
}

// The same, NaN as 0.
N8_INLINE n8_s32s n8_round_all(n8_f32s v, const struct n8_rounding *to) {
    return n8_round_numbers(n8_number(v), to);
}

#endif // N8_VECTOR_VECTOR_H
