// SPDX-License-Identifier: Apache-2.0
//
// Kernels that normalize channels.
#include "checkasm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CASES = 800, MOST_CHANNELS = 68 };

void cases_n8_affine_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const size_t channels = 1 + (size_t)step % MOST_CHANNELS;
        const size_t pixels = step == CASES ? 200 : rng_below(rng, 6);
        const size_t in_stride = channels + rng_below(rng, 9);
        const size_t out_stride = channels + rng_below(rng, 9);
        const size_t in_size = pixels == 0 ? 0 : (pixels - 1) * in_stride + channels;
        const size_t out_size = pixels == 0 ? 0 : (pixels - 1) * out_stride + channels;
        const struct range range = data_range(rng, false);
        const int pattern = (int)rng_below(rng, DATA_PATTERNS);
        int8_t *out = guard_place(rng, REGION_OUT, out_size);
        int8_t *in = guard_place(rng, REGION_IN, in_size);
        float *multiplier = guard_place(rng, REGION_MULTIPLIER, channels * sizeof *multiplier);
        float *offset = guard_place(rng, REGION_BIAS_F32, channels * sizeof *offset);
        rng_bytes(rng, in, in_size);
        data_multipliers(rng, pattern, multiplier, channels);
        for (size_t c = 0; c < channels; c++) {
            multiplier[c] = rng_below(rng, 32) == 0 ? 3e38f : multiplier[c]; // these have no limits
            multiplier[c] = rng_below(rng, 2) ? multiplier[c] : -multiplier[c];
            offset[c] = rng_below(rng, 2) ? rng_float(rng, -200.0f, 200.0f) : 0.5f;
        }
        struct n8_affine_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_affine_args){
            .out = out,
            .in = in,
            .multiplier = multiplier,
            .offset = offset,
            .out_stride = (ptrdiff_t)out_stride,
            .in_stride = (ptrdiff_t)in_stride,
            .pixels = pixels,
            .channels = channels,
            .slope = data_slope(rng),
            .in_zero_point = rng_range(rng, -128, 127),
            .zero_point = range.zero_point,
            .lo = range.lo,
            .hi = range.hi,
        };
        struct test_case test = {.out = (uint8_t *)out, .out_size = out_size};
        test.call = (struct call){.signature = SIGNATURE_AFFINE, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text, "pixels=%zu channels=%zu slope=%g", pixels, channels,
                 (double)args->slope);
        check_step(context, &test, step == CASES);
    }
}

void cases_n8_lrn_fn(struct context *context) {
    static const double betas[] = {0.75, 0.75, 0.75, 0.75, 0.5, 1.0, 0.0, 0.6, 2.5};
    static const double factors[] = {1e-3, 1e-4, 1e-4, 1e-7, 1e-9, 0.0, 1e36, 1e60};
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const size_t channels = step == CASES ? 4000 : 1 + (size_t)step % MOST_CHANNELS;
        const size_t reach =
            rng_below(rng, 8) ? rng_below(rng, 4) : rng_below(rng, (uint32_t)channels + 1);
        const int32_t zero_point = rng_range(rng, -128, 127);
        const struct range range = data_range(rng, true);
        int8_t *out = guard_place(rng, REGION_OUT, channels);
        int8_t *row = guard_place(rng, REGION_IN, channels + 2 * reach + 8);
        memset(row, zero_point, channels + 2 * reach);
        rng_bytes(rng, row + reach, channels);
        struct n8_lrn_numbers *numbers = guard_place(rng, REGION_MULTIPLIER, sizeof *numbers);
        *numbers = (struct n8_lrn_numbers){
            .bias = rng_below(rng, 2) ? 1.0 : (double)rng_float(rng, 0.001f, 3.0f),
            .factor = factors[rng_below(rng, sizeof factors / sizeof factors[0])],
            .beta = betas[rng_below(rng, sizeof betas / sizeof betas[0])],
            .multiplier = (double)rng_float(rng, 0.01f, 4.0f),
        };
        numbers->factor *= (double)rng_float(rng, 0.1f, 10.0f);
        if (rng_below(rng, 16) == 0)
            numbers->multiplier = 1e60;
        if (rng_below(rng, 2)) { // one value, nearly halfway between two integers
            memset(row, zero_point, channels + 2 * reach);
            row[reach + rng_below(rng, (uint32_t)channels)] = (int8_t)rng_next(rng);
            numbers->factor = 0.0;
            numbers->multiplier = 0.5 * pow(numbers->bias, numbers->beta) *
                                  (1.0 + (double)rng_float(rng, -2e-7f, 2e-7f));
        }
        struct n8_lrn_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_lrn_args){
            .out = out,
            .in = row + reach,
            .channels = channels,
            .reach = reach,
            .numbers = numbers,
            .in_zero_point = zero_point,
            .zero_point = range.zero_point,
            .lo = range.lo,
            .hi = range.hi,
        };
        struct test_case test = {.out = (uint8_t *)out, .out_size = channels};
        test.call = (struct call){.signature = SIGNATURE_LRN, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text, "channels=%zu reach=%zu beta=%g factor=%g", channels,
                 reach, numbers->beta, numbers->factor);
        check_step(context, &test, step == CASES);
    }
}

