// SPDX-License-Identifier: Apache-2.0
//
// The convolution kernels: every tail of pixels and channels, few and many taps and depths,
// strides with gaps, misaligned activations.
#include "checkasm.h"
#include "conv/algorithm.h"
#include "ref/panel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 16 }; // where kernel.h says so

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static float *place_slopes(struct rng *rng, size_t count) {
    float *slope = guard_place(rng, REGION_SLOPE, round_up(count * sizeof *slope, ALIGNED));
    for (size_t i = 0; i < count; i++)
        slope[i] = data_slope(rng);
    return rng_below(rng, 2) ? slope : NULL;
}

// Where byte k of channel n lies in the weights of a tap, after which come the panel's other taps.
static size_t weight_at(const struct n8_tile *tile, size_t taps, size_t depth, size_t n, size_t t,
                        size_t k) {
    const size_t tap = n / tile->nr * taps + t;
    return tap * depth * tile->nr + n8_panel_at(tile, n % tile->nr, k);
}

struct igemm_size {
    size_t pixels, channels, taps, depth;
};

// A channel's weights above 0, and the magnitudes of those below.
struct sides {
    int32_t above, below;
};

// The largest sum of its products, whatever the input.
static int32_t reach_of(struct sides sides) {
    return 128 * (sides.above + sides.below);
}

static struct sides igemm_sides(const struct n8_tile *tile, struct igemm_size size,
                                const int8_t *weights, size_t n) {
    const size_t sides = n8_is_winograd(tile) ? 2 : 1;
    const struct n8_tile wide = {tile->mr, (uint8_t)(sides * tile->nr), tile->kr, tile->packing};
    struct sides all = {0};
    for (size_t i = 0; i < size.taps * sides; i++) {
        const size_t panel = n / tile->nr * sides + i % sides;
        const size_t at = panel * tile->nr + n % tile->nr;
        for (size_t k = 0; k < size.depth; k++) {
            const int8_t w = weights[weight_at(&wide, size.taps, size.depth, at, i / sides, k)];
            all.above += w > 0 ? w : 0;
            all.below -= w < 0 ? w : 0;
        }
    }
    return all;
}

// Whether it is assembly for AArch64, and knows (5d).
static bool fuses(const struct kernel *kernel) {
#ifdef __aarch64__
    return strcmp(kernel->suffix, "c") != 0 && strcmp(kernel->suffix, "vector") != 0 &&
           (strstr(kernel->slot, "depthwise") != NULL ||
            (ends_with(kernel->slot, "igemm_s8_s8") && !n8_is_winograd(&kernel->geometry.tile) &&
             kernel->geometry.tile.mr > 1 && kernel->geometry.tile.kr > 2));
#else
    (void)kernel;
    return false;
#endif
}

// Makes of a small channel one that (5d) serves: a power of two always does that is not too large.
static void fuse_channel(struct sides sides, const struct n8_conv2d_epilogue *e, int32_t bias,
                         float *multiplier, int32_t *start, float *addend) {
    while (!n8_fuse_channel(*multiplier, bias, sides.above, sides.below, e, start, addend))
        *multiplier = *multiplier < 0x1p-20f ? 0.0f : ldexpf(0.25f, ilogbf(*multiplier));
}

// The mark of a group in the order GROUPS_BY_4, in place of the 1 after those before it.
static void place_bit(uint32_t *words, size_t i, bool deep) {
    uint32_t *word = words + i / N8_WORD_MARKS;
    *word = i % N8_WORD_MARKS == 0 ? 0x80000000 : *word;
    *word ^= (deep ? 1U : 3U) << (30 - i % N8_WORD_MARKS);
}

// The word of a group in the order GROUPS: its marks, beside the numbers of its blocks. Their order
// is that of a walk by strides which comes to each once.
static uint64_t group_word(size_t i, uint32_t marks, size_t blocks, size_t stride) {
    uint64_t word = 0;
    for (size_t k = 0; k < N8_BLOCKS; k++) {
        const uint64_t number = (i * N8_BLOCKS + k) * stride % blocks;
        word |= (2 * number + (marks >> k & 1)) << 16 * k;
    }
    return word;
}

static size_t divisor(size_t a, size_t b) {
    return b == 0 ? a : divisor(b, a % b);
}

