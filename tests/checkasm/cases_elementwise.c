// SPDX-License-Identifier: Apache-2.0
//
// Kernels over contiguous values: every count from 0 to four blocks and three more.
#include "checkasm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    COUNTS = 68,
    LARGE = 4000, // the last case
    ROUNDS = 12,  // of each count
};

static size_t count_of(int step) {
    return step < COUNTS * ROUNDS ? (size_t)(step % COUNTS) : LARGE;
}

static float unit_of(struct rng *rng) {
    const int exponent = rng_range(rng, -12, 4);
    return ldexpf(rng_below(rng, 2) ? 1.0f : rng_float(rng, 1.0f, 2.0f), exponent);
}

void cases_n8_quantize_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t count = count_of(step);
        const float unit = unit_of(rng);
        const struct range range = data_range(rng, true);
        int8_t *out = guard_place(rng, REGION_OUT, count);
        float *in = guard_place(rng, REGION_IN, count * sizeof *in);
        data_floats(rng, in, count, unit);
        struct test_case test = {.out = (uint8_t *)out, .out_size = count};
        test.call = (struct call){
            .signature = SIGNATURE_QUANTIZE,
            .x = {(uintptr_t)out, (uintptr_t)in, count, data_int32(rng, range.zero_point),
                  data_int32(rng, range.lo), data_int32(rng, range.hi)},
            .v0 = data_float(rng, 1.0f / unit),
        };
        snprintf(test.text, sizeof test.text, "count=%zu scale=%g zero_point=%d lo=%d hi=%d", count,
                 (double)unit, range.zero_point, range.lo, range.hi);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}

void cases_n8_dequantize_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t count = count_of(step);
        const float unit = unit_of(rng);
        const struct range range = data_range(rng, true);
        float *out = guard_place(rng, REGION_OUT, count * sizeof *out);
        int8_t *in = guard_place(rng, REGION_IN, count);
        rng_bytes(rng, in, count);
        struct test_case test = {.out = (uint8_t *)out, .out_size = count * sizeof *out};
        test.call = (struct call){
            .signature = SIGNATURE_DEQUANTIZE,
            .x = {(uintptr_t)out, (uintptr_t)in, count, data_int32(rng, range.zero_point)},
            .v0 = data_float(rng, unit),
        };
        snprintf(test.text, sizeof test.text, "count=%zu scale=%g zero_point=%d", count,
                 (double)unit, range.zero_point);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}

// (4) and (5) on sums that are already there: pixels 0 to 3, channels as the counts.
static void cases_acc(struct context *context, bool to_float) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const bool last = step == COUNTS * ROUNDS;
        const size_t channels = count_of(step);
        const size_t pixels = last ? 3 : rng_below(rng, 4);
        const size_t total = pixels * channels;
        const size_t out_size = total * (to_float ? sizeof(float) : sizeof(int8_t));
        const struct range range = data_range(rng, false);
        const int pattern = (int)rng_below(rng, DATA_PATTERNS);
        void *out = guard_place(rng, REGION_OUT, out_size);
        int32_t *in = guard_place(rng, REGION_IN, total * sizeof *in);
        float *scale = guard_place(rng, REGION_MULTIPLIER, channels * sizeof *scale);
        float *bias = guard_place(rng, REGION_BIAS_F32, channels * sizeof *bias);
        for (size_t i = 0; i < total; i++)
            in[i] = data_sum(rng);
        data_multipliers(rng, pattern, scale, channels);
        data_float_biases(rng, scale, bias, channels);
        const bool has_bias = rng_below(rng, 4) != 0;
        struct test_case test = {.out = out, .out_size = out_size};
        test.call = (struct call){
            .signature = to_float ? SIGNATURE_DEQUANTIZE_ACC : SIGNATURE_REQUANTIZE_ACC,
            .x = {(uintptr_t)out, (uintptr_t)in, pixels, channels, (uintptr_t)scale},
        };
        if (to_float) {
            test.call.x[5] = has_bias ? (uintptr_t)bias : 0;
        } else {
            test.call.x[5] = data_int32(rng, range.zero_point);
            test.call.x[6] = data_int32(rng, range.lo);
            test.call.x[7] = data_int32(rng, range.hi);
        }
        snprintf(test.text, sizeof test.text, "pixels=%zu channels=%zu bias=%d pattern=%d", pixels,
                 channels, has_bias, pattern);
        check_step(context, &test, last);
    }
}

void cases_n8_dequantize_acc_fn(struct context *context) {
    cases_acc(context, true);
}

void cases_n8_requantize_acc_fn(struct context *context) {
    cases_acc(context, false);
}

