// SPDX-License-Identifier: Apache-2.0
//
// Every kernel of kernels.inc, as one that computes nothing and writes down its sizes. They are
// what its time depends on; the calls below say which. Those that return numbers that decide what
// the caller does next return harmless ones.
#include "kernel.h"
#include "record.h"

#define RECORD(symbol, ...) n8_record(#symbol, (const uint32_t[N8_TRACE_SIZES]){__VA_ARGS__})
#define SIZE(value)         ((uint32_t)(value))
#define HAS(pointer)        ((pointer) != NULL)

// What an epilogue does more or less: a bit each.
enum { SMALL = 1, LEAKY = 2, CLAMPS_LOW = 4, CLAMPS_HIGH = 8, ODD_ZERO_POINT = 16, WHOLE = 32 };
#define EPILOGUE(a)                                                                                \
    SIZE((a->small ? SMALL : 0) | (a->slope != NULL ? LEAKY : 0) |                                 \
         (a->lo > INT8_MIN ? CLAMPS_LOW : 0) | (a->hi < INT8_MAX ? CLAMPS_HIGH : 0) |              \
         (a->zero_point % 2 != 0 ? ODD_ZERO_POINT : 0))

// Parts of GROUPS that are summed deep, of all panels.
static uint32_t deep_parts(const struct n8_igemm_args *a) {
    const size_t panels = (a->channels + a->tile->nr - 1) / a->tile->nr, group = 2 * a->tile->kr;
    const size_t count = panels * a->taps * ((a->depth + group - 1) / group);
    uint32_t sum = 0;
    for (size_t i = 0; a->deep != NULL && i < count; i++) {
        for (size_t q = 0; q < N8_MARKED; q++) {
            sum += a->deep[sizeof(uint64_t) * i + 2 * q] & 1;
        }
    }
    return sum;
}

// A kernel that takes a struct, `a`.
#define TAKES(symbol, args, ...)                                                                   \
    void symbol(const struct args *a) {                                                            \
        RECORD(symbol, __VA_ARGS__);                                                               \
    }
#define IGEMM(symbol)                                                                              \
    TAKES(symbol, n8_igemm_args, SIZE(a->pixels), SIZE(a->channels), SIZE(a->taps),                \
          SIZE(a->depth), EPILOGUE(a) | (a->whole ? WHOLE : 0), deep_parts(a), a->tile->mr,        \
          a->tile->nr)
#define DEPTHWISE(symbol)                                                                          \
    TAKES(symbol, n8_depthwise_args, SIZE(a->pixels), SIZE(a->channels), SIZE(a->kernel_height),   \
          SIZE(a->kernel_width), EPILOGUE(a), SIZE(a->left + a->right), a->out_row_stride != 0)
#define WINOGRAD(symbol)                                                                           \
    TAKES(symbol, n8_winograd_args, SIZE(a->tiles), SIZE(a->depth), SIZE(a->pairs))
#define WINOGRAD_INPUT(symbol)                                                                     \
    void symbol(int16_t *out, size_t plane, const int8_t *in, ptrdiff_t row, ptrdiff_t pixel,      \
                size_t channels) {                                                                 \
        RECORD(symbol, SIZE(channels));                                                            \
    }
#define WINOGRAD_WEIGHTS(symbol)                                                                   \
    void symbol(int16_t *out, size_t plane, const int8_t *in, size_t depth, size_t width,          \
                size_t pair) {                                                                     \
        RECORD(symbol, SIZE(depth), SIZE(pair));                                                   \
    }
#define WINOGRAD_GEMM(symbol)                                                                      \
    TAKES(symbol, n8_winograd_gemm_args, SIZE(a->tiles), SIZE(a->planes), SIZE(a->depth),          \
          SIZE(a->width))
#define WINOGRAD_OUTPUT(symbol)                                                                    \
    TAKES(symbol, n8_winograd_output_args, SIZE(a->tiles), SIZE(a->channels), HAS(a->slope),       \
          HAS(a->residual))