// The marks of groups, all alike or of both kinds, and weights of which they are true.
static const uint8_t *place_marks(struct rng *rng, const struct n8_tile *tile,
                                  struct igemm_size size, int8_t *weights) {
    const bool bits = tile->packing == N8_PACKING_GROUPS_BY_4;
    const size_t group = (bits ? 4U : 2U) * tile->kr, groups = (size.depth + group - 1) / group;
    const size_t taps = round_up(size.channels, tile->nr) / tile->nr * size.taps;
    const size_t words = (groups + N8_WORD_MARKS - 1) / N8_WORD_MARKS;
    const size_t parts = bits ? 1 : N8_MARKED;
    const uint32_t all = (1U << parts) - 1;
    const size_t bytes = bits ? sizeof(uint32_t) * words : sizeof(uint64_t) * groups; // of a tap
    const size_t blocks = size.depth / N8_BLOCK;
    uint8_t *deep = guard_place(rng, REGION_DEEP, taps * bytes);
    size_t stride = 1;
    const uint32_t kind = rng_below(rng, 4);
    for (size_t i = 0; i < taps * groups; i++) {
        const size_t panel = i / (size.taps * groups), t = i / groups % size.taps;
        const size_t from = i % groups * group;
        const bool whole = size.depth - from >= group;
        const uint32_t marks = !whole ? 0 : kind < 2 ? kind * all : rng_below(rng, all + 1);
        if (i % groups == 0) {
            do
                stride = 1 + rng_below(rng, (uint32_t)blocks);
            while (!bits && divisor(stride, blocks) != 1);
        }
        if (bits)
            place_bit((uint32_t *)(void *)deep + i / groups * words, i % groups, marks != 0);
        else
            ((uint64_t *)(void *)deep)[i] = group_word(i % groups, marks, blocks, stride);
        for (size_t part = 0; part < tile->nr; part++) {
            if ((marks >> part * parts / tile->nr & 1) == 0)
                continue;
            const size_t n = panel * tile->nr + part;
            for (size_t k = from; k < from + group; k++)
                data_limit(&weights[weight_at(tile, size.taps, size.depth, n, t, k)]);
            const size_t k = from + rng_below(rng, (uint32_t)group);
            data_lowest(rng, &weights[weight_at(tile, size.taps, size.depth, n, t, k)], true);
        }
    }
    return deep;
}

// Windows of an image of `height` x `width` pixels at `in`, in_stride bytes from one to the next,
// of which the first is the padding; and the table of their rows.
static const struct n8_windows_args *place_windows(struct rng *rng, const struct n8_tile *tile,
                                                   struct igemm_size size, const int8_t *in,
                                                   size_t in_stride, size_t height, size_t width,
                                                   const int8_t **rows) {
    size_t across = 1 + rng_below(rng, (uint32_t)size.taps);
    while (size.taps % across != 0)
        across--;
    const ptrdiff_t pixel = (ptrdiff_t)in_stride, row = (ptrdiff_t)width * pixel;
    const ptrdiff_t stride_y = rng_range(rng, 1, 2), stride_x = rng_range(rng, 1, 2);
    const ptrdiff_t dilation_y = rng_range(rng, 1, 2), dilation_x = rng_range(rng, 1, 2);
    const ptrdiff_t y0 = rng_range(rng, -3, 3), x0 = rng_range(rng, -3, 3); // of row 0, column 0
    const size_t columns = 1 + rng_below(rng, 20), column = rng_below(rng, (uint32_t)columns);
    for (size_t p = 0; p < round_up(size.pixels, tile->mr); p++) {
        const ptrdiff_t y = y0 + (ptrdiff_t)((column + p) / columns) * stride_y;
        const ptrdiff_t x = x0 + (ptrdiff_t)((column + p) % columns) * stride_x;
        const int8_t **to = rows + p / tile->mr * tile->mr * size.taps + p % tile->mr;
        for (size_t t = 0; t < size.taps; t++, to += tile->mr) {
            const ptrdiff_t at_y = y + (ptrdiff_t)(t / across) * dilation_y;
            const ptrdiff_t at_x = x + (ptrdiff_t)(t % across) * dilation_x;
            const bool inside =
                at_y >= 0 && at_y < (ptrdiff_t)height && at_x >= 0 && at_x < (ptrdiff_t)width;
            *to = inside ? in + pixel + at_y * row + at_x * pixel : in;
        }
    }
    const size_t block = tile->mr * (1 + rng_below(rng, 3));
    struct n8_windows_args *windows = guard_place(rng, REGION_WINDOWS, sizeof *windows);
    *windows = (struct n8_windows_args){
        .image = in + pixel,
        .padding = in,
        .height = height * (size_t)row,
        .width = (size_t)row,
        .y = y0 * row,
        .x = (x0 + (ptrdiff_t)column * stride_x) * pixel,
        .left = columns - column,
        .columns = columns,
        .step = stride_x * pixel,
        .row_step = stride_y * row,
        .tap = dilation_x * pixel,
        .taps = (ptrdiff_t)across * dilation_x * pixel,
        .tap_row = dilation_y * row,
        .tap_rows = (ptrdiff_t)(size.taps / across) * dilation_y * row,
        .packed = guard_place(rng, REGION_PACKED, block * size.taps * size.depth),
        .block = block,
    };
    return windows;
}