void cases_n8_pointwise_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t count = count_of(step);
        const struct range range = data_range(rng, false);
        const int pattern = (int)rng_below(rng, DATA_PATTERNS);
        float scales[2];
        data_multipliers(rng, pattern, scales, 2);
        int8_t *out = guard_place(rng, REGION_OUT, count);
        int8_t *a = guard_place(rng, REGION_IN, count);
        int8_t *b = guard_place(rng, REGION_RESIDUAL, count);
        rng_bytes(rng, a, count);
        rng_bytes(rng, b, count);
        struct n8_pointwise_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_pointwise_args){
            .out = out,
            .a = a,
            .b = strcmp(context->kernel->slot, "requantize_s8") == 0 ? NULL : b,
            .count = count,
            .a_scale = scales[0],
            .b_scale = scales[1],
            .slope = data_slope(rng),
            .a_zero_point = rng_range(rng, -128, 127),
            .b_zero_point = rng_range(rng, -128, 127),
            .zero_point = range.zero_point,
            .lo = range.lo,
            .hi = range.hi,
        };
        if (strcmp(context->kernel->slot, "multiply_s8") == 0 && rng_below(rng, 2)) {
            const size_t readable = (count + 15) / 16 * 16;
            float *each = guard_place(rng, REGION_MULTIPLIER, readable * sizeof *each);
            data_multipliers(rng, pattern, each, readable);
            args->scales = each;
        }
        struct test_case test = {.out = (uint8_t *)out, .out_size = count};
        test.operands[0].field = &args->a;
        test.operands[1].field = &args->b;
        test.call = (struct call){.signature = SIGNATURE_POINTWISE, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text, "count=%zu scales=%g,%g%s slope=%g", count,
                 (double)scales[0], (double)scales[1], args->scales ? " of channels" : "",
                 (double)args->slope);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}

void cases_n8_table_fn(struct context *context) {
    enum { ENTRIES = 256 };
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const bool last = step == COUNTS * ROUNDS;
        const bool whole = last || rng_below(rng, 4) == 0; // pixels without a gap
        const size_t count = whole ? 16 : count_of(step);
        const size_t pixels = last ? LARGE / count : rng_below(rng, 16);
        const size_t out_stride = count + (whole ? 0 : rng_below(rng, 20));
        const bool alike = whole || rng_below(rng, 2);
        const size_t in_stride = alike ? out_stride : count + rng_below(rng, 20);
        const bool none = pixels == 0 || count == 0;
        const size_t out_size = none ? 0 : (pixels - 1) * out_stride + count;
        const size_t in_size = none ? 0 : (pixels - 1) * in_stride + count;
        int8_t *out = guard_place(rng, REGION_OUT, out_size);
        int8_t *in = guard_place(rng, REGION_IN, in_size);
        int8_t *table = guard_place(rng, REGION_WEIGHTS, ENTRIES);
        rng_bytes(rng, in, in_size);
        rng_bytes(rng, table, ENTRIES);
        struct test_case test = {.out = (uint8_t *)out, .out_size = out_size};
        test.call = (struct call){
            .signature = SIGNATURE_TABLE,
            .x = {(uintptr_t)out, out_stride, (uintptr_t)in, in_stride, pixels, count,
                  (uintptr_t)table},
        };
        test.operands[0].argument = alike ? &test.call.x[2] : NULL;
        snprintf(test.text, sizeof test.text, "pixels=%zu count=%zu strides=%zu,%zu", pixels, count,
                 in_stride, out_stride);
        check_step(context, &test, last);
    }
}

void cases_n8_tables_fn(struct context *context) {
    enum { ENTRIES = 256, COLUMNS = 8 };
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const bool last = step == COUNTS * ROUNDS;
        const size_t pixels = last ? LARGE / COLUMNS : rng_below(rng, 16);
        const size_t out_stride = COLUMNS + rng_below(rng, 20);
        const bool alike = rng_below(rng, 2);
        const size_t in_stride = alike ? out_stride : COLUMNS + rng_below(rng, 20);
        const size_t out_size = pixels == 0 ? 0 : (pixels - 1) * out_stride + COLUMNS;
        const size_t in_size = pixels == 0 ? 0 : (pixels - 1) * in_stride + COLUMNS;
        const size_t distinct = 1 + rng_below(rng, COLUMNS);
        int8_t *out = guard_place(rng, REGION_OUT, out_size);
        int8_t *in = guard_place(rng, REGION_IN, in_size);
        int8_t *table = guard_place(rng, REGION_WEIGHTS, distinct * ENTRIES);
        const int8_t **tables = guard_place(rng, REGION_ROWS, COLUMNS * sizeof *tables);
        rng_bytes(rng, in, in_size);
        rng_bytes(rng, table, distinct * ENTRIES);
        for (size_t i = 0; i < COLUMNS; i++)
            tables[i] = table + rng_below(rng, (uint32_t)distinct) * ENTRIES;
        struct test_case test = {.out = (uint8_t *)out, .out_size = out_size};
        test.call = (struct call){
            .signature = SIGNATURE_TABLES,
            .x = {(uintptr_t)out, out_stride, (uintptr_t)in, in_stride, pixels, (uintptr_t)tables},
        };
        test.operands[0].argument = alike ? &test.call.x[2] : NULL;
        snprintf(test.text, sizeof test.text, "pixels=%zu strides=%zu,%zu", pixels, in_stride,
                 out_stride);
        check_step(context, &test, last);
    }
}

