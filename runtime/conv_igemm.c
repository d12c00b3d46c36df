// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM: for a block of output pixels the driver writes down where the input pixel under
// each tap lies (or the padding row), and the kernel multiplies. Copied are only the windows of
// layers with so few channels that most of a kernel's step would be padding, and the rows for
// kernels that read packed ones.
#include "conv_way.h"

#include "panel.h"
#include "size.h"

#include <string.h>

enum {
    TABLE_BYTES = 16384, // the pointer table of one unit stays well inside L1
    MAX_BLOCK = 32,
    PACKED_BYTES = 32768, // of a unit's rows, which all of its channels read
    ENOUGH_UNITS = 64,    // for many threads to finish at the same time
    MAX_UNFOLDED = 8,     // channels, which are copied at once
};

void n8_plan_slices(struct n8_conv *conv, size_t blocks, size_t panel) {
    const struct n8_tile *tile = &conv->row->tile;
    conv->slices = 1;
    conv->slice = conv->group_out;
    if (blocks >= ENOUGH_UNITS) {
        return;
    }
    // A slice begins where its panel of weights and its entries of the arrays are aligned.
    size_t panels = 1;
    while (n8_mul(panels, tile->nr) % (N8_ALIGN_PART / sizeof(int32_t)) != 0 ||
           n8_mul(panels, panel) % N8_ALIGN_PART != 0) {
        panels++;
    }
    const size_t least = n8_mul(panels, tile->nr);
    const size_t wanted = n8_pieces(ENOUGH_UNITS, n8_mul(blocks, conv->groups));
    conv->slice = n8_mul(n8_pieces(n8_pieces(conv->group_out, wanted), least), least);
    conv->slices = n8_mul(n8_pieces(conv->group_out, conv->slice), conv->groups);
}

// Groups of so few channels that several fit a step and a panel are packed as one, with zeros for
// the channels of others: that takes no product more, as the rest would be padding.
static void plan_bundle(struct n8_conv *conv) {
    const size_t groups = (size_t)conv->shape.groups;
    size_t bundle = MAX_UNFOLDED / conv->group_in;
    while (bundle > 1 && (groups % bundle != 0 || bundle * conv->group_out > conv->row->tile.nr)) {
        bundle--;
    }
    conv->bundle = bundle > 1 ? bundle : 1;
    conv->groups = groups / conv->bundle;
    conv->group_in *= conv->bundle;
    conv->group_out *= conv->bundle;
}

// The channels of an input pixel that a packed group reads.
static size_t channels_read(const struct n8_conv *conv) {
    return (size_t)(conv->shape.in_channels / conv->shape.groups) * conv->bundle;
}

// Where the channels of a pixel fill no step of a kernel, or hardly one, copying a window is less
// work than padding each of its taps.
static void plan_unfolding(struct n8_conv *conv) {
    if (conv->group_in > MAX_UNFOLDED || conv->taps == 1) {
        return;
    }
    conv->unfolded = true;
    conv->group_in = n8_mul(conv->taps, conv->group_in);
    conv->taps = 1;
    const size_t depth = n8_round_up(conv->group_in, n8_panel_step(&conv->row->tile));
    conv->window = n8_round_up(n8_add(depth, MAX_UNFOLDED), N8_ALIGN_PART);
}

