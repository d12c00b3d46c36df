// SPDX-License-Identifier: Apache-2.0
//
// The kernels of int16 activations: every count of values, the ends of int16 and of int32.
#include "checkasm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    COUNTS = 36,
    LARGE = 2000, // the last case
    ROUNDS = 12,  // of each count
};

static size_t count_of(int step) {
    return step < COUNTS * ROUNDS ? (size_t)(step % COUNTS) : LARGE;
}

static int32_t code(struct rng *rng) {
    static const int32_t special[] = {INT16_MIN, INT16_MAX, 0, -1, INT16_MIN + 1};
    const uint32_t pick = rng_below(rng, 10);
    return pick < 5 ? special[pick] : rng_range(rng, INT16_MIN, INT16_MAX);
}

// lo <= zero_point <= hi.
static struct range wide_range(struct rng *rng) {
    const struct range full = {0, INT16_MIN, INT16_MAX};
    if (rng_below(rng, 2))
        return (struct range){code(rng), full.lo, full.hi};
    const int32_t lo = code(rng), hi = rng_range(rng, lo, INT16_MAX);
    return (struct range){rng_range(rng, lo, hi), lo, hi};
}

static float scale_of(struct rng *rng) {
    static const float special[] = {1.0f, 0.5f, 1.0f / 6.0f, 1e-30f, 0x1p64f, 0.0f};
    const uint32_t pick = rng_below(rng, 12);
    return pick < 6 ? special[pick] : ldexpf(rng_float(rng, 1.0f, 2.0f), rng_range(rng, -9, 4));
}

void cases_n8_quantize_s16_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t count = count_of(step);
        const float unit = ldexpf(rng_float(rng, 1.0f, 2.0f), rng_range(rng, -12, 4));
        const struct range range = wide_range(rng);
        int16_t *out = guard_place(rng, REGION_OUT, count * sizeof *out);
        float *in = guard_place(rng, REGION_IN, count * sizeof *in);
        data_floats(rng, in, count, unit * (rng_below(rng, 2) ? 1.0f : 200.0f));
        struct test_case test = {.out = (uint8_t *)out, .out_size = count * sizeof *out};
        test.call = (struct call){
            .signature = SIGNATURE_QUANTIZE_S16,
            .x = {(uintptr_t)out, (uintptr_t)in, count, data_int32(rng, range.zero_point),
                  data_int32(rng, range.lo), data_int32(rng, range.hi)},
            .v0 = data_float(rng, 1.0f / unit),
        };
        snprintf(test.text, sizeof test.text, "count=%zu zero_point=%d lo=%d hi=%d", count,
                 range.zero_point, range.lo, range.hi);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}

void cases_n8_dequantize_s16_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t count = count_of(step);
        const float scale = scale_of(rng);
        const int32_t zero_point = code(rng);
        float *out = guard_place(rng, REGION_OUT, count * sizeof *out);
        int16_t *in = guard_place(rng, REGION_IN, count * sizeof *in);
        data_s16(rng, in, count, INT16_MIN, INT16_MAX);
        struct test_case test = {.out = (uint8_t *)out, .out_size = count * sizeof *out};
        test.call = (struct call){
            .signature = SIGNATURE_DEQUANTIZE_S16,
            .x = {(uintptr_t)out, (uintptr_t)in, count, data_int32(rng, zero_point)},
            .v0 = data_float(rng, scale),
        };
        snprintf(test.text, sizeof test.text, "count=%zu scale=%g zero_point=%d", count,
                 (double)scale, zero_point);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}

