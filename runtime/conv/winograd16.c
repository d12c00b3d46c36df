// SPDX-License-Identifier: Apache-2.0
//
// Winograd F(4,3) in int16, exact by (13): 3x3 convolutions of stride 1 with a quarter of the
// products. A unit is a block of tiles of 4x4 outputs: the transform of what they see stays in a
// second-level cache, and for one panel of channels after the other the accumulators of all planes
// stay in a first-level one until they are outputs. No int32 tensor is written as a whole.
#include "algorithm.h"

#include "choose.h"
#include "ref/winograd.h"

#include <string.h>

enum {
    SIDE = N8_WINOGRAD_SIDE,
    PLANES = N8_WINOGRAD_PLANES,
    OUT = N8_WINOGRAD_OUT,
    OUTPUTS = OUT * OUT,
    TAPS = N8_WINOGRAD_TAPS,
    LANES = N8_WINOGRAD_LANES,
    PAIRS = N8_WINOGRAD_PAIRS,
    PAIR_PLANES = PLANES / PAIRS, // whose weights are made at once: a piece of the first 24
    NEAR_PLANES = 8,              // and one of the rest
    PIECE = 64, // channels of the input of a panel whose weights stay in a first-level cache
    GAP = 32,   // values between planes that are written at once, for lines of different sets of it
    USUAL_BLOCK = 16,     // tiles, whose accumulators of a panel nearly fit a first-level cache
    MAX_BLOCK = 28,       // where weights are transformed for each block
    LEAST_BLOCK = 4,      // tiles that share a load of weights
    BLOCK_BYTES = 320000, // of transformed input, in a second-level cache
    ENOUGH_UNITS = 16,    // for threads to share; each transforms its input anew
    LEAST_SLICE = 32,     // channels, so that this costs a tenth at most
};

static size_t tiles_across(const struct n8_conv2d_shape *s) {
    return n8_pieces((size_t)s->out_width, OUT);
}

static size_t tiles_of(const struct n8_conv2d_shape *s) {
    return n8_mul(tiles_across(s), n8_pieces((size_t)s->out_height, OUT));
}

N8_ONCE size_t n8_winograd16_block(size_t depth, size_t tiles, bool transforms) {
    const size_t fit = BLOCK_BYTES / (PLANES * sizeof(int16_t) * depth);
    const size_t most = n8_smaller(fit, transforms ? MAX_BLOCK : USUAL_BLOCK);
    const size_t whole = n8_larger(1, most / LEAST_BLOCK) * LEAST_BLOCK;
    return n8_round_up(n8_pieces(tiles, n8_pieces(tiles, whole)), LEAST_BLOCK);
}

// Values from one plane to the next of weights.
static size_t plane_of(const struct n8_conv *conv) {
    return conv->depth * conv->row->tile.nr + (conv->winograd16.transforms ? GAP : 0);
}

// Parts of a thread's scratch memory. Channels are so few, by choose.c, that no size overflows.
struct parts {
    size_t in, acc, weights, window, nowhere, places, residual_places, size;
};

static struct parts parts_of(const struct n8_conv *conv) {
    const size_t table = conv->winograd16.block * OUTPUTS * sizeof(ptrdiff_t);
    struct parts parts = {.in = 0};
    parts.acc = conv->winograd16.block * PLANES * conv->depth * sizeof(int16_t);
    parts.weights =
        parts.acc + conv->winograd16.block * PLANES * conv->row->tile.nr * sizeof(int32_t);
    parts.window = parts.weights;
    if (conv->winograd16.transforms) {
        parts.window += PAIR_PLANES * plane_of(conv) * sizeof(int16_t);
    }
    parts.nowhere = parts.window + SIDE * SIDE * conv->depth;
    parts.places =
        n8_round_up(parts.nowhere + (size_t)conv->shape.out_channels + N8_SLACK, N8_CONV_ALIGN);
    parts.residual_places = parts.places + table;
    parts.size = parts.residual_places + table;
    return parts;
}