static struct test_case igemm_case(struct context *context, struct igemm_size size) {
    struct rng *rng = &context->rng;
    const struct n8_tile *tile = &context->kernel->geometry.tile;
    const int pattern = (int)rng_below(rng, DATA_PATTERNS);
    const bool adds = ends_with(context->kernel->slot, "_add");
    const bool wide = !ends_with(context->kernel->slot, "_s8_s8") && !adds;
    const size_t element = wide ? 4 : 1;
    const size_t out_stride = (size.channels + rng_below(rng, 9)) * element;
    const size_t out_size = (size.pixels - 1) * out_stride + size.channels * element;
    const size_t padded = round_up(size.channels, tile->nr);
    const bool packed = tile->packing == N8_PACKING_BOTH;
    const size_t all_rows = round_up(size.pixels, tile->mr) * size.taps;
    // In (23) a tap has two sides; its tiles follow each other.
    const bool winograd = n8_is_winograd(tile);
    const size_t tiles = winograd ? round_up(size.pixels, tile->mr) / 2 : 1;
    const size_t sides = winograd ? 2 : 1;
    const size_t pointers = packed ? 1 : winograd ? size.taps * sides : all_rows;
    const size_t weights_size = padded * size.taps * size.depth * sides;

    // Distinct rows to point to, a gap between them; the last byte is the last row's.
    // Packed rows are all there, at an aligned address.
    const bool finds = tile->packing == N8_PACKING_WINDOWS;
    const size_t height = 1 + rng_below(rng, 12), width = 1 + rng_below(rng, 12);
    const size_t distinct = packed ? all_rows : finds ? 1 + height * width : height;
    const size_t row = tiles * size.depth;
    const size_t in_stride = packed ? row : row + rng_below(rng, 17);
    const size_t in_size = (distinct - 1) * in_stride + round_up(row, packed || finds ? 1 : 8);
    int8_t *in = guard_place(rng, REGION_IN, in_size);
    const size_t slack = tile->packing == N8_PACKING_GROUPS_BY_4 ? N8_SLACK : 0;
    int8_t *weights = guard_place(rng, REGION_WEIGHTS, round_up(weights_size, ALIGNED) + slack);
    data_operands(rng, pattern, in, in_size, weights, weights_size);
    for (size_t n = 0; n < padded && !winograd; n++) {
        const size_t t = rng_below(rng, (uint32_t)size.taps);
        const size_t k = rng_below(rng, (uint32_t)size.depth);
        data_lowest(rng, &weights[weight_at(tile, size.taps, size.depth, n, t, k)], false);
    }
    const bool groups = n8_panel_lanes(tile) != 0;
    const uint8_t *deep = groups ? place_marks(rng, tile, size, weights) : NULL;
    for (size_t n = size.channels; n < padded && !winograd; n++) {
        for (size_t t = 0; t < size.taps; t++) {
            for (size_t k = 0; k < size.depth; k++)
                weights[weight_at(tile, size.taps, size.depth, n, t, k)] = 0;
        }
    }
    const int8_t **rows = guard_place(rng, REGION_ROWS, pointers * sizeof *rows);
    for (size_t i = 0; i < pointers; i++)
        rows[i] = packed ? in : in + rng_below(rng, (uint32_t)distinct) * in_stride;
    const struct n8_windows_args *windows =
        finds ? place_windows(rng, tile, size, in, in_stride, height, width, rows) : NULL;

