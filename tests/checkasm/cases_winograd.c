// SPDX-License-Identifier: Apache-2.0
//
// The kernels of Winograd: every count of tiles and planes, every tail of channels, values over all
// of their ranges.
#include "checkasm.h"

#include <stdio.h>

enum { ALIGNED = 16, PLANES = 36, OUTPUTS = 16, FACTOR = 576 };

void cases_n8_winograd_gemm_fn(struct context *context) {
    enum { CASES = 300, LARGEST_IN = INT16_MAX, LARGEST_WEIGHT = 128 * 49 };
    struct rng *rng = &context->rng;
    const size_t panel = context->kernel->geometry.panel, width = panel == 0 ? 8 : panel; // C: any
    for (int step = 0; step <= CASES; step++) {
        const bool last = step == CASES;
        const size_t tiles = last ? 15 : 1 + (size_t)step % 13;
        const size_t planes = last ? 8 : 1 + rng_below(rng, 4);
        const size_t depth = last ? 40 : 8 * (1 + (size_t)step / 13 % 5);
        const size_t in_plane =
            round_up(tiles * depth * sizeof(int16_t), ALIGNED) + ALIGNED * rng_below(rng, 3);
        const size_t sums_plane = tiles * width * sizeof(int32_t) + ALIGNED * rng_below(rng, 3);
        const size_t in_size = (planes - 1) * in_plane + tiles * depth * sizeof(int16_t);
        const size_t out_size = (planes - 1) * sums_plane + tiles * width * sizeof(int32_t);
        const size_t weights_plane = depth * width * sizeof(int16_t) + ALIGNED * rng_below(rng, 3);
        const size_t count = (planes - 1) * weights_plane / sizeof(int16_t) + depth * width;
        int16_t *in = guard_place(rng, REGION_IN, round_up(in_size, ALIGNED));
        int16_t *weights = guard_place(rng, REGION_WEIGHTS, count * sizeof *weights);
        data_s16(rng, in, in_size / sizeof *in, -LARGEST_IN, LARGEST_IN);
        data_s16(rng, weights, count, -LARGEST_WEIGHT, LARGEST_WEIGHT);
        int32_t *sums = guard_place(rng, REGION_OUT, round_up(out_size, ALIGNED));
        struct n8_winograd_gemm_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_winograd_gemm_args){
            .sums = sums,
            .in = in,
            .weights = weights,
            .depth = depth,
            .tiles = tiles,
            .planes = planes,
            .sums_plane = sums_plane,
            .in_plane = in_plane,
            .weights_plane = weights_plane,
            .width = width,
        };
        struct test_case test = {.out = (uint8_t *)sums, .out_size = out_size};
        test.call = (struct call){.signature = SIGNATURE_WINOGRAD_GEMM, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text, "tiles=%zu planes=%zu depth=%zu", tiles, planes,
                 depth);
        check_step(context, &test, last);
    }
}

void cases_n8_winograd_input_fn(struct context *context) {
    enum { CASES = 300 };
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const bool last = step == CASES;
        const size_t channels = last ? 64 : 8 * (1 + (size_t)step % 6);
        const size_t plane = channels * sizeof(int16_t) + ALIGNED * rng_below(rng, 3);
        const size_t out_size = (PLANES - 1) * plane + channels * sizeof(int16_t);
        const size_t pixel = channels + rng_below(rng, 9);
        const size_t row = 6 * pixel + rng_below(rng, 100);
        const size_t in_size = 5 * row + 5 * pixel + channels;
        int8_t *in = guard_place(rng, REGION_IN, in_size);
        int8_t weights[1];
        data_operands(rng, (int)rng_below(rng, DATA_PATTERNS), in, in_size, weights, 1);
        int16_t *out = guard_place(rng, REGION_OUT, round_up(out_size, ALIGNED));
        struct test_case test = {.out = (uint8_t *)out, .out_size = out_size};
        test.call =
            (struct call){.signature = SIGNATURE_WINOGRAD_INPUT,
                          .x = {(uintptr_t)out, plane, (uintptr_t)in, row, pixel, channels}};
        snprintf(test.text, sizeof test.text, "channels=%zu plane=%zu pixel=%zu", channels, plane,
                 pixel);
        check_step(context, &test, last);
    }
}

void cases_n8_winograd_weights_fn(struct context *context) {
    enum { CASES = 200, WIDTH = 16, LANES = 8, TAPS = 9 };
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const bool last = step == CASES;
        const size_t depth = last ? 64 : 8 * (1 + (size_t)step % 5);
        const size_t pair = (size_t)step % 3, width = LANES * (1 + rng_below(rng, 2));
        const size_t plane = depth * width + LANES * rng_below(rng, 3);
        const size_t out_size = 11 * plane + (depth - 1) * width + LANES;
        const size_t in_size = depth * TAPS * LANES;
        int8_t *in = guard_place(rng, REGION_WEIGHTS, in_size);
        int8_t other[1];
        data_operands(rng, (int)rng_below(rng, DATA_PATTERNS), in, in_size, other, 1);
        int16_t *out = guard_place(rng, REGION_OUT, round_up(out_size * sizeof *out, ALIGNED));
        struct test_case test = {.out = (uint8_t *)out, .out_size = out_size * sizeof *out};
        test.call = (struct call){.signature = SIGNATURE_WINOGRAD_WEIGHTS,
                                  .x = {(uintptr_t)out, plane, (uintptr_t)in, depth, width, pair}};
        snprintf(test.text, sizeof test.text, "depth=%zu width=%zu pair=%zu", depth, width, pair);
        check_step(context, &test, last);
    }
}

