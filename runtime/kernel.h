// SPDX-License-Identifier: Apache-2.0
//
// What a kernel may rely on. Kernels are pure: they check nothing, allocate nothing and
// return void; conv2d.c, plan.c and run.c prove the preconditions written here.
//
// The struct offsets are repeated as macros because assembly includes this header too.
#ifndef N8_KERNEL_H
#define N8_KERNEL_H

// Bytes that may be read (never used) behind the last pixel of any int8 activation.
#define N8_SLACK 64

// The implicit GEMM works on tiles of N8_MR pixels x N8_NR channels, N8_KR bytes deep.
#define N8_MR 4
#define N8_NR 4
#define N8_KR 16

// struct n8_igemm_args
#define N8_OFF_IG_OUT                 0
#define N8_OFF_IG_OUT_STRIDE          8
#define N8_OFF_IG_ROWS                16
#define N8_OFF_IG_WEIGHTS             24
#define N8_OFF_IG_PIXELS              32
#define N8_OFF_IG_CHANNELS            40
#define N8_OFF_IG_TAPS                48
#define N8_OFF_IG_DEPTH               56
#define N8_OFF_IG_BIAS                64
#define N8_OFF_IG_MULTIPLIER          72
#define N8_OFF_IG_BIAS_F32            80
#define N8_OFF_IG_SLOPE               88
#define N8_OFF_IG_RESIDUAL            96
#define N8_OFF_IG_RESIDUAL_STRIDE     104
#define N8_OFF_IG_RESIDUAL_SCALE      112
#define N8_OFF_IG_RESIDUAL_ZERO_POINT 116
#define N8_OFF_IG_ZERO_POINT          120
#define N8_OFF_IG_LO                  124
#define N8_OFF_IG_HI                  128

// struct n8_depthwise_args
#define N8_OFF_DW_OUT           0
#define N8_OFF_DW_OUT_STRIDE    8
#define N8_OFF_DW_ROWS          16
#define N8_OFF_DW_TAP_STRIDE    24
#define N8_OFF_DW_STEP          32
#define N8_OFF_DW_WEIGHTS       40
#define N8_OFF_DW_PIXELS        48
#define N8_OFF_DW_CHANNELS      56
#define N8_OFF_DW_BIAS          64
#define N8_OFF_DW_MULTIPLIER    72
#define N8_OFF_DW_SLOPE         80
#define N8_OFF_DW_ZERO_POINT    88
#define N8_OFF_DW_LO            92
#define N8_OFF_DW_HI            96
#define N8_OFF_DW_KERNEL_HEIGHT 100
#define N8_OFF_DW_KERNEL_WIDTH  104

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

// acc''[p][n] = bias[n] + sum over taps t and bytes k of rows[p / 4][t][p % 4][k] * w[n][t][k],
// exact in int32 (12), and then the epilogue that the kernel's name says:
//   igemm_s8_s32      out[p][n] = acc''
//   igemm_s8_f32      out[p][n] = fadd(fmul((float) acc'', multiplier[n]), bias_f32[n])      (4)
//   igemm_s8_s8       v = fmul((float) acc'', multiplier[n]);
//                     v = slope && v < 0 ? fmul(v, slope[n]) : v;
//                     out[p][n] = clamp(rne(v) + zero_point, lo, hi)                    (5)(5b)
//   igemm_s8_s8_add   the same with v = fadd(fmul((float) acc'', multiplier[n]),
//                     fmul((float)(residual[p][n] - residual_zero_point), residual_scale))   (6)
struct n8_igemm_args {
    void *out;                 // pixel p at out + p * out_stride; exactly `channels` are written
    ptrdiff_t out_stride;      // bytes; s32 and f32: a multiple of 4
    const int8_t *const *rows; // [ceil(pixels / 4)][taps][4]; the last tile repeats a valid row
    const int8_t *weights;     // [ceil(channels / 4)][taps][depth / 16][4][16], zero padded,
                               // 16-byte aligned; |w| <= 127
    size_t pixels;             // >= 1
    size_t channels;           // >= 1
    size_t taps;               // >= 1
    size_t depth;              // bytes of a row, a multiple of 16, >= 16; all readable
    const int32_t *bias;       // arrays: [channels rounded up to 4], 16-byte aligned
    const float *multiplier;
    const float *bias_f32;
    const float *slope;     // finite, or NULL
    const int8_t *residual; // pixel p at residual + p * residual_stride, N8_SLACK readable
    ptrdiff_t residual_stride;
    float residual_scale;
    int32_t residual_zero_point;
    int32_t zero_point; // -128 <= lo <= hi <= 127, and -128 <= zero_point <= 127
    int32_t lo, hi;
};