void cases_n8_pool_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t channels = count_of(step), window = 1 + rng_below(rng, 9);
        // Some windows have more taps than int16 sums hold.
        const size_t taps = rng_below(rng, 16) == 0 ? 200 + rng_below(rng, 400) : window;
        const size_t stride = channels + rng_below(rng, 9);
        const size_t pixels = 1 + rng_below(rng, 4), steps = rng_below(rng, 3);
        const bool real =
            strcmp(context->kernel->slot, "avgpool_s8") == 0 && rng_below(rng, 4) == 0;
        const size_t size = real ? sizeof(float) : 1;
        const size_t out_stride = (channels + rng_below(rng, 9)) * size;
        const size_t in_pixels = window + (pixels - 1) * steps;
        const size_t out_size = (pixels - 1) * out_stride + channels * size;
        const struct range range = data_range(rng, false);
        int8_t *out = guard_place(rng, REGION_OUT, out_size);
        int8_t *in = guard_place(rng, REGION_IN, in_pixels * stride + N8_SLACK);
        const int8_t **rows = guard_place(rng, REGION_ROWS, taps * sizeof *rows);
        if (rng_below(rng, 8) == 0)
            memset(in, rng_below(rng, 2) ? -128 : 127, in_pixels * stride + N8_SLACK);
        else
            rng_bytes(rng, in, in_pixels * stride + N8_SLACK);
        for (size_t t = 0; t < taps; t++)
            rows[t] = in + rng_below(rng, (uint32_t)window) * stride;
        struct n8_pool_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_pool_args){
            .out = out,
            .rows = rows,
            .taps = taps,
            .channels = channels,
            .pixels = pixels,
            .step = steps * stride,
            .out_stride = out_stride,
            .multiplier = (rng_below(rng, 2) ? 0.5f : rng_float(rng, 0.01f, 2.0f)) / (float)taps,
            .in_zero_point = rng_range(rng, -128, 127),
            .zero_point = range.zero_point,
            .lo = range.lo,
            .hi = range.hi,
            .real = real,
        };
        struct test_case test = {.out = (uint8_t *)out, .out_size = out_size};
        test.call = (struct call){.signature = SIGNATURE_POOL, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text,
                 "channels=%zu taps=%zu pixels=%zu multiplier=%g real=%d", channels, taps, pixels,
                 (double)args->multiplier, args->real);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}

void cases_n8_blend_fn(struct context *context) {
    struct rng *rng = &context->rng;
    const bool floats = strcmp(context->kernel->slot, "blend_f32") == 0;
    const size_t size = floats ? sizeof(float) : 1;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t channels = floats ? count_of(step) : 8 * (count_of(step) / 8 + 1);
        const struct range range = data_range(rng, false);
        void *out = guard_place(rng, REGION_OUT, channels * size);
        uint8_t *in = guard_place(rng, REGION_IN, 4 * channels * size);
        const void **four = guard_place(rng, REGION_ROWS, 4 * sizeof *four);
        if (floats) {
            data_floats(rng, (float *)(void *)in, 4 * channels, 1.0f);
        } else {
            rng_bytes(rng, in, 4 * channels);
        }
        const float across = rng_float(rng, 0.0f, 1.0f), down = 0.25f * (float)rng_below(rng, 5);
        struct n8_blend_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_blend_args){
            .out = out,
            .in = four,
            .channels = channels,
            .left = 1.0f - across,
            .right = across,
            .upper = 1.0f - down,
            .lower = down,
            .scale = rng_below(rng, 2) ? 1.0f : rng_float(rng, 0.01f, 2.0f),
            .in_zero_point = rng_range(rng, -128, 127),
            .zero_point = range.zero_point,
            .lo = range.lo,
            .hi = range.hi,
        };
        for (size_t at = 0; at < 4; at++)
            four[at] = in + rng_below(rng, 4) * channels * size;
        struct test_case test = {.out = out, .out_size = channels * size};
        test.call = (struct call){.signature = SIGNATURE_BLEND, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text, "channels=%zu right=%g lower=%g scale=%g", channels,
                 (double)across, (double)down, (double)args->scale);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}

void cases_n8_softmax_fn(struct context *context) {
    static const float spreads[] = {1.0f, 10.0f, 60.0f, 300.0f, 1e30f};
    struct rng *rng = &context->rng;
    for (int step = 0; step <= COUNTS * ROUNDS; step++) {
        const size_t count = count_of(step) + 1;
        const float spread = spreads[rng_below(rng, 5)];
        float *out = guard_place(rng, REGION_OUT, count * sizeof *out);
        float *in = guard_place(rng, REGION_IN, count * sizeof *in);
        for (size_t i = 0; i < count; i++)
            in[i] = rng_float(rng, -spread, spread);
        struct test_case test = {.out = (uint8_t *)out, .out_size = count * sizeof *out};
        test.call = (struct call){
            .signature = SIGNATURE_SOFTMAX,
            .x = {(uintptr_t)out, (uintptr_t)in, count},
        };
        snprintf(test.text, sizeof test.text, "count=%zu spread=%g", count, (double)spread);
        check_step(context, &test, step == COUNTS * ROUNDS);
    }
}