void cases_n8_add_s16_fn(struct context *context) {
    struct rng *rng = &context->rng;
    const bool products = strcmp(context->kernel->slot, "multiply_s16") == 0;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t count = count_of(step), size = count * sizeof(int16_t);
        const struct range range = wide_range(rng);
        int16_t *out = guard_place(rng, REGION_OUT, size);
        int16_t *a = guard_place(rng, REGION_IN, size);
        int16_t *b = guard_place(rng, REGION_RESIDUAL, size);
        const size_t readable = (count + 15) / 16 * 16;
        float *scales = guard_place(rng, REGION_MULTIPLIER, readable * sizeof *scales);
        data_s16(rng, a, count, INT16_MIN, INT16_MAX);
        data_s16(rng, b, count, INT16_MIN, INT16_MAX);
        data_multipliers(rng, (int)rng_below(rng, DATA_PATTERNS), scales, readable);
        struct n8_add_s16_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_add_s16_args){
            .out = out,
            .a = a,
            .b = b,
            .count = count,
            .scales = products && rng_below(rng, 2) ? scales : NULL,
            .a_scale = scale_of(rng) / (products ? 4096.0f : 1.0f),
            .b_scale = rng_below(rng, 2) ? scale_of(rng) : -scale_of(rng),
            .slope = data_slope(rng),
            .a_zero_point = code(rng),
            .b_zero_point = code(rng),
            .zero_point = range.zero_point,
            .lo = range.lo,
            .hi = range.hi,
        };
        struct test_case test = {.out = (uint8_t *)out, .out_size = size};
        test.operands[0].field = (const int8_t **)(void *)&args->a;
        test.operands[1].field = (const int8_t **)(void *)&args->b;
        test.call = (struct call){.signature = SIGNATURE_ADD_S16, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text, "count=%zu scales=%g,%g,%d slope=%g", count,
                 (double)args->a_scale, (double)args->b_scale, args->scales != NULL,
                 (double)args->slope);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}

void cases_n8_interpolate_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t count = count_of(step), size = count * sizeof(int16_t);
        const struct range from = wide_range(rng), to = wide_range(rng);
        const int32_t shift = rng_range(rng, 0, 15);
        const size_t values = 2 * (((size_t)(from.hi - from.lo) >> shift) + 1);
        int16_t *out = guard_place(rng, REGION_OUT, size);
        int16_t *in = guard_place(rng, REGION_IN, size);
        int16_t *lines = guard_place(rng, REGION_WEIGHTS, values * sizeof *lines);
        data_s16(rng, in, count, INT16_MIN, INT16_MAX);
        data_s16(rng, lines, values, INT16_MIN, INT16_MAX);
        struct n8_interpolate_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_interpolate_args){
            .out = out,
            .in = in,
            .count = count,
            .lines = lines,
            .in_lo = from.lo,
            .in_hi = from.hi,
            .lo = to.lo,
            .hi = to.hi,
            .shift = shift,
            .fraction = rng_below(rng, 2) ? rng_range(rng, 0, 8) : 0,
        };
        struct test_case test = {.out = (uint8_t *)out, .out_size = size};
        test.operands[0].field = (const int8_t **)(void *)&args->in;
        test.call = (struct call){.signature = SIGNATURE_INTERPOLATE, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text, "count=%zu in=%d..%d shift=%d fraction=%d", count,
                 from.lo, from.hi, shift, args->fraction);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}