static void plan_igemm(struct n8_conv *conv) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const struct n8_tile *tile = &conv->row->tile;
    plan_bundle(conv);
    const size_t channels = n8_mul(n8_pieces(conv->group_out, tile->nr), tile->nr);
    plan_unfolding(conv);
    conv->depth = n8_round_up(conv->group_in, n8_panel_step(tile));
    conv->group_weights =
        n8_round_up(n8_mul(n8_mul(conv->taps, conv->depth), channels), N8_ALIGN_PART);
    conv->group_entries = n8_round_up(channels, N8_ALIGN_PART / sizeof(int32_t));
    const size_t pixels = n8_mul((size_t)s->out_height, (size_t)s->out_width);
    const size_t fit = TABLE_BYTES / sizeof(int8_t *) / conv->taps;
    size_t block = fit > MAX_BLOCK ? MAX_BLOCK : fit;
    const size_t row = n8_mul(conv->taps, conv->depth);
    if (tile->packing == N8_PACKING_BOTH && PACKED_BYTES / row < block) {
        block = PACKED_BYTES / row;
    }
    conv->block = block < tile->mr ? tile->mr : block / tile->mr * tile->mr;
    conv->packed_rows = tile->packing == N8_PACKING_BOTH ? n8_mul(conv->block, row) : 0;
    const size_t blocks = n8_mul((size_t)s->batch, n8_pieces(pixels, conv->block));
    n8_plan_slices(conv, blocks, n8_mul(row, tile->nr));
    conv->units = n8_mul(blocks, conv->slices);
    const size_t table = n8_mul(n8_mul(conv->block, conv->taps), sizeof(int8_t *));
    conv->rows_size = conv->unfolded ? n8_mul(conv->block, conv->window) : conv->depth;
    conv->scratch_size = n8_add(n8_round_up(conv->rows_size, N8_CONV_ALIGN),
                                n8_add(n8_round_up(conv->packed_rows, N8_CONV_ALIGN), table));
    if (conv->epilogue.fixed != NULL) { // int32 sums of one unit and group
        const size_t sums = n8_mul(n8_mul(conv->block, conv->slice), sizeof(int32_t));
        conv->scratch_size = n8_add(n8_round_up(conv->scratch_size, N8_CONV_ALIGN), sums);
    }
}

// Pieces of `kr` bytes, `step` bytes from one to the next; the last may be shorter. `kr` is a
// constant wherever this is called, so that a piece is a load and a store.
static inline __attribute__((always_inline)) void
scatter(int8_t *to, size_t step, const int8_t *from, size_t count, size_t kr) {
    for (; count >= kr; count -= kr, from += kr, to += step) {
        memcpy(to, from, kr);
    }
    memcpy(to, from, count);
}

// The `count` bytes of channel n in one tap of a panel.
static void pack_weights(const struct n8_tile *tile, int8_t *to, size_t n, const int8_t *from,
                         size_t count) {
    const size_t step = tile->kr * tile->nr;
    const size_t kr = tile->packing == N8_PACKING_PAIRS ? 0 : tile->kr; // all others look alike
    if (kr == 2) {
        scatter(to + n * 2, step, from, count, 2);
    } else if (kr == 4) {
        scatter(to + n * 4, step, from, count, 4);
    } else if (kr == 8) {
        scatter(to + n * 8, step, from, count, 8);
    } else if (kr == 16) {
        scatter(to + n * 16, step, from, count, 16);
    } else {
        for (size_t k = 0; k < count; k += tile->kr) {
            const size_t rest = count - k;
            memcpy(to + n8_panel_at(tile, n, k), from + k, rest < tile->kr ? rest : tile->kr);
        }
    }
}

// [O][taps][I] to [O / nr][taps] and the order of the packing.
static void pack_group(const struct n8_conv *conv, const int8_t *weights, int8_t *out) {
    const struct n8_tile *tile = &conv->row->tile;
    for (size_t n = 0; n < conv->group_out; n++) {
        for (size_t t = 0; t < conv->taps; t++) {
            pack_weights(tile, out + (n / tile->nr * conv->taps + t) * conv->depth * tile->nr,
                         n % tile->nr, weights + (n * conv->taps + t) * conv->group_in,
                         conv->group_in);
        }
    }
}

// The same of a bundle: each channel has weights for the channels of its own group.
static void pack_bundle(const struct n8_conv *conv, const int8_t *weights, int8_t *out) {
    const struct n8_tile *tile = &conv->row->tile;
    const size_t read = channels_read(conv);
    const size_t own = read / conv->bundle;
    const size_t each = conv->group_out / conv->bundle;
    for (size_t n = 0; n < conv->group_out; n++) {
        int8_t *panel = out + n / tile->nr * conv->taps * conv->depth * tile->nr;
        // Where an unfolded window is the only tap, it has the pixels one after the other.
        for (size_t at = n / each * own; at < conv->taps * conv->group_in; at += read) {
            int8_t *tap = panel + at / conv->group_in * conv->depth * tile->nr;
            for (size_t i = 0; i < own; i++) {
                tap[n8_panel_at(tile, n % tile->nr, at % conv->group_in + i)] = *weights++;
            }
        }
    }
}