    const size_t array = round_up(padded * sizeof(int32_t), ALIGNED);
    int32_t *bias = guard_place(rng, REGION_BIAS, array);
    float *multiplier = guard_place(rng, REGION_MULTIPLIER, array);
    float *bias_f32 = guard_place(rng, REGION_BIAS_F32, array);
    data_bias(rng, pattern, bias, padded, (int64_t)(size.taps * size.depth * sides) * 128 * 128);
    data_multipliers(rng, pattern, multiplier, padded);
    data_float_biases(rng, multiplier, bias_f32, padded);
    // In place of the residual the output lies like it, and has its slack after it.
    const bool in_place = adds && rng_below(rng, 2) == 0;
    const size_t residual_stride = in_place ? out_stride : size.channels + rng_below(rng, 9);
    const size_t residual_size = (size.pixels - 1) * residual_stride + size.channels + N8_SLACK;
    int8_t *residual = guard_place(rng, REGION_RESIDUAL, residual_size);
    rng_bytes(rng, residual, residual_size);
    float residual_scale;
    data_multipliers(rng, pattern, &residual_scale, 1);
    const struct range range = data_range(rng, false);
    const float *slope = place_slopes(rng, padded);
    const int32_t sums = 1 << (rng_below(rng, 2) ? 30 : 22);
    const bool small =
        size.taps * size.depth * sides * 128 * 128 < (size_t)sums && rng_below(rng, 4) != 0;
    const float added = small && adds ? data_residual_scale(rng, pattern, &residual_scale) : 0.0f;
    for (size_t n = 0; small && n < padded; n++)
        data_small(rng, pattern, &bias[n], &multiplier[n], sums,
                   reach_of(igemm_sides(tile, size, weights, n)), added);
    const struct n8_conv2d_epilogue e = {
        .zero_point = range.zero_point, .lo = range.lo, .hi = range.hi};
    int32_t *start = guard_place(rng, REGION_START, array);
    const bool small_sums = small && sums == 1 << 22;
    const bool fused =
        small_sums && slope == NULL && fuses(context->kernel) && rng_below(rng, 2) == 0;
    const bool said = small && slope == NULL && rng_below(rng, 2) == 0;
    if (small && !said && !fused)
        data_multipliers(rng, pattern, multiplier, padded);
    const bool whole = said && context->kernel->geometry.alike;
    for (size_t n = 0; fused && n < padded; n++)
        fuse_channel(igemm_sides(tile, size, weights, n), &e, bias[n], &multiplier[n], &start[n],
                     &bias_f32[n]);
    for (size_t n = 0; fused && !whole && n < padded; n += tile->nr)
        start[n] = rng_below(rng, 4) == 0 ? 0 : start[n];

    void *out = guard_place(rng, REGION_OUT, out_size + (in_place ? N8_SLACK : 0));
    struct n8_igemm_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
    *args = (struct n8_igemm_args){
        .out = out,
        .out_stride = (ptrdiff_t)out_stride,
        .rows = rows,
        .weights = weights,
        .pixels = size.pixels,
        .channels = size.channels,
        .taps = size.taps,
        .depth = size.depth,
        .bias = bias,
        .multiplier = multiplier,
        .bias_f32 = bias_f32,
        .start = fused ? start : NULL,
        .slope = slope,
        .residual = adds ? residual : NULL,
        .residual_stride = (ptrdiff_t)residual_stride,
        .tile = tile,
        .deep = deep,
        .windows = windows,
        .residual_scale = rng_below(rng, 2) ? residual_scale : -residual_scale,
        .residual_zero_point = rng_range(rng, -128, 127),
        .zero_point = range.zero_point,
        .lo = range.lo,
        .hi = range.hi,
        .small = (said ? N8_SMALL_RESULTS : 0) |
                 (small_sums && rng_below(rng, 4) != 0 ? N8_SMALL_SUMS : 0),
        .whole = winograd && rng_below(rng, 2) == 0,
    };
    struct test_case test = {.out = out, .out_size = out_size};
    test.operands[0].field = in_place ? &args->residual : NULL;
    test.call = (struct call){.signature = SIGNATURE_IGEMM, .x = {(uintptr_t)args}};
    snprintf(test.text, sizeof test.text,
             "pixels=%zu channels=%zu taps=%zu depth=%zu pattern=%d slope=%d zero_point=%d lo=%d "
             "hi=%d small=%d fused=%d whole=%d",
             size.pixels, size.channels, size.taps, size.depth, pattern, args->slope != NULL,
             range.zero_point, range.lo, range.hi, args->small, fused, args->whole);
    return test;
}