void n8_conv_plan_winograd16(struct n8_conv *conv, const struct n8_kernels *kernels,
                             const struct n8_conv_certificate *certificate) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t panel = conv->row->tile.nr;
    const size_t tiles = tiles_of(s);
    conv->winograd16.interleave = kernels->interleave_s8;
    conv->winograd16.transform = kernels->winograd_weights_s8;
    conv->winograd16.transforms = n8_winograd16_transforms(conv->row, s, kernels);
    conv->groups = (size_t)s->groups;
    conv->depth = n8_round_up(conv->group_in, N8_PIXEL);
    conv->group_entries = n8_pieces(conv->group_out, panel) * panel;
    const size_t value = conv->winograd16.transforms ? TAPS : PLANES * sizeof(int16_t);
    conv->group_weights = value * conv->depth * conv->group_entries;
    conv->winograd16.block = n8_winograd16_block(conv->depth, tiles, conv->winograd16.transforms);
    const size_t blocks = n8_mul((size_t)s->batch, n8_pieces(tiles, conv->winograd16.block));
    // Where there are few tiles, threads share the channels, too.
    const size_t wanted = n8_pieces(ENOUGH_UNITS, n8_mul(blocks, conv->groups));
    const size_t slice = n8_pieces(conv->group_out, wanted);
    const size_t least = slice < LEAST_SLICE ? LEAST_SLICE : slice;
    conv->slice = n8_pieces(least, panel) * panel;
    conv->slices = n8_pieces(conv->group_out, conv->slice) * conv->groups;
    conv->units = n8_mul(blocks, conv->slices);
    conv->scratch_size = parts_of(conv).size;
}

// `count` channels of the output, each [3][3][I], and `size` of the input to [size][3][3][LANES].
static void pack_lanes(const struct n8_conv *conv, int8_t *to, const int8_t *from, size_t count,
                       size_t size) {
    for (size_t t = 0; t < TAPS; t++) {
        conv->winograd16.interleave(to + t * LANES, TAPS * LANES, from + t * conv->group_in,
                                    TAPS * conv->group_in, count, size);
    }
}

// Which plane the p-th of those that are made at once is.
static size_t plane_at(size_t pair, size_t p) {
    return p < NEAR_PLANES
               ? pair * NEAR_PLANES + p
               : PAIRS * NEAR_PLANES + pair * (PAIR_PLANES - NEAR_PLANES) + p - NEAR_PLANES;
}

// The same, transformed: to LANES channels of a panel.
static void pack_transformed(const struct n8_conv *conv, int16_t *to, const int8_t *from,
                             size_t count) {
    const size_t panel = conv->row->tile.nr, in = conv->group_in;
    int16_t planes[PAIR_PLANES * PIECE * LANES];
    for (size_t k = 0; k < in; k += PIECE) {
        const size_t size = n8_smaller(conv->depth - k, PIECE);
        int8_t taps[PIECE * TAPS * LANES] = {0};
        pack_lanes(conv, taps, from + k, count, n8_smaller(in - k, PIECE));
        for (size_t i = 0; i < PLANES; i++) {
            const size_t pair = i / PAIR_PLANES, p = i % PAIR_PLANES;
            int16_t *plane = to + (plane_at(pair, p) * conv->depth + k) * panel;
            if (p == 0) {
                conv->winograd16.transform(planes, PIECE * LANES, taps, size, LANES, pair);
            }
            for (size_t j = 0; j < size; j++) {
                memcpy(plane + j * panel, planes + (p * PIECE + j) * LANES, LANES * sizeof *plane);
            }
        }
    }
}

// [O][3][3][I] to [O / LANES][depth][3][3][LANES] or, transformed, to
// [O / panel][planes][depth][panel].
void n8_conv_pack_winograd16(const struct n8_conv *conv, const int8_t *weights, void *memory) {
    const size_t panel = conv->row->tile.nr, in = conv->group_in, out = conv->group_out;
    for (size_t g = 0; g < conv->groups; g++, weights += out * TAPS * in) {
        int8_t *group = (int8_t *)memory + g * conv->group_weights;
        for (size_t n = 0; n < out; n += LANES) {
            const int8_t *from = weights + n * TAPS * in;
            const size_t count = n8_smaller(out - n, LANES);
            if (conv->winograd16.transforms) {
                pack_lanes(conv, group + n * TAPS * conv->depth, from, count, in);
            } else {
                const size_t at = n / panel * PLANES * conv->depth * panel + n % panel;
                pack_transformed(conv, (int16_t *)(void *)group + at, from, count);
            }
        }
    }
}

// Tiles at the right edge, and at the bottom, may have fewer than four outputs along an axis and
// need fewer planes (13). A block has first those at the right edge alone, last those of the
// corner, so that the tiles which need a plane follow one another.
enum kind { RIGHT, INNER, BOTTOM, CORNER, KINDS };

struct tile {
    int32_t y, x, rows, columns; // of its outputs
};