static void pack_igemm(const struct n8_conv *conv, const int8_t *weights, void *memory) {
    for (size_t g = 0; g < conv->groups; g++) {
        const size_t size = conv->group_out * conv->taps * conv->group_in / conv->bundle;
        (conv->bundle > 1 ? pack_bundle : pack_group)(conv, weights + g * size,
                                                      (int8_t *)memory + g * conv->group_weights);
    }
}

// What a unit of implicit GEMM works on: pixels [first, first + count) of an image, and one
// slice of the channels or all of them.
struct igemm {
    const struct n8_conv *conv;
    const struct n8_conv_io *io;
    int8_t *windows;       // copied, or
    const int8_t *padding; // the row of zero points that stands for all outside the image
    const int8_t **table;
    int8_t *packed; // the rows that the table names, where the kernel wants them so
    size_t pointed; // the block and group that the table and the packed rows belong to
    int32_t *sums;  // [count][channels], where they are requantized in integers
    size_t image, first, count;
};

// Writes the pointers of one output pixel, whose window begins at row y0 and column x0 and `at`
// bytes from the image's beginning, one for each tap, mr entries apart.
static void point_pixel(const struct igemm *it, const int8_t *image, int64_t y0, int64_t x0,
                        ptrdiff_t at, const int8_t **table) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t mr = it->conv->row->tile.mr;
    const ptrdiff_t across = s->dilation_width * it->io->in_stride;
    const ptrdiff_t down = (ptrdiff_t)s->dilation_height * s->in_width * it->io->in_stride;
    int64_t y = y0;
    for (int32_t ky = 0; ky < s->kernel_height; ky++, y += s->dilation_height, at += down) {
        const int64_t width = y >= 0 && y < s->in_height ? s->in_width : 0;
        int64_t x = x0;
        ptrdiff_t tap = at;
        for (int32_t kx = 0; kx < s->kernel_width; kx++, x += s->dilation_width, tap += across) {
            *table = x >= 0 && x < width ? image + tap : it->padding;
            table += mr;
        }
    }
}

// The same for a tile of pixels whose windows lie inside the image, `at` bytes from its beginning.
static void point_tile(const struct igemm *it, const int8_t *image, const ptrdiff_t *at,
                       const int8_t **table) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t mr = it->conv->row->tile.mr;
    const ptrdiff_t across = s->dilation_width * it->io->in_stride;
    const ptrdiff_t down = (ptrdiff_t)s->dilation_height * s->in_width * it->io->in_stride;
    for (int32_t ky = 0; ky < s->kernel_height; ky++) {
        const int8_t *tap = image + ky * down;
        for (int32_t kx = 0; kx < s->kernel_width; kx++, table += mr, tap += across) {
            for (size_t m = 0; m < mr; m++) {
                table[m] = tap + at[m];
            }
        }
    }
}

// Copies `count` channels of one tap; up to 8 bytes are read and written.
static inline void copy_tap(int8_t *to, const int8_t *from, size_t count) {
    if (count <= 4) {
        memcpy(to, from, 4);
    } else {
        memcpy(to, from, 8);
    }
}

// Rows of a window inside the image, `down` bytes apart. The bytes that a tap writes beyond its
// channels are those of the next one.
static inline __attribute__((always_inline)) void
copy_rows(int8_t *restrict to, const int8_t *restrict from, int32_t rows, ptrdiff_t down,
          int32_t taps, ptrdiff_t across, size_t channels) {
    for (int32_t ky = 0; ky < rows; ky++, from += down) {
        const int8_t *tap = from;
#pragma GCC unroll 8
        for (int32_t kx = 0; kx < taps; kx++, tap += across, to += channels) {
            copy_tap(to, tap, channels);
        }
    }
}

// A tap after the other of the window that begins at row y0 and column x0.
static void copy_window(const struct igemm *it, const int8_t *image, int64_t y0, int64_t x0,
                        int8_t *to) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t channels = channels_read(it->conv);
    for (int32_t ky = 0; ky < s->kernel_height; ky++) {
        const int64_t y = y0 + (int64_t)ky * s->dilation_height;
        for (int32_t kx = 0; kx < s->kernel_width; kx++, to += channels) {
            const int64_t x = x0 + (int64_t)kx * s->dilation_width;
            if (y >= 0 && y < s->in_height && x >= 0 && x < s->in_width) {
                copy_tap(to, image + (ptrdiff_t)(y * s->in_width + x) * it->io->in_stride,
                         channels);
            } else {
                memset(to, it->conv->in_zero_point, channels);
            }
        }
    }
}