// Every combination of tails comes with each number of taps and depth, and so with several draws of
// everything else; few of them more often.
void cases_n8_igemm_fn(struct context *context) {
    enum { ROUNDS = 40, TAPS = 3, DEPTHS = 4, ENOUGH = 2000, MOST = 4000, PRIME = 7919 };
    static const size_t taps[TAPS] = {1, 2, 9};
    const struct n8_tile *tile = &context->kernel->geometry.tile;
    const size_t unit = n8_panel_step(tile);
    const bool winograd = n8_is_winograd(tile);
    const bool single = tile->mr == 1; // such a kernel is called for one pixel only
    const size_t mr = tile->mr, nr = tile->nr;
    const size_t pixels = single ? 1 : 2 * mr + 1, channels = 2 * nr + 1;
    const size_t sizes = pixels * channels * TAPS * DEPTHS;
    // More than most are thinned by strides: all tails come, each with some of the others.
    const bool many = sizes > MOST;
    const size_t steps = many ? ENOUGH : sizes * (1 + ENOUGH / sizes);
    for (size_t i = 0; i < steps; i++) {
        const size_t step = many ? i * PRIME % sizes : i;
        const struct igemm_size size = {
            .pixels = 1 + step % pixels,
            .channels = 1 + step / pixels % channels,
            .taps = taps[step / (pixels * channels) % TAPS] * (winograd ? 2 : 1),
            .depth = unit * (1 + step / (pixels * channels * TAPS) % DEPTHS),
        };
        struct test_case test = igemm_case(context, size);
        check_case(context, &test);
    }
    // Depths and taps beyond what a kernel may take in one piece, and with what is left of one.
    static const struct igemm_size long_sums[] = {
        {5, 6, 2, 272}, {3, 5, 1, 528}, {5, 6, 25, 32}, {6, 3, 300, 16}, {9, 9, 3, 20},
        {8, 17, 2, 28}, {17, 3, 1, 44}, {4, 9, 2, 248}, {25, 17, 1, 20}, {24, 16, 1, 32}};
    for (size_t i = 0; i < ROUNDS * (sizeof long_sums / sizeof long_sums[0]); i++) {
        struct igemm_size size = long_sums[i / ROUNDS];
        size.depth = round_up(size.depth, unit);
        size.taps = winograd ? 2 * size.taps : size.taps;
        size.pixels = single ? 1 : size.pixels;
        struct test_case test = igemm_case(context, size);
        check_case(context, &test);
    }
    const struct igemm_size large = {single ? 1 : 37, 42, winograd ? 6 : 9, round_up(80, unit)};
    struct test_case test = igemm_case(context, large);
    check_step(context, &test, true);
}

struct depthwise_size {
    size_t pixels, channels, height, width, stride, dilation;
};

static struct sides depthwise_sides(size_t block, size_t taps, const int8_t *weights, size_t n) {
    struct sides all = {0};
    for (size_t t = 0; t < taps; t++) {
        const int8_t w = weights[(n / block * taps + t) * block + n % block];
        all.above += w > 0 ? w : 0;
        all.below -= w < 0 ? w : 0;
    }
    return all;
}