void cases_n8_sums_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const size_t count = step == CASES ? 65536 : 1 + (size_t)step % MOST_CHANNELS;
        int64_t *out = guard_place(rng, REGION_OUT, 2 * sizeof *out);
        int16_t *in = guard_place(rng, REGION_IN, count * sizeof *in);
        data_s16(rng, in, count, INT16_MIN, INT16_MAX);
        struct test_case test = {.out = (uint8_t *)out, .out_size = 2 * sizeof *out};
        test.call =
            (struct call){.signature = SIGNATURE_SUMS, .x = {(uintptr_t)out, (uintptr_t)in, count}};
        snprintf(test.text, sizeof test.text, "count=%zu", count);
        check_step(context, &test, step == CASES);
    }
}

void cases_n8_powers_fn(struct context *context) {
    enum { POWERS = 256, MOST = 1 << 30 };
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const size_t count = step == CASES ? 1500 : 1 + (size_t)step % MOST_CHANNELS;
        const int32_t hi = rng_below(rng, 2) ? 127 : rng_range(rng, -128, 127);
        const int32_t lo = rng_below(rng, 2) ? -128 : rng_range(rng, -128, hi);
        int64_t *out = guard_place(rng, REGION_OUT, 2 * sizeof *out);
        int8_t *in = guard_place(rng, REGION_IN, count);
        int32_t *powers = guard_place(rng, REGION_WEIGHTS, POWERS * sizeof *powers);
        for (size_t i = 0; i < count; i++)
            in[i] = (int8_t)rng_range(rng, lo, hi);
        for (size_t i = 0; i < POWERS; i++)
            powers[i] = rng_below(rng, 4) ? rng_range(rng, 0, MOST) : MOST;
        struct test_case test = {.out = (uint8_t *)out, .out_size = 2 * sizeof *out};
        test.call = (struct call){.signature = SIGNATURE_POWERS,
                                  .x = {(uintptr_t)out, (uintptr_t)in, count, (uintptr_t)powers}};
        snprintf(test.text, sizeof test.text, "count=%zu lo=%d hi=%d", count, lo, hi);
        check_step(context, &test, step == CASES);
    }
}

void cases_n8_top_fn(struct context *context) {
    enum { ENTRIES = 128 };
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const size_t count = step == CASES ? 1500 : (size_t)step % MOST_CHANNELS;
        const int32_t hi = rng_below(rng, 2) ? 127 : rng_range(rng, -128, 127);
        const int32_t lo = rng_below(rng, 2) ? -128 : rng_range(rng, -128, hi);
        int8_t *out = guard_place(rng, REGION_OUT, count);
        int8_t *in = guard_place(rng, REGION_IN, count);
        int8_t *table = guard_place(rng, REGION_WEIGHTS, ENTRIES);
        for (size_t i = 0; i < count; i++)
            in[i] = (int8_t)rng_range(rng, lo, hi);
        rng_bytes(rng, table, ENTRIES);
        struct test_case test = {.out = (uint8_t *)out, .out_size = count};
        test.call = (struct call){
            .signature = SIGNATURE_TOP,
            .x = {(uintptr_t)out, (uintptr_t)in, count, (uintptr_t)table,
                  data_int32(rng, hi - ENTRIES + 1), data_int32(rng, rng_range(rng, -128, 127))},
        };
        snprintf(test.text, sizeof test.text, "count=%zu lo=%d hi=%d", count, lo, hi);
        check_step(context, &test, step == CASES);
    }
}

void cases_n8_normalize_fn(struct context *context) {
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const size_t count = step == CASES ? 512 : 1 + (size_t)step % MOST_CHANNELS;
        const struct range range = data_range(rng, false);
        const int pattern = (int)rng_below(rng, DATA_PATTERNS);
        const int32_t factor = rng_below(rng, 3) ? rng_range(rng, 1, 32767) : 1;
        int16_t *out = guard_place(rng, REGION_OUT, count * sizeof *out);
        int16_t *in = guard_place(rng, REGION_IN, count * sizeof *in);
        float *gain = guard_place(rng, REGION_MULTIPLIER, count * sizeof *gain);
        float *offset = guard_place(rng, REGION_BIAS_F32, count * sizeof *offset);
        data_s16(rng, in, count, INT16_MIN, INT16_MAX);
        data_multipliers(rng, pattern, gain, count);
        for (size_t i = 0; i < count; i++) {
            gain[i] = rng_below(rng, 32) == 0 ? 3e38f : gain[i] * 300.0f;
            gain[i] = rng_below(rng, 2) ? gain[i] : -gain[i];
            offset[i] = rng_below(rng, 2) ? rng_float(rng, -200.0f, 200.0f) : 0.5f;
        }
        struct n8_normalize_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_normalize_args){
            .out = out,
            .in = in,
            .gain = gain,
            .offset = offset,
            .count = count,
            .rate = rng_below(rng, 8) ? rng_float(rng, 0.1f, 2.0f) / (float)factor
                                      : (rng_below(rng, 2) ? 0.0f : 1e38f),
            .slope = rng_below(rng, 8) ? data_slope(rng) : 1e-40f, // which has no limits either
            .factor = factor,
            .shift = rng_range(rng, -factor * 32768, factor * 32768),
            .zero_point = range.zero_point,
            .lo = range.lo,
            .hi = range.hi,
        };
        if (rng_below(rng, 2)) {
            args->lo = -32768;
            args->hi = 32767;
            args->zero_point = rng_range(rng, -32768, 32767);
        }
        struct test_case test = {.out = (uint8_t *)out, .out_size = count * sizeof *out};
        test.call = (struct call){.signature = SIGNATURE_NORMALIZE, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text, "count=%zu factor=%d shift=%d rate=%g", count, factor,
                 args->shift, (double)args->rate);
        check_step(context, &test, step == CASES);
    }
}