// The same of a window inside the image, `at` bytes from its beginning.
static void copy_inner_window(const struct igemm *it, const int8_t *image, ptrdiff_t at,
                              int8_t *to) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t channels = channels_read(it->conv);
    const ptrdiff_t across = s->dilation_width * it->io->in_stride;
    const ptrdiff_t down = (ptrdiff_t)s->dilation_height * s->in_width * it->io->in_stride;
    const int32_t rows = s->kernel_height, taps = s->kernel_width;
    const int8_t *from = image + at;
    // The usual distances and sizes as constants, for speed; nothing depends on it.
    if (across != N8_PIXEL || (channels != 1 && channels != 3)) {
        copy_rows(to, from, rows, down, taps, across, channels);
    } else if (channels == 1 && taps == 3) {
        copy_rows(to, from, rows, down, 3, N8_PIXEL, 1);
    } else if (channels == 1) {
        copy_rows(to, from, rows, down, taps, N8_PIXEL, 1);
    } else if (taps == 3) {
        copy_rows(to, from, rows, down, 3, N8_PIXEL, 3);
    } else if (taps == 5) {
        copy_rows(to, from, rows, down, 5, N8_PIXEL, 3);
    } else if (taps == 7) {
        copy_rows(to, from, rows, down, 7, N8_PIXEL, 3);
    } else {
        copy_rows(to, from, rows, down, taps, N8_PIXEL, 3);
    }
}

// Whether output pixel i reads input pixel i and no other.
static bool is_pointwise(const struct n8_conv2d_shape *s) {
    return s->kernel_height == 1 && s->kernel_width == 1 && s->stride_height == 1 &&
           s->stride_width == 1 && s->pad_top == 0 && s->pad_left == 0 &&
           s->out_width == s->in_width && s->out_height <= s->in_height;
}

// The pointer table of such a layer's unit; the last tile repeats the last pixel.
static void point_pixels(const struct igemm *it, const int8_t *image) {
    const size_t mr = it->conv->row->tile.mr;
    const size_t end = n8_pieces(it->count, mr) * mr;
    const int8_t *pixel = image + (ptrdiff_t)it->first * it->io->in_stride;
    for (size_t p = 0; p < it->count; p++, pixel += it->io->in_stride) {
        it->table[p] = pixel;
    }
    for (size_t p = it->count; p < end; p++) {
        it->table[p] = it->table[it->count - 1];
    }
}

// Writes the pointer table of a unit; the last tile repeats the last pixel.
static void point_unit(const struct igemm *it, const int8_t *image) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t mr = conv->row->tile.mr;
    const int64_t last_y = s->in_height - 1 - (int64_t)(s->kernel_height - 1) * s->dilation_height;
    const int64_t last_x = s->in_width - 1 - (int64_t)(s->kernel_width - 1) * s->dilation_width;
    int64_t oy = (int64_t)it->first / s->out_width, ox = (int64_t)it->first % s->out_width;
    for (size_t p = 0; p < it->count; p += mr) {
        int64_t y[N8_MAX_MR], x[N8_MAX_MR];
        ptrdiff_t at[N8_MAX_MR];
        bool inside = true;
        for (size_t m = 0; m < mr; m++) {
            y[m] = n8_tap_at(oy, s->stride_height, 0, s->dilation_height, s->pad_top);
            x[m] = n8_tap_at(ox, s->stride_width, 0, s->dilation_width, s->pad_left);
            at[m] = (ptrdiff_t)(y[m] * s->in_width + x[m]) * it->io->in_stride;
            inside = inside && y[m] >= 0 && y[m] <= last_y && x[m] >= 0 && x[m] <= last_x;
            if (p + m + 1 < it->count && ++ox == s->out_width) {
                ox = 0;
                oy++;
            }
        }
        const int8_t **table = it->table + p * conv->taps;
        for (size_t m = 0; conv->unfolded && m < mr; m++) {
            int8_t *to = it->windows + (p + m) * conv->window;
            table[m] = to;
            if (inside) {
                copy_inner_window(it, image, at[m], to);
            } else {
                copy_window(it, image, y[m], x[m], to);
            }
        }
        if (conv->unfolded) {
            continue;
        }
        if (inside) {
            point_tile(it, image, at, table);
            continue;
        }
        for (size_t m = 0; m < mr; m++) {
            point_pixel(it, image, y[m], x[m], at[m], table + m);
        }
    }
}