// The tiles of a block for which a plane is multiplied; planes: it and those after it of which
// these are the same.
struct product {
    size_t tile, tiles, planes;
};

struct winograd {
    const struct n8_conv *conv;
    const struct n8_conv_io *io;
    int16_t *in;       // [planes][block][depth]
    int32_t *acc;      // [planes][block][panel]
    int16_t *weights;  // [PAIR_PLANES][depth][panel], where they are transformed in each run
    int8_t *window;    // [6][6][depth], a copy with padding
    int8_t *nowhere;   // a pixel for what is beyond the edge
    ptrdiff_t *places; // [block][16], of the output
    ptrdiff_t *residual_places;
    size_t transformed;           // the block and group that `in` belongs to
    struct n8_conv_unit at;       // of tiles
    struct tile tiles[MAX_BLOCK]; // of the block, in the order of kinds
    struct product products[PLANES];
};

// Whether so many outputs depend on a point: 1, -1, infinity, 0, 2 or -2.
static bool is_needed(size_t point, int32_t outputs) {
    return (point < 4 || outputs > 2) && (point != 2 || outputs % 2 == 0);
}

// Which of the pixels 0 .. 3 that one or two outputs see are d0 .. d5, as (13) has it.
static int64_t pixel_of(int64_t d, int32_t outputs) {
    return d > 2 && outputs <= 2 ? d - 2 : d;
}

// Which output of a tile y0 .. y3 is, or OUT if it is none.
static int32_t output_of(int32_t y, int32_t outputs) {
    const int32_t output = outputs > 2 || y == 0 ? y : y == 3 ? 1 : OUT;
    return output < outputs ? output : OUT;
}

static enum kind kind_of(const struct tile *tile) {
    return tile->rows < OUT      ? (tile->columns < OUT ? CORNER : BOTTOM)
           : tile->columns < OUT ? RIGHT
                                 : INNER;
}

// Finds the tiles of the unit's block; ends[kind]: those of the kinds up to this one.
static void order_tiles(struct winograd *w, size_t ends[KINDS]) {
    const struct n8_conv2d_shape *s = &w->conv->shape;
    const size_t across = tiles_across(s);
    struct tile tiles[MAX_BLOCK];
    size_t places[KINDS + 1] = {0};
    int32_t y = (int32_t)(w->at.first / across) * OUT;
    int32_t x = (int32_t)(w->at.first % across) * OUT;
    for (size_t t = 0; t < w->at.count; t++, x += OUT) {
        if (x >= s->out_width) {
            x = 0;
            y += OUT;
        }
        const int32_t rows = s->out_height - y, columns = s->out_width - x;
        tiles[t] = (struct tile){y, x, rows < OUT ? rows : OUT, columns < OUT ? columns : OUT};
        places[kind_of(&tiles[t]) + 1]++;
    }
    for (size_t kind = RIGHT; kind < KINDS; kind++) {
        places[kind + 1] += places[kind];
        ends[kind] = places[kind + 1];
    }
    for (size_t t = 0; t < w->at.count; t++) {
        w->tiles[places[kind_of(&tiles[t])]++] = tiles[t];
    }
}

// Finds out what is to be multiplied of the block: for each plane, the tiles that need it.
static void plan_products(struct winograd *w) {
    const struct n8_conv2d_shape *s = &w->conv->shape;
    const int32_t right = (s->out_width - 1) % OUT + 1, bottom = (s->out_height - 1) % OUT + 1;
    size_t ends[KINDS];
    order_tiles(w, ends);
    for (size_t i = 0; i < SIDE; i++) {
        for (size_t j = 0; j < SIDE; j++) {
            const bool below = is_needed(i, bottom), beside = is_needed(j, right);
            const size_t first = beside ? 0 : ends[RIGHT];
            const size_t end = ends[below ? (beside ? CORNER : BOTTOM) : INNER];
            w->products[n8_winograd_plane(i, j)] = (struct product){first, end - first, 1};
        }
    }
    for (size_t p = PLANES - 1; p-- > 0;) {
        struct product *it = &w->products[p];
        it->planes += it[0].tile == it[1].tile && it[0].tiles == it[1].tiles ? it[1].planes : 0;
    }
    if (ends[INNER] - ends[RIGHT] < w->at.count) {
        memset(w->acc, 0,
               w->conv->winograd16.block * PLANES * w->conv->row->tile.nr * sizeof *w->acc);
    }
}