// One row of a depthwise convolution:
// acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c],
// then requantized as in igemm_s8_s8. The 3x3 kernels ignore kernel_height and kernel_width;
// 3x3s1 needs step == tap_stride, 3x3s2 step == 2 * tap_stride.
struct n8_depthwise_args {
    int8_t *out; // pixel p at out + p * out_stride; `channels` are written
    ptrdiff_t out_stride;
    const int8_t *const *rows; // [kernel_height]: the pixel under tap x = 0 of output 0
    ptrdiff_t tap_stride;      // bytes between the pixels under neighbouring taps
    ptrdiff_t step;            // bytes between the pixels under tap 0 of neighbouring outputs
    const int8_t *weights;     // [channels / 8][kernel_height][kernel_width][8], 8-byte aligned
    size_t pixels;             // >= 1
    size_t channels;           // a multiple of 8, >= 8: the padded count
    const int32_t *bias;       // arrays: [channels], 16-byte aligned
    const float *multiplier;
    const float *slope; // finite, or NULL
    int32_t zero_point;
    int32_t lo, hi;
    int32_t kernel_height, kernel_width;
};

typedef void n8_igemm_fn(const struct n8_igemm_args *args);
typedef void n8_depthwise_fn(const struct n8_depthwise_args *args);

// (2) with inverse = float32(1 / scale). -128 <= lo <= zero_point <= hi <= 127.
typedef void n8_quantize_fn(int8_t *out, const float *in, size_t count, float inverse,
                            int32_t zero_point, int32_t lo, int32_t hi);
// (1): fmul((float)(in - zero_point), scale)
typedef void n8_dequantize_fn(float *out, const int8_t *in, size_t count, float scale,
                              int32_t zero_point);
// (4): fadd(fmul((float) in, scale[c]), bias[c]); bias may be NULL, which adds 0
typedef void n8_dequantize_acc_fn(float *out, const int32_t *in, size_t pixels, size_t channels,
                                  const float *scale, const float *bias);
// (5)
typedef void n8_requantize_acc_fn(int8_t *out, const int32_t *in, size_t pixels, size_t channels,
                                  const float *multiplier, int32_t zero_point, int32_t lo,
                                  int32_t hi);

// v = fmul((float)(a - a_zero_point), a_scale) [fadd fmul((float)(b - b_zero_point), b_scale)];
// v = v < 0 ? fmul(v, slope) : v; out = clamp(rne(v) + zero_point, lo, hi)                  (6)
struct n8_pointwise_args {
    int8_t *out;
    const int8_t *a;
    const int8_t *b; // NULL for requantize_s8
    size_t count;
    float a_scale, b_scale, slope;
    int32_t a_zero_point, b_zero_point, zero_point, lo, hi;
};
typedef void n8_pointwise_fn(const struct n8_pointwise_args *args);

// One output pixel of a pool: `taps` pixels of `channels` bytes each. Max: the largest, clamped
// to lo .. hi; average: v = fmul((float)(sum - taps * in_zero_point), multiplier), then as (5).
struct n8_pool_args {
    int8_t *out;
    const int8_t *const *rows; // [taps]
    size_t taps;               // >= 1
    size_t channels;
    float multiplier; // average: scale_in / (scale_out * count), (9)
    int32_t in_zero_point, zero_point, lo, hi;
};
typedef void n8_pool_fn(const struct n8_pool_args *args);

// (14) over `count` contiguous floats, count >= 1.
typedef void n8_softmax_fn(float *out, const float *in, size_t count);

// The table of kernels, one function pointer per operation; every row of kernels.inc that
// this build has is declared here and checked against its slot's type.
#define N8_SLOTS(X)                                                                                \
    X(quantize_f32_s8, n8_quantize_fn)                                                             \
    X(dequantize_s8_f32, n8_dequantize_fn)                                                         \
    X(dequantize_s32_f32, n8_dequantize_acc_fn)                                                    \
    X(requantize_s32_s8, n8_requantize_acc_fn)                                                     \
    X(igemm_s8_s32, n8_igemm_fn)                                                                   \
    X(igemm_s8_f32, n8_igemm_fn)                                                                   \
    X(igemm_s8_s8, n8_igemm_fn)                                                                    \
    X(igemm_s8_s8_add, n8_igemm_fn)                                                                \
    X(depthwise_s8, n8_depthwise_fn)                                                               \
    X(depthwise3x3s1_s8, n8_depthwise_fn)                                                          \
    X(depthwise3x3s2_s8, n8_depthwise_fn)                                                          \
    X(add_s8, n8_pointwise_fn)                                                                     \
    X(requantize_s8, n8_pointwise_fn)                                                              \
    X(maxpool_s8, n8_pool_fn)                                                                      \
    X(avgpool_s8, n8_pool_fn)                                                                      \
    X(softmax_f32, n8_softmax_fn)