#define POINTWISE(symbol)                                                                          \
    TAKES(symbol, n8_pointwise_args, SIZE(a->count), a->slope != 1, HAS(a->scales))
#define POINTWISE_S16(symbol)                                                                      \
    TAKES(symbol, n8_add_s16_args, SIZE(a->count), a->slope != 1, HAS(a->scales))
#define OUTPUT(symbol)                                                                             \
    TAKES(symbol, n8_output_args, SIZE(a->pixels), SIZE(a->channels), HAS(a->bias), HAS(a->slope), \
          HAS(a->residual))
#define DEPTHWISE_S16(symbol)                                                                      \
    TAKES(symbol, n8_depthwise_s16_args, SIZE(a->pixels), SIZE(a->channels),                       \
          SIZE(a->kernel_height), SIZE(a->kernel_width))
#define POOL(symbol)  TAKES(symbol, n8_pool_args, SIZE(a->taps), SIZE(a->channels), SIZE(a->pixels))
#define BLEND(symbol) TAKES(symbol, n8_blend_args, SIZE(a->channels))
#define INTERPOLATE(symbol) TAKES(symbol, n8_interpolate_args, SIZE(a->count))
#define NORMALIZE(symbol)   TAKES(symbol, n8_normalize_args, SIZE(a->count))
#define QUANTIZE(symbol)                                                                           \
    void symbol(int8_t *out, const float *in, size_t count, float inverse, int32_t zero_point,     \
                int32_t lo, int32_t hi) {                                                          \
        RECORD(symbol, SIZE(count));                                                               \
    }
#define DEQUANTIZE(symbol)                                                                         \
    void symbol(float *out, const int8_t *in, size_t count, float scale, int32_t zero_point) {     \
        RECORD(symbol, SIZE(count));                                                               \
    }
#define QUANTIZE_S16(symbol)                                                                       \
    void symbol(int16_t *out, const float *in, size_t count, float inverse, int32_t zero_point,    \
                int32_t lo, int32_t hi) {                                                          \
        RECORD(symbol, SIZE(count));                                                               \
    }
#define DEQUANTIZE_S16(symbol)                                                                     \
    void symbol(float *out, const int16_t *in, size_t count, float scale, int32_t zero_point) {    \
        RECORD(symbol, SIZE(count));                                                               \
    }
#define DEQUANTIZE_ACC(symbol)                                                                     \
    void symbol(float *out, const int32_t *in, size_t pixels, size_t channels, const float *scale, \
                const float *bias) {                                                               \
        RECORD(symbol, SIZE(pixels), SIZE(channels), HAS(bias));                                   \
    }
#define REQUANTIZE_ACC(symbol)                                                                     \
    void symbol(int8_t *out, const int32_t *in, size_t pixels, size_t channels,                    \
                const float *multiplier, int32_t zero_point, int32_t lo, int32_t hi) {             \
        RECORD(symbol, SIZE(pixels), SIZE(channels));                                              \
    }
#define TABLE(symbol)                                                                              \
    void symbol(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride, size_t pixels, \
                size_t count, const int8_t *table) {                                               \
        RECORD(symbol, SIZE(pixels), SIZE(count));                                                 \
    }
#define TABLES(symbol)                                                                             \
    void symbol(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride, size_t pixels, \
                const int8_t *const *tables) {                                                     \
        RECORD(symbol, SIZE(pixels));                                                              \
    }
#define LRN(symbol)    TAKES(symbol, n8_lrn_args, SIZE(a->channels), SIZE(a->reach))
#define AFFINE(symbol) TAKES(symbol, n8_affine_args, SIZE(a->pixels), SIZE(a->channels))
#define SUMS(symbol)                                                                               \
    void symbol(int64_t *sums, const int16_t *in, size_t count) {                                  \
        sums[0] = 0;                                                                               \
        sums[1] = (int64_t)count;                                                                  \
        RECORD(symbol, SIZE(count));                                                               \
    }