// Copies the window of a tile of rows x columns outputs whose first pixel is at row y0 and column
// x0, padding included.
static void copy_window(const struct winograd *w, const int8_t *image, int64_t y0, int64_t x0,
                        int32_t rows, int32_t columns) {
    const struct n8_conv2d_shape *s = &w->conv->shape;
    const size_t depth = w->conv->depth;
    int8_t *to = w->window;
    for (int64_t i = 0; i < SIDE; i++) {
        const int64_t y = y0 + pixel_of(i, rows);
        for (int64_t j = 0; j < SIDE; j++, to += depth) {
            const int64_t x = x0 + pixel_of(j, columns);
            if (y >= 0 && y < s->in_height && x >= 0 && x < s->in_width) {
                memcpy(to, image + (ptrdiff_t)(y * s->in_width + x) * w->io->in_stride, depth);
            } else {
                memset(to, w->conv->in_zero_point, depth);
            }
        }
    }
}

// What all tiles of the unit's block see of its group's channels.
static void transform_block(struct winograd *w) {
    const struct n8_conv *conv = w->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t number = w->at.block * conv->groups + w->at.group;
    if (w->transformed == number) {
        return;
    }
    w->transformed = number;
    const ptrdiff_t pixel = w->io->in_stride, row = s->in_width * pixel;
    const int8_t *image = w->io->in + (ptrdiff_t)w->at.image * s->in_height * row +
                          (ptrdiff_t)(w->at.group * conv->group_in);
    const size_t plane = conv->winograd16.block * conv->depth * sizeof *w->in;
    for (size_t t = 0; t < w->at.count; t++) {
        const struct tile *tile = &w->tiles[t];
        const int64_t y = (int64_t)tile->y - s->pad_top, x = (int64_t)tile->x - s->pad_left;
        int16_t *to = w->in + t * conv->depth;
        if (y >= 0 && x >= 0 && y + SIDE <= s->in_height && x + SIDE <= s->in_width &&
            tile->rows > 2 && tile->columns > 2) {
            conv->row->winograd16->input(to, plane,
                                         image + (ptrdiff_t)y * row + (ptrdiff_t)x * pixel, row,
                                         pixel, conv->depth);
        } else {
            copy_window(w, image, y, x, tile->rows, tile->columns);
            conv->row->winograd16->input(to, plane, w->window, (ptrdiff_t)(SIDE * conv->depth),
                                         (ptrdiff_t)conv->depth, conv->depth);
        }
    }
}

// From one piece of memory to another.
static ptrdiff_t distance(const void *from, const void *to) {
    return (ptrdiff_t)((uintptr_t)to - (uintptr_t)from);
}

// Where the outputs of the block go.
static void point_block(const struct winograd *w) {
    const struct n8_conv2d_shape *s = &w->conv->shape;
    const ptrdiff_t image = (ptrdiff_t)w->at.image * s->out_height * s->out_width;
    const ptrdiff_t away = distance(w->io->out, w->nowhere);
    const ptrdiff_t residual_away = distance(w->io->residual, w->nowhere);
    for (size_t t = 0; t < w->at.count; t++) {
        const struct tile *tile = &w->tiles[t];
        int32_t rows[OUT], columns[OUT];
        for (int32_t i = 0; i < OUT; i++) {
            rows[i] = output_of(i, tile->rows);
            columns[i] = output_of(i, tile->columns);
        }
        for (int32_t i = 0; i < OUTPUTS; i++) {
            const int32_t y = rows[i / OUT], x = columns[i % OUT];
            const bool inside = y < OUT && x < OUT;
            const ptrdiff_t at = image + (ptrdiff_t)(tile->y + y) * s->out_width + tile->x + x;
            const size_t entry = t * OUTPUTS + (size_t)i;
            w->places[entry] = inside ? at * w->io->out_stride : away;
            w->residual_places[entry] = inside ? at * w->io->residual_stride : residual_away;
        }
    }
}

// The sums of a panel at so many planes from `first` on. Those that no output needs remain 0.
static void multiply(const struct winograd *w, const int16_t *weights, size_t first,
                     size_t planes) {
    const struct n8_conv *conv = w->conv;
    const size_t panel = conv->row->tile.nr, block = conv->winograd16.block;
    const size_t end = first + planes;
    for (size_t plane = first, next; plane < end; plane = next) {
        const struct product *it = &w->products[plane];
        next = n8_smaller(plane + it->planes, end);
        if (it->tiles == 0) {
            continue;
        }
        conv->row->winograd16->gemm(&(struct n8_winograd_gemm_args){
            .sums = w->acc + (plane * block + it->tile) * panel,
            .in = w->in + (plane * block + it->tile) * conv->depth,
            .weights = weights + (plane - first) * plane_of(conv),
            .depth = conv->depth,
            .tiles = it->tiles,
            .planes = next - plane,
            .sums_plane = block * panel * sizeof *w->acc,
            .in_plane = block * conv->depth * sizeof *w->in,
            .weights_plane = plane_of(conv) * sizeof *weights,
            .width = panel,
        });
    }
}