static struct test_case depthwise_case(struct context *context, struct depthwise_size size) {
    struct rng *rng = &context->rng;
    const int pattern = (int)rng_below(rng, DATA_PATTERNS);
    const size_t pixel = size.channels + 8 * rng_below(rng, 3); // bytes from pixel to pixel
    const size_t out_stride = size.channels + rng_below(rng, 17);
    const int32_t outputs = context->kernel->geometry.outputs,
                  ratio = context->kernel->geometry.ratio;
    const size_t out_row = (size.pixels - 1) * out_stride + size.channels;
    // Other rows go where the first one does, too.
    const size_t out_row_stride = rng_below(rng, 4) == 0 ? 0 : out_row + rng_below(rng, 17);
    const size_t out_size = (size_t)(outputs - 1) * out_row_stride + out_row;
    const bool left = outputs == 2 && rng_below(rng, 2) == 0;
    const bool right = outputs == 2 && ratio == 1 && rng_below(rng, 2) == 0;
    const size_t inside = size.width - 1 - left - right; // taps of one output, but for the first
    const size_t width = (size.pixels - 1) * size.stride + inside * size.dilation;
    const size_t row_size = width * pixel + size.channels;
    const size_t padded = round_up(size.channels, context->kernel->geometry.block);
    const size_t rows_in = size.height + (size_t)((outputs - 1) * ratio);
    const size_t in_size = rows_in * row_size;
    const size_t weights_size = padded * size.height * size.width;
    int8_t *in = guard_place(rng, REGION_IN, in_size);
    int8_t *weights = guard_place(rng, REGION_WEIGHTS, weights_size);
    data_operands(rng, pattern, in, in_size, weights, weights_size);
    const size_t block = context->kernel->geometry.block, taps = size.height * size.width;
    for (size_t c = 0; c < padded; c++) {
        const size_t t = rng_below(rng, (uint32_t)taps);
        data_lowest(rng, &weights[(c / block * taps + t) * block + c % block], false);
    }
    const int8_t **rows = guard_place(rng, REGION_ROWS, rows_in * sizeof *rows);
    for (size_t y = 0; y < rows_in; y++)
        rows[y] = in + rng_below(rng, (uint32_t)rows_in) * row_size;

    const size_t channels = size.channels;
    int32_t *bias = guard_place(rng, REGION_BIAS, padded * sizeof *bias);
    float *multiplier = guard_place(rng, REGION_MULTIPLIER, padded * sizeof *multiplier);
    data_bias(rng, pattern, bias, padded, (int64_t)(size.height * size.width) * 128 * 128);
    data_multipliers(rng, pattern, multiplier, padded);
    const struct range range = data_range(rng, false);
    const float *slope = place_slopes(rng, padded);
    const bool small = slope == NULL && rng_below(rng, 3) != 0;
    for (size_t c = 0; small && c < padded; c++)
        data_small(rng, pattern, &bias[c], &multiplier[c], 1 << 22, (int32_t)(taps * 128 * 128),
                   0.0f);
    const struct n8_conv2d_epilogue e = {
        .zero_point = range.zero_point, .lo = range.lo, .hi = range.hi};
    int32_t *start = guard_place(rng, REGION_START, padded * sizeof *start);
    float *addend = guard_place(rng, REGION_BIAS_F32, padded * sizeof *addend);
    const bool fused = small && fuses(context->kernel) && rng_below(rng, 4) != 0;
    for (size_t c = 0; fused && c < padded; c++) {
        multiplier[c] = rng_below(rng, 2) ? multiplier[c] / 128.0f : multiplier[c];
        fuse_channel(depthwise_sides(block, taps, weights, c), &e, bias[c], &multiplier[c],
                     &start[c], &addend[c]);
    }

    int8_t *out = guard_place(rng, REGION_OUT, out_size);
    struct n8_depthwise_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
    *args = (struct n8_depthwise_args){
        .out = out,
        .out_stride = (ptrdiff_t)out_stride,
        .out_row_stride = (ptrdiff_t)out_row_stride,
        .rows = rows,
        .tap_stride = (ptrdiff_t)(size.dilation * pixel),
        .step = (ptrdiff_t)(size.stride * pixel),
        .weights = weights,
        .pixels = size.pixels,
        .channels = channels,
        .bias = bias,
        .start = fused ? start : NULL,
        .multiplier = multiplier,
        .slope = slope,
        .addend = addend,
        .block = context->kernel->geometry.block,
        .small = small,
        .zero_point = range.zero_point,
        .lo = range.lo,
        .hi = range.hi,
        .kernel_height = (int32_t)size.height,
        .kernel_width = (int32_t)size.width,
        .outputs = outputs,
        .left = left,
        .right = right,
        .in_zero_point = rng_range(rng, -128, 127),
    };
    struct test_case test = {.out = (uint8_t *)out, .out_size = out_size};
    test.call = (struct call){.signature = SIGNATURE_DEPTHWISE, .x = {(uintptr_t)args}};
    snprintf(test.text, sizeof test.text,
             "pixels=%zu channels=%zu kernel=%zux%zu stride=%zu dilation=%zu pattern=%d slope=%d "
             "small=%d fused=%d rows=%d apart=%zu left=%d right=%d",
             size.pixels, channels, size.height, size.width, size.stride, size.dilation, pattern,
             args->slope != NULL, args->small, fused, outputs, out_row_stride, left, right);
    return test;
}

