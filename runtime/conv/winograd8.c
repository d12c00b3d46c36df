// SPDX-License-Identifier: Apache-2.0
//
// Winograd F(2,3) along rows in int8 (23). What a unit multiplies is made first, for a strip of
// rows of the output: four planes V1 V2 V0 V3, each with a row for every row of the input that the
// strip sees, of tiles for every two columns of the output. A kernel runs over them like implicit
// GEMM, with two taps for each row of the convolution's kernel: one in V1 and V2, one in V0 and V3.
#include "algorithm.h"

#include "include/neon8_format.h"
#include "ref/panel.h"

#include <string.h>

enum {
    PLANES = 4,
    COLUMNS = 3,          // of the convolution's kernel
    STRIP_BYTES = 131072, // of the planes of a strip, which all its channels read
    PANEL_BYTES = 16384,  // of weights that stay in L1 while a strip is gone through row by row
};

static bool has_pairs(const struct n8_conv *conv) {
    return conv->row->tile.packing == N8_PACKING_WINOGRAD_PAIRS;
}

static size_t panels_of(const struct n8_conv *conv) {
    return n8_pieces(conv->group_out, conv->row->tile.nr);
}

// Bytes of all planes, with the tiles that the last one of the kernel's may have too many.
static size_t planes_bytes(const struct n8_conv *conv) {
    return n8_add(n8_mul(conv->winograd8.plane, PLANES), n8_mul(conv->row->tile.mr, conv->depth));
}

void n8_conv_plan_winograd8(struct n8_conv *conv, const struct n8_kernels *kernels,
                            const struct n8_conv_certificate *certificate) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t height = (size_t)s->kernel_height;
    const size_t out_height = (size_t)s->out_height;
    conv->winograd8.transform = kernels->winograd_s8;
    conv->winograd8.form = certificate->winograd;
    conv->groups = 1;
    conv->taps = 2 * height;
    conv->depth = n8_round_up(conv->group_in, n8_panel_step(&conv->row->tile));
    conv->winograd8.tiles =
        n8_round_up(n8_pieces((size_t)s->out_width, 2), has_pairs(conv) ? 2 : 1);
    conv->winograd8.row_size = n8_mul(conv->winograd8.tiles, conv->depth);
    const size_t fit = STRIP_BYTES / PLANES / conv->winograd8.row_size; // of rows of a plane
    const size_t strips = n8_pieces(out_height, fit < height ? 1 : fit - height + 1);
    conv->winograd8.block = n8_pieces(out_height, strips);
    conv->winograd8.plane =
        n8_mul(n8_add(conv->winograd8.block, height - 1), conv->winograd8.row_size);
    conv->winograd8.panel = n8_mul(n8_mul(conv->taps, conv->depth), 2 * conv->row->tile.nr);
    const size_t channels = n8_mul(panels_of(conv), conv->row->tile.nr);
    conv->group_entries = n8_round_up(channels, N8_ALIGN_PART / sizeof(int32_t));
    // After the weights, what the accumulators begin with.
    conv->group_weights =
        n8_add(n8_round_up(n8_mul(panels_of(conv), conv->winograd8.panel), N8_ALIGN_PART),
               n8_mul(conv->group_entries, sizeof(int32_t)));
    const size_t blocks = n8_mul((size_t)s->batch, n8_pieces(out_height, conv->winograd8.block));
    n8_plan_slices(conv, blocks, conv->winograd8.panel, kernels->cache);
    conv->units = n8_mul(blocks, conv->slices);
    // The planes, a pixel of padding, and pointers to columns and to the rows of all taps.
    const size_t columns = n8_add(n8_mul(conv->winograd8.tiles, 2), 2);
    const size_t pointers = n8_mul(n8_add(columns, 2 * conv->taps), sizeof(int8_t *));
    conv->scratch_size = n8_add(n8_add(n8_round_up(planes_bytes(conv), N8_CONV_ALIGN), pointers),
                                n8_round_up(conv->depth, N8_CONV_ALIGN));
}

// U1, U2, U0, U3 of the taps g[0], g[step], g[2 * step].
static void transform_weights(int32_t u[PLANES], const int8_t *g, size_t step, bool halves) {
    const int32_t outer = g[0] + g[2 * step], inner = g[step];
    u[0] = (outer + inner) / (halves ? 2 : 1);
    u[1] = (outer - inner) / (halves ? 2 : 1);
    u[2] = g[0];
    u[3] = g[2 * step];
}

// Where in the packed memory they are.
static size_t first_sums(const struct n8_conv *conv) {
    return conv->group_weights - conv->group_entries * sizeof(int32_t);
}

// (23): off.
static int32_t offset_of(const struct n8_conv *conv) {
    return 2 * conv->in_lo + INT8_MAX;
}