// Makes the weights of a panel, whose channels begin at `from`, at two rows of planes.
static void transform_panel(const struct winograd *w, const int8_t *from, size_t pair) {
    const struct n8_conv *conv = w->conv;
    const size_t panel = conv->row->tile.nr, depth = conv->depth;
    for (size_t k = 0; k < depth; k += PIECE) {
        for (size_t n = 0; n < panel; n += LANES) {
            conv->winograd16.transform(w->weights + k * panel + n, plane_of(conv),
                                       from + (n * depth + k * LANES) * TAPS,
                                       n8_smaller(depth - k, PIECE), panel, pair);
        }
    }
}

// The sums of the panel of channels from `channel` of the group on.
static void multiply_panel(const struct winograd *w, const int8_t *group, size_t channel) {
    const struct n8_conv *conv = w->conv;
    const size_t at = channel * conv->depth, far = NEAR_PLANES * plane_of(conv);
    if (!conv->winograd16.transforms) {
        multiply(w, (const int16_t *)(const void *)group + at * PLANES, 0, PLANES);
        return;
    }
    for (size_t pair = 0; pair < PAIRS; pair++) {
        transform_panel(w, group + at * TAPS, pair);
        multiply(w, w->weights, plane_at(pair, 0), NEAR_PLANES);
        multiply(w, w->weights + far, plane_at(pair, NEAR_PLANES), PAIR_PLANES - NEAR_PLANES);
    }
}

// The unit's channels, a panel at a time.
static void run_slice(const struct winograd *w) {
    const struct n8_conv *conv = w->conv;
    const size_t group = w->at.group, end = w->at.channel + w->at.channels;
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t panel = conv->row->tile.nr;
    struct n8_winograd_output_args output = {
        .places = w->places,
        .residual_places = w->residual_places,
        .sums = w->acc,
        .plane = conv->winograd16.block * panel * sizeof *w->acc,
        .tile = panel * sizeof *w->acc,
        .tiles = w->at.count,
        .residual_scale = e->residual_scale,
        .residual_zero_point = e->residual_zero_point,
        .zero_point = e->zero_point,
        .lo = e->lo,
        .hi = e->hi,
        .small = conv->small & N8_SMALL_RESULTS,
    };
    for (size_t n = w->at.channel; n < end; n += panel) {
        const size_t entry = group * conv->group_entries + n;
        const size_t first = group * conv->group_out + n;
        const size_t rest = end - n;
        multiply_panel(w, conv->weights + group * conv->group_weights, n);
        output.out = (int8_t *)w->io->out + first;
        output.residual = w->io->residual == NULL ? NULL : w->io->residual + first;
        output.channels = rest < panel ? rest : panel;
        output.bias = e->bias + entry;
        output.multiplier = e->multiplier + entry;
        output.slope = e->slope == NULL ? NULL : e->slope + entry;
        conv->row->winograd16->output(&output);
    }
}

void n8_conv_run_winograd16(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin,
                            size_t end, void *memory) {
    int8_t *scratch = memory;
    const struct parts parts = parts_of(conv);
    const size_t tiles = tiles_of(&conv->shape);
    struct winograd w = {
        .conv = conv,
        .io = io,
        .in = (int16_t *)(void *)(scratch + parts.in),
        .acc = (int32_t *)(void *)(scratch + parts.acc),
        .weights = (int16_t *)(void *)(scratch + parts.weights),
        .window = scratch + parts.window,
        .nowhere = scratch + parts.nowhere,
        .places = (ptrdiff_t *)(void *)(scratch + parts.places),
        .residual_places = (ptrdiff_t *)(void *)(scratch + parts.residual_places),
        .transformed = SIZE_MAX,
    };
    for (size_t unit = begin; unit < end; unit++) {
        w.at = n8_conv_unit_at(conv, unit, tiles, conv->winograd16.block);
        if (unit == begin || unit % conv->slices == 0) {
            plan_products(&w);
            point_block(&w);
        }
        transform_block(&w);
        run_slice(&w);
    }
}