void cases_n8_output_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const bool last = step == COUNTS * ROUNDS;
        const int pattern = (int)rng_below(rng, DATA_PATTERNS);
        const size_t channels = last ? 100 : 1 + count_of(step),
                     pixels = last ? 9 : 1 + rng_below(rng, 3);
        const struct range range = wide_range(rng);
        const size_t stride = (channels + rng_below(rng, 9)) * sizeof(int16_t);
        const size_t sums_stride = (channels + rng_below(rng, 9)) * sizeof(int32_t);
        const size_t size = (pixels - 1) * stride + channels * sizeof(int16_t);
        const size_t padded = (channels + 3) / 4 * 4; // which may be read
        const size_t sums_size = (pixels - 1) * sums_stride + padded * sizeof(int32_t);
        const size_t residual_size = (pixels - 1) * stride + padded * sizeof(int16_t);
        int16_t *out = guard_place(rng, REGION_OUT, residual_size); // may be the residual
        int16_t *residual = guard_place(rng, REGION_RESIDUAL, residual_size);
        int32_t *sums = guard_place(rng, REGION_IN, sums_size);
        int32_t *bias = guard_place(rng, REGION_BIAS, padded * sizeof *bias);
        float *multiplier = guard_place(rng, REGION_MULTIPLIER, padded * sizeof *multiplier);
        float *slope = guard_place(rng, REGION_SLOPE, padded * sizeof *slope);
        data_s16(rng, residual, residual_size / sizeof *residual, INT16_MIN, INT16_MAX);
        for (size_t i = 0; i < sums_size / sizeof *sums; i++)
            sums[i] = pattern == DATA_TIES ? rng_range(rng, -70000, 70000) : data_sum(rng);
        data_bias(rng, pattern, bias, padded, 0);
        data_multipliers(rng, pattern, multiplier, padded);
        for (size_t n = 0; n < padded; n++)
            slope[n] = data_slope(rng);
        struct n8_output_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_output_args){
            .out = out,
            .out_stride = (ptrdiff_t)stride,
            .sums = sums,
            .sums_stride = (ptrdiff_t)sums_stride,
            .residual = rng_below(rng, 2) ? residual : NULL,
            .residual_stride = (ptrdiff_t)stride,
            .bias = rng_below(rng, 4) ? bias : NULL,
            .multiplier = multiplier,
            .slope = rng_below(rng, 2) ? slope : NULL,
            .pixels = pixels,
            .channels = channels,
            .residual_scale = rng_below(rng, 2) ? scale_of(rng) : -scale_of(rng),
            .residual_zero_point = code(rng),
            .zero_point = range.zero_point,
            .lo = range.lo,
            .hi = range.hi,
        };
        struct test_case test = {.out = (uint8_t *)out, .out_size = size};
        if (args->residual != NULL)
            test.operands[0].field = (const int8_t **)(void *)&args->residual;
        test.call = (struct call){.signature = SIGNATURE_OUTPUT, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text,
                 "channels=%zu pixels=%zu residual=%d bias=%d slope=%d pattern=%d", channels,
                 pixels, args->residual != NULL, args->bias != NULL, args->slope != NULL, pattern);
        check_step(context, &test, last);
    }
}

void cases_n8_depthwise_s16_fn(struct context *context) {
    enum { CASES = 300, LANES = 8, TAPS = 5 };
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const bool last = step == CASES;
        const size_t channels = LANES * (1 + (size_t)step % 3);
        const size_t pixels = last ? 20 : 1 + (size_t)step / 3 % 11;
        const size_t height = 1 + rng_below(rng, TAPS), width = 1 + rng_below(rng, TAPS);
        const size_t pixel = channels + (rng_below(rng, 2) ? LANES : 0);
        const size_t tap = pixel * (1 + rng_below(rng, 2)), move = pixel * (1 + rng_below(rng, 2));
        const size_t row = (pixels - 1) * move + (width - 1) * tap + channels;
        const size_t taps = height * width;
        int32_t *sums = guard_place(rng, REGION_OUT, pixels * channels * sizeof *sums);
        int16_t *in = guard_place(rng, REGION_IN, height * row * sizeof *in);
        int16_t *weights = guard_place(rng, REGION_WEIGHTS, taps * channels * sizeof *weights);
        int32_t *bias = guard_place(rng, REGION_BIAS, channels * sizeof *bias);
        const int16_t **rows = guard_place(rng, REGION_ROWS, height * sizeof *rows);
        data_s16(rng, in, height * row, INT16_MIN, INT16_MAX);
        for (size_t i = 0; i < taps * channels; i++)
            weights[i] = (int16_t)(rng_below(rng, 4) == 0 ? -128 : rng_range(rng, -128, 127));
        data_bias(rng, 0, bias, channels, 0);
        for (size_t y = 0; y < height; y++)
            rows[y] = in + rng_below(rng, (uint32_t)height) * row;
        struct n8_depthwise_s16_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_depthwise_s16_args){
            .sums = sums,
            .rows = rows,
            .weights = weights,
            .bias = bias,
            .tap_stride = (ptrdiff_t)(tap * sizeof *in),
            .step = (ptrdiff_t)(move * sizeof *in),
            .pixels = pixels,
            .channels = channels,
            .kernel_height = height,
            .kernel_width = width,
        };
        struct test_case test = {.out = (uint8_t *)sums,
                                 .out_size = pixels * channels * sizeof *sums};
        test.call = (struct call){.signature = SIGNATURE_DEPTHWISE_S16, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text, "channels=%zu pixels=%zu height=%zu width=%zu",
                 channels, pixels, height, width);
        check_step(context, &test, last);
    }
}