// [O][rows][3][I] to [O / nr][2][rows][I / kr][2][nr][kr].
void n8_conv_pack_winograd8(const struct n8_conv *conv, const int8_t *weights, void *memory) {
    const struct n8_tile *tile = &conv->row->tile;
    const struct n8_tile sides = n8_both_sides(tile);
    const bool halves = conv->winograd8.form == N8_OP_WINOGRAD_HALF;
    const size_t height = conv->taps / 2, tap = conv->depth * sides.nr;
    const uint32_t offset = (uint32_t)offset_of(conv), times = halves ? 1 : 2;
    int32_t *sums = (int32_t *)(void *)((int8_t *)memory + first_sums(conv));
    for (size_t n = 0; n < conv->group_out; n++) {
        int8_t *panel = (int8_t *)memory + n / tile->nr * conv->winograd8.panel;
        int32_t sum = 0; // of U1
        for (size_t y = 0; y < height; y++, weights += COLUMNS * conv->group_in) {
            for (size_t k = 0; k < conv->group_in; k++) {
                int32_t u[PLANES];
                transform_weights(u, weights + k, conv->group_in, halves);
                sum += u[0];
                for (size_t i = 0; i < PLANES; i++) {
                    int8_t *at = panel + (i / 2 * height + y) * tap;
                    at[n8_panel_at(&sides, i % 2 * tile->nr + n % tile->nr, k)] = (int8_t)u[i];
                }
            }
        }
        const int32_t *biases = conv->epilogue.bias;
        const int32_t bias = biases == NULL ? 0 : n8_load_i32(biases, n);
        sums[n] = (int32_t)((uint32_t)bias * times + (uint32_t)sum * offset);
    }
}

// What a unit works on: some output rows of an image.
struct strip {
    const struct n8_conv *conv;
    const struct n8_conv_io *io;
    int8_t *planes;
    int8_t *padding;
    const int8_t **columns, **taps;
    size_t made;            // the number of the strip that the planes belong to
    struct n8_conv_unit at; // of rows
};

// The columns that the tiles of one row of the input see.
static void point_columns(const struct strip *it, int64_t y) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const bool inside = y >= 0 && y < s->in_height;
    const int64_t pixel = ((int64_t)it->at.image * s->in_height + y) * s->in_width;
    for (size_t i = 0; i < 2 * it->conv->winograd8.tiles + 2; i++) {
        const int64_t x = (int64_t)i - s->pad_left;
        it->columns[i] = inside && x >= 0 && x < s->in_width
                             ? it->io->in + (ptrdiff_t)(pixel + x) * it->io->in_stride
                             : it->padding;
    }
}

static void make_planes(const struct strip *it) {
    const struct n8_conv *conv = it->conv;
    for (size_t row = 0; row < it->at.count + conv->taps / 2 - 1; row++) {
        point_columns(it, (int64_t)(it->at.first + row) - conv->shape.pad_top);
        const struct n8_winograd_args args = {
            .out = it->planes + row * conv->winograd8.row_size,
            .columns = it->columns,
            .tiles = conv->winograd8.tiles,
            .depth = conv->depth,
            .plane = conv->winograd8.plane,
            .offset = offset_of(conv),
            .pairs = has_pairs(conv),
        };
        conv->winograd8.transform(&args);
    }
}

// Channels [channel, channel + channels) of `count` pixels from row `row` of the strip on.
static void multiply(const struct strip *it, size_t row, size_t count, size_t channel,
                     size_t channels) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t y = it->at.image * (size_t)s->out_height + it->at.first + row;
    struct n8_igemm_args args;
    n8_igemm_args_of(conv, it->io, y * (size_t)s->out_width, count, 0, channel, channels, &args);
    const int8_t *at = it->planes + row * conv->winograd8.row_size;
    for (size_t y = 0; y < conv->taps / 2; y++, at += conv->winograd8.row_size) {
        for (size_t i = 0; i < PLANES; i++) {
            it->taps[i / 2 * conv->taps + 2 * y + i % 2] = at + i * conv->winograd8.plane;
        }
    }
    args.rows = it->taps;
    args.weights = conv->weights + channel / conv->row->tile.nr * conv->winograd8.panel;
    args.bias = (const int32_t *)(const void *)(conv->weights + first_sums(conv)) + channel;
    args.whole = conv->winograd8.form == N8_OP_WINOGRAD_WHOLE;
    conv->row->igemm(&args);
}

static void run_strip(const struct strip *it) {
    const struct n8_conv *conv = it->conv;
    const size_t begin = it->at.channel, end = begin + it->at.channels;
    const size_t width = (size_t)conv->shape.out_width, nr = conv->row->tile.nr;
    if (n8_winograd_runs_on(&conv->row->tile, &conv->shape)) {
        multiply(it, 0, it->at.count * width, begin, it->at.channels);
        return;
    }
    const size_t fit = PANEL_BYTES / conv->winograd8.panel;
    const size_t some = (fit < 1 ? 1 : fit) * nr;
    for (size_t channel = begin; channel < end; channel += some) {
        for (size_t row = 0; row < it->at.count; row++) {
            multiply(it, row, width, channel, end - channel < some ? end - channel : some);
        }
    }
}

void n8_conv_run_winograd8(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin,
                           size_t end, void *memory) {
    struct strip it = {.conv = conv, .io = io, .planes = memory, .made = SIZE_MAX};
    it.padding = it.planes + n8_round_up(planes_bytes(conv), N8_CONV_ALIGN);
    it.columns = (const int8_t **)(void *)(it.padding + n8_round_up(conv->depth, N8_CONV_ALIGN));
    it.taps = it.columns + 2 * conv->winograd8.tiles + 2;
    memset(it.padding, conv->in_zero_point, conv->depth);
    for (size_t unit = begin; unit < end;) {
        unit += n8_conv_units_at(conv, unit, end, (size_t)conv->shape.out_height,
                                 conv->winograd8.block, &it.at);
        if (it.made != it.at.block) {
            make_planes(&it);
            it.made = it.at.block;
        }
        run_strip(&it);
    }
}