#define N8_KERNEL(slot, isa)   n8_##slot##_slot n8_##slot##_##isa;
#define N8_TYPEDEF(slot, type) typedef type n8_##slot##_slot;
N8_SLOTS(N8_TYPEDEF)
#include "kernels.inc"
#undef N8_TYPEDEF
#undef N8_KERNEL

#if defined(__aarch64__)
#define N8_PIN(macro, type, member)                                                                \
    _Static_assert(offsetof(struct type, member) == (macro), #member)
N8_PIN(N8_OFF_IG_OUT, n8_igemm_args, out);
N8_PIN(N8_OFF_IG_OUT_STRIDE, n8_igemm_args, out_stride);
N8_PIN(N8_OFF_IG_ROWS, n8_igemm_args, rows);
N8_PIN(N8_OFF_IG_WEIGHTS, n8_igemm_args, weights);
N8_PIN(N8_OFF_IG_PIXELS, n8_igemm_args, pixels);
N8_PIN(N8_OFF_IG_CHANNELS, n8_igemm_args, channels);
N8_PIN(N8_OFF_IG_TAPS, n8_igemm_args, taps);
N8_PIN(N8_OFF_IG_DEPTH, n8_igemm_args, depth);
N8_PIN(N8_OFF_IG_BIAS, n8_igemm_args, bias);
N8_PIN(N8_OFF_IG_MULTIPLIER, n8_igemm_args, multiplier);
N8_PIN(N8_OFF_IG_BIAS_F32, n8_igemm_args, bias_f32);
N8_PIN(N8_OFF_IG_SLOPE, n8_igemm_args, slope);
N8_PIN(N8_OFF_IG_RESIDUAL, n8_igemm_args, residual);
N8_PIN(N8_OFF_IG_RESIDUAL_STRIDE, n8_igemm_args, residual_stride);
N8_PIN(N8_OFF_IG_RESIDUAL_SCALE, n8_igemm_args, residual_scale);
N8_PIN(N8_OFF_IG_RESIDUAL_ZERO_POINT, n8_igemm_args, residual_zero_point);
N8_PIN(N8_OFF_IG_ZERO_POINT, n8_igemm_args, zero_point);
N8_PIN(N8_OFF_IG_LO, n8_igemm_args, lo);
N8_PIN(N8_OFF_IG_HI, n8_igemm_args, hi);
N8_PIN(N8_OFF_DW_OUT, n8_depthwise_args, out);
N8_PIN(N8_OFF_DW_OUT_STRIDE, n8_depthwise_args, out_stride);
N8_PIN(N8_OFF_DW_ROWS, n8_depthwise_args, rows);
N8_PIN(N8_OFF_DW_TAP_STRIDE, n8_depthwise_args, tap_stride);
N8_PIN(N8_OFF_DW_STEP, n8_depthwise_args, step);
N8_PIN(N8_OFF_DW_WEIGHTS, n8_depthwise_args, weights);
N8_PIN(N8_OFF_DW_PIXELS, n8_depthwise_args, pixels);
N8_PIN(N8_OFF_DW_CHANNELS, n8_depthwise_args, channels);
N8_PIN(N8_OFF_DW_BIAS, n8_depthwise_args, bias);
N8_PIN(N8_OFF_DW_MULTIPLIER, n8_depthwise_args, multiplier);
N8_PIN(N8_OFF_DW_SLOPE, n8_depthwise_args, slope);
N8_PIN(N8_OFF_DW_ZERO_POINT, n8_depthwise_args, zero_point);
N8_PIN(N8_OFF_DW_LO, n8_depthwise_args, lo);
N8_PIN(N8_OFF_DW_HI, n8_depthwise_args, hi);
N8_PIN(N8_OFF_DW_KERNEL_HEIGHT, n8_depthwise_args, kernel_height);
N8_PIN(N8_OFF_DW_KERNEL_WIDTH, n8_depthwise_args, kernel_width);
#undef N8_PIN
#endif

#endif // __ASSEMBLER__
#endif // N8_KERNEL_H