static struct test_case winograd_case(struct context *context, size_t tiles, size_t depth) {
    struct rng *rng = &context->rng;
    const size_t columns = 2 * tiles + 2, distinct = 1 + rng_below(rng, 12);
    const size_t stride = depth + rng_below(rng, 17);
    int8_t *in = guard_place(rng, REGION_IN, (distinct - 1) * stride + depth);
    rng_bytes(rng, in, (distinct - 1) * stride + depth);
    const int8_t **table = guard_place(rng, REGION_ROWS, columns * sizeof *table);
    for (size_t i = 0; i < columns; i++)
        table[i] = in + rng_below(rng, (uint32_t)distinct) * stride;
    const size_t plane = tiles * depth + 8 * rng_below(rng, 5);
    const size_t out_size = 3 * plane + tiles * depth;
    int8_t *out = guard_place(rng, REGION_OUT, out_size);
    struct n8_winograd_args *args = guard_place(rng, REGION_ARGS, sizeof *args);
    *args = (struct n8_winograd_args){
        .out = out,
        .columns = table,
        .tiles = tiles,
        .depth = depth,
        .plane = plane,
        .offset = 2 * rng_range(rng, -128, 0) + 127,
        .pairs = tiles % 2 == 0 && rng_below(rng, 2) == 0,
    };
    struct test_case test = {.out = (uint8_t *)out, .out_size = out_size};
    test.call = (struct call){.signature = SIGNATURE_WINOGRAD, .x = {(uintptr_t)args}};
    snprintf(test.text, sizeof test.text, "tiles=%zu depth=%zu plane=%zu offset=%d pairs=%d", tiles,
             depth, plane, args->offset, args->pairs);
    return test;
}

void cases_n8_winograd_fn(struct context *context) {
    enum { ROUNDS = 8, TILES = 9, DEPTHS = 9 };
    for (size_t step = 0; step < ROUNDS * TILES * DEPTHS; step++) {
        struct test_case test =
            winograd_case(context, 1 + step % TILES, 8 * (1 + step / TILES % DEPTHS));
        check_case(context, &test);
    }
    struct test_case test = winograd_case(context, 28, 144);
    check_step(context, &test, true);
}

static size_t or_any(struct rng *rng, int32_t fixed, uint32_t largest) {
    return fixed != 0 ? (size_t)fixed : 1 + rng_below(rng, largest);
}

void cases_n8_depthwise_fn(struct context *context) {
    enum { ROUNDS = 12 };
    struct rng *rng = &context->rng;
    const struct geometry *row = &context->kernel->geometry;
    struct depthwise_size size = {0};
    for (int round = 0; round < ROUNDS; round++) {
        for (size.channels = 8; size.channels <= 2 * row->block + 24; size.channels += 8) {
            for (size.pixels = 1; size.pixels <= 3 * 4 + 1; size.pixels++) {
                size.height = or_any(rng, row->height, 12);
                size.width = or_any(rng, row->width, 12);
                size.dilation = 1 + rng_below(rng, 3);
                size.stride =
                    row->ratio != 0 ? (size_t)row->ratio * size.dilation : 1 + rng_below(rng, 3);
                struct test_case test = depthwise_case(context, size);
                check_case(context, &test);
            }
        }
    }
    size.channels = 64;
    size.pixels = 50;
    struct test_case test = depthwise_case(context, size);
    check_step(context, &test, true);
}