// One tap of a tile of rows, `kr` bytes of each at a time.
static int8_t *pack_tap(int8_t *to, const int8_t *const *rows, size_t depth, size_t mr, size_t kr) {
    for (size_t k = 0; k < depth; k += kr) {
        for (size_t m = 0; m < mr; m++, to += kr) {
            memcpy(to, rows[m] + k, kr);
        }
    }
    return to;
}

// The same for the usual geometry, for speed: two steps and rows at once make loads and stores of
// 16 bytes.
static int8_t *pack_tap_8x8(int8_t *to, const int8_t *const *rows, size_t depth) {
    enum { ROWS = 8, STEP = sizeof(uint64_t), TILE = ROWS * STEP };
    const int8_t *from[ROWS];
#pragma GCC unroll 8
    for (size_t m = 0; m < ROWS; m++) {
        from[m] = rows[m];
    }
    size_t k = 0;
    for (; depth - k >= 2 * STEP; k += 2 * STEP, to += 2 * TILE) {
#pragma GCC unroll 8
        for (size_t m = 0; m < ROWS; m += 2) {
            uint64_t a[2], b[2];
            memcpy(a, from[m] + k, sizeof a);
            memcpy(b, from[m + 1] + k, sizeof b);
            memcpy(to + m * STEP, &(const uint64_t[2]){a[0], b[0]}, sizeof a);
            memcpy(to + TILE + m * STEP, &(const uint64_t[2]){a[1], b[1]}, sizeof b);
        }
    }
    for (size_t m = 0; m < ROWS && k < depth; m++, to += STEP) {
        memcpy(to, from[m] + k, STEP);
    }
    return to;
}

// Packs the rows of a unit's table, and leaves in the table where they are.
static void pack_rows(const struct igemm *it) {
    const struct n8_conv *conv = it->conv;
    const struct n8_tile *tile = &conv->row->tile;
    const bool usual = tile->mr == 8 && tile->kr == 8;
    const size_t tiles = n8_pieces(it->count, tile->mr);
    int8_t *to = it->packed;
    for (size_t i = 0; i < tiles * conv->taps; i++) {
        const int8_t *const *rows = it->table + i * tile->mr;
        to = usual ? pack_tap_8x8(to, rows, conv->depth)
                   : pack_tap(to, rows, conv->depth, tile->mr, tile->kr);
    }
    it->table[0] = it->packed;
}

// (10) of the sums of a unit.
static void requantize(const struct igemm *it, int8_t *out, size_t channels, size_t entry) {
    const struct n8_conv2d_epilogue *e = &it->conv->epilogue;
    for (size_t p = 0; p < it->count; p++) {
        it->conv->requantize_fixed(out + (ptrdiff_t)p * it->io->out_stride, it->sums + p * channels,
                                   1, channels, e->fixed + 2 * entry, e->zero_point, e->lo, e->hi);
    }
}

// The pointers of a unit of one group, which its slices of channels share.
static void prepare_unit(struct igemm *it, size_t block, size_t group, const int8_t *in) {
    const size_t pointed = block * it->conv->groups + group;
    if (it->pointed == pointed) {
        return;
    }
    if (is_pointwise(&it->conv->shape)) {
        point_pixels(it, in);
    } else {
        point_unit(it, in);
    }
    if (it->conv->packed_rows != 0) {
        pack_rows(it);
    }
    it->pointed = pointed;
}

struct n8_igemm_args n8_igemm_args_of(const struct n8_conv *conv, const struct n8_conv_io *io,
                                      size_t first, size_t count, size_t group, size_t channel,
                                      size_t channels) {
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t out_size = e->type == N8_TYPE_S8 ? 1 : 4;
    const size_t out_channel = group * conv->group_out + channel;
    const size_t entry = group * conv->group_entries + channel;
    const ptrdiff_t pixel = (ptrdiff_t)first;
    return (struct n8_igemm_args){
        .out = (uint8_t *)io->out + pixel * io->out_stride + out_channel * out_size,
        .out_stride = io->out_stride,
        .pixels = count,
        .channels = channels,
        .taps = conv->taps,
        .depth = conv->depth,
        .bias = e->bias + entry,
        .multiplier = e->fixed != NULL ? NULL : e->multiplier + entry,
        .bias_f32 = e->fixed != NULL ? NULL : e->bias_f32 + entry,
        .slope = e->slope == NULL ? NULL : e->slope + entry,
        .residual =
            io->residual == NULL ? NULL : io->residual + pixel * io->residual_stride + out_channel,
        .residual_stride = io->residual_stride,
        .tile = &conv->row->tile,
        .residual_scale = e->residual_scale,
        .residual_zero_point = e->residual_zero_point,
        .zero_point = e->zero_point,
        .lo = e->lo,
        .hi = e->hi,
        .small = conv->small,
    };
}