#define POWERS(symbol)                                                                             \
    void symbol(int64_t *sums, const int8_t *in, size_t count, const int32_t *powers) {            \
        sums[0] = 0;                                                                               \
        sums[1] = 1 << 30;                                                                         \
        RECORD(symbol, SIZE(count));                                                               \
    }
#define TOP(symbol)                                                                                \
    void symbol(int8_t *out, const int8_t *in, size_t count, const int8_t *table, int32_t first,   \
                int32_t rest) {                                                                    \
        RECORD(symbol, SIZE(count));                                                               \
    }
#define PLANES(symbol)                                                                             \
    void symbol(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,                \
                size_t channels, size_t pixels) {                                                  \
        RECORD(symbol, SIZE(pixels), SIZE(channels));                                              \
    }
#define TRANSPOSE(symbol)                                                                          \
    void symbol(void *out, size_t out_stride, const void *in, size_t in_stride, size_t rows,       \
                size_t columns) {                                                                  \
        RECORD(symbol, SIZE(rows), SIZE(columns));                                                 \
    }
#define SOFTMAX(symbol)                                                                            \
    void symbol(float *out, const float *in, size_t count) {                                       \
        RECORD(symbol, SIZE(count));                                                               \
    }

// What each slot takes.
#define OF_quantize_f32_s8     QUANTIZE
#define OF_dequantize_s8_f32   DEQUANTIZE
#define OF_quantize_f32_s16    QUANTIZE_S16
#define OF_dequantize_s16_f32  DEQUANTIZE_S16
#define OF_dequantize_s32_f32  DEQUANTIZE_ACC
#define OF_requantize_s32_s8   REQUANTIZE_ACC
#define OF_add_s8              POINTWISE
#define OF_add_s16             POINTWISE_S16
#define OF_multiply_s16        POINTWISE_S16
#define OF_output_s32_s16      OUTPUT
#define OF_depthwise_s16_s32   DEPTHWISE_S16
#define OF_requantize_s8       POINTWISE
#define OF_multiply_s8         POINTWISE
#define OF_divide_s8           POINTWISE
#define OF_table_s8            TABLE
#define OF_interpolate_s16     INTERPOLATE
#define OF_tables_s8           TABLES
#define OF_affine_s8           AFFINE
#define OF_lrn_s8              LRN
#define OF_sums_s16            SUMS
#define OF_normalize_s16       NORMALIZE
#define OF_maxpool_s8          POOL
#define OF_avgpool_s8          POOL
#define OF_winograd_s8         WINOGRAD
#define OF_winograd_weights_s8 WINOGRAD_WEIGHTS
#define OF_blend_s8            BLEND
#define OF_blend_f32           BLEND
#define OF_softmax_f32         SOFTMAX
#define OF_powers_s8           POWERS
#define OF_top_s8              TOP
#define OF_interleave_s8       PLANES
#define OF_deinterleave_s8     PLANES
#define OF_transpose_f32       TRANSPOSE
#define OF_igemm_s8_s32        IGEMM
#define OF_igemm_s8_f32        IGEMM
#define OF_igemm_s8_s8         IGEMM
#define OF_igemm_s8_s8_add     IGEMM
#define OF_depthwise_s8        DEPTHWISE
#define OF_depthwise3x3s1_s8   DEPTHWISE
#define OF_depthwise3x3s2_s8   DEPTHWISE
#define OF_winograd_input_s8   WINOGRAD_INPUT
#define OF_winograd_gemm_s32   WINOGRAD_GEMM
#define OF_winograd_output_s8  WINOGRAD_OUTPUT

#define N8_KERNEL(slot, suffix) OF_##slot(n8_##slot##_##suffix)
#include "kernels.inc"