// Sums whose outputs are multiples of 64 modulo 2^32 are what every acc'' gives; small multiples of
// 576 give small ones, and ties with them: 28 * 28 of 3 at most.
enum { TIES_REACH = 3 * 28 * 28 };

static void fill_sums(struct rng *rng, int pattern, int32_t *sums, size_t count) {
    for (size_t i = 0; i < count; i++)
        sums[i] = pattern == DATA_TIES ? FACTOR * rng_range(rng, -3, 3)
                                       : (int32_t)((uint32_t)rng_next(rng) & ~UINT32_C(63));
}

void cases_n8_winograd_output_fn(struct context *context) {
    enum { CASES = 600, WIDTH = 16 };
    struct rng *rng = &context->rng;
    for (int step = 0; step <= CASES; step++) {
        const bool last = step == CASES;
        const int pattern = (int)rng_below(rng, DATA_PATTERNS);
        const size_t channels = last ? WIDTH : 1 + (size_t)step % WIDTH;
        const size_t tiles = last ? 7 : 1 + rng_below(rng, 3);
        const size_t tile = WIDTH * sizeof(int32_t);
        const size_t plane = tiles * tile + ALIGNED * rng_below(rng, 3);
        const size_t sums_size = (PLANES - 1) * plane + tiles * tile;
        const size_t pixels = tiles * OUTPUTS, padded = round_up(channels, 4);
        const size_t stride = channels + rng_below(rng, 9);
        const size_t out_size = (pixels - 1) * stride + channels;
        const bool adds = rng_below(rng, 2) == 0, in_place = adds && rng_below(rng, 2) == 0;
        int32_t *sums = guard_place(rng, REGION_IN, sums_size);
        fill_sums(rng, pattern, sums, sums_size / sizeof *sums);
        int32_t *bias = guard_place(rng, REGION_BIAS, padded * sizeof *bias);
        float *multiplier = guard_place(rng, REGION_MULTIPLIER, padded * sizeof *multiplier);
        float *slope = guard_place(rng, REGION_SLOPE, padded * sizeof *slope);
        data_bias(rng, pattern, bias, padded, 0);
        data_multipliers(rng, pattern, multiplier, padded);
        for (size_t n = 0; n < padded; n++)
            slope[n] = data_slope(rng);
        float residual_scale;
        data_multipliers(rng, pattern, &residual_scale, 1);
        const bool small = rng_below(rng, 2), leaky = !small && rng_below(rng, 2);
        const float added = small && adds ? data_residual_scale(rng, pattern, &residual_scale) : 0;
        for (size_t n = 0; small && n < padded; n++)
            data_small(rng, pattern, &bias[n], &multiplier[n], 1 << 30,
                       pattern == DATA_TIES ? TIES_REACH : 1 << 29, added);
        int8_t *out = guard_place(rng, REGION_OUT, out_size + (in_place ? N8_SLACK : 0));
        int8_t *residual = guard_place(rng, REGION_RESIDUAL, out_size + N8_SLACK);
        rng_bytes(rng, residual, out_size + N8_SLACK);
        // The pixels of tiles come in any order, and another one in the residual if that is
        // elsewhere.
        ptrdiff_t *places = guard_place(rng, REGION_ROWS, pixels * sizeof *places);
        ptrdiff_t *residual_places =
            guard_place(rng, REGION_BIAS_F32, pixels * sizeof *residual_places);
        for (size_t i = 0; i < pixels; i++) {
            places[i] = (ptrdiff_t)((pixels - 1 - i) * stride);
            residual_places[i] = in_place ? places[i] : (ptrdiff_t)(i * stride);
        }
        const struct range range = data_range(rng, false);
        struct n8_winograd_output_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
        *args = (struct n8_winograd_output_args){
            .out = out,
            .places = places,
            .residual = adds ? residual : NULL,
            .residual_places = residual_places,
            .sums = sums,
            .plane = plane,
            .tile = tile,
            .tiles = tiles,
            .channels = channels,
            .bias = bias,
            .multiplier = multiplier,
            .slope = leaky ? slope : NULL,
            .residual_scale = rng_below(rng, 2) ? residual_scale : -residual_scale,
            .residual_zero_point = rng_range(rng, -128, 127),
            .zero_point = range.zero_point,
            .lo = range.lo,
            .hi = range.hi,
            .small = small,
        };
        struct test_case test = {.out = (uint8_t *)out, .out_size = out_size};
        test.operands[0].field = in_place ? &args->residual : NULL;
        test.call = (struct call){.signature = SIGNATURE_WINOGRAD_OUTPUT, .x = {(uintptr_t)args}};
        snprintf(test.text, sizeof test.text,
                 "tiles=%zu channels=%zu pattern=%d residual=%d in_place=%d slope=%d small=%d",
                 tiles, channels, pattern, adds, in_place, leaky, small);
        check_step(context, &test, last);
    }
}