// Channels [channel, channel + channels) of one group. A slice begins with a panel.
static void run_channels(struct igemm *it, size_t block, size_t group, size_t channel,
                         size_t channels) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv_io *io = it->io;
    const struct n8_conv2d_shape *s = &conv->shape;
    const ptrdiff_t in_pixels = (ptrdiff_t)s->in_height * s->in_width;
    const size_t out_pixels = (size_t)s->out_height * (size_t)s->out_width;
    const int8_t *in = io->in + (ptrdiff_t)it->image * in_pixels * io->in_stride +
                       (ptrdiff_t)(group * channels_read(conv));
    prepare_unit(it, block, group, in);
    struct n8_igemm_args args = n8_igemm_args_of(conv, io, it->image * out_pixels + it->first,
                                                 it->count, group, channel, channels);
    args.rows = it->table;
    args.weights = conv->weights + group * conv->group_weights + channel * conv->taps * conv->depth;
    int8_t *out = args.out;
    if (conv->epilogue.fixed != NULL) {
        args.out = it->sums;
        args.out_stride = (ptrdiff_t)(channels * sizeof *it->sums);
    }
    conv->row->igemm(&args);
    if (conv->epilogue.fixed != NULL) {
        requantize(it, out, channels, group * conv->group_entries + channel);
    }
}

static void run_igemm(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin,
                      size_t end, void *memory) {
    uint8_t *scratch = memory;
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t out_pixels = (size_t)s->out_height * (size_t)s->out_width;
    const size_t blocks_of_image = n8_pieces(out_pixels, conv->block);
    const size_t slices_of_group = conv->slices / conv->groups;
    struct igemm it = {
        .conv = conv,
        .io = io,
        .windows = (int8_t *)scratch,
        .padding = (const int8_t *)scratch,
        .packed = (int8_t *)scratch + n8_round_up(conv->rows_size, N8_CONV_ALIGN),
        .pointed = SIZE_MAX,
    };
    const size_t rows =
        n8_round_up(conv->rows_size, N8_CONV_ALIGN) + n8_round_up(conv->packed_rows, N8_CONV_ALIGN);
    it.table = (const int8_t **)(void *)(scratch + rows);
    const size_t pointers = n8_round_up(conv->block, conv->row->tile.mr) * conv->taps;
    const size_t used = rows + pointers * sizeof(int8_t *);
    it.sums = (int32_t *)(void *)(scratch + n8_round_up(used, N8_CONV_ALIGN));
    memset(scratch, conv->in_zero_point, conv->rows_size);
    for (size_t unit = begin; unit < end; unit++) {
        const size_t block = unit / conv->slices;
        it.image = block / blocks_of_image;
        it.first = block % blocks_of_image * conv->block;
        it.count = out_pixels - it.first < conv->block ? out_pixels - it.first : conv->block;
        if (conv->slices == 1) {
            for (size_t g = 0; g < conv->groups; g++) {
                run_channels(&it, block, g, 0, conv->group_out);
            }
            continue;
        }
        // Slices that follow one another in a group run as one, unless their sums are kept.
        const size_t slice = unit % conv->slices;
        const size_t first = slice % slices_of_group;
        size_t slices = conv->epilogue.fixed != NULL ? 1 : slices_of_group - first;
        slices = slices > end - unit ? end - unit : slices;
        const size_t channel = first * conv->slice;
        const size_t rest = conv->group_out - channel;
        const size_t channels = slices * conv->slice;
        run_channels(&it, block, slice / slices_of_group, channel,
                     rest < channels ? rest : channels);
        unit += slices - 1;
    }
}

const struct n8_conv_way n8_conv_igemm = {plan_igemm, pack_igemm, run_igemm};
