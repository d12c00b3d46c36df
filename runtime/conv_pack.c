// SPDX-License-Identifier: Apache-2.0
//
// Planning and packing of a convolution. All checks are here and in conv_prove.c, so that
// conv_run.c has none.
#include "conv.h"

#include "choose.h"
#include "include/neon8_format.h"
#include "panel.h"
#include "size.h"

#include <string.h>

enum {
    ALIGN_PART = 16,     // of each group's weights and arrays
    TABLE_BYTES = 16384, // the pointer table of one unit stays well inside L1
    MAX_BLOCK = 32,
    PACKED_BYTES = 32768,  // of a unit's rows, which all of its channels read
    ENOUGH_UNITS = 64,     // for many threads to finish at the same time
    MAX_UNFOLDED = 8,      // channels, which are copied at once
    COPIES_BYTES = 131072, // of copied rows at the border, which stay in a second-level cache
    ROW_WORTH = 32,        // columns, which are copied as fast as a pixel at the border is run
};

static bool shape_ok(const struct n8_conv2d_shape *s) {
    const int32_t positive[] = {
        s->batch,        s->in_height,    s->in_width,        s->in_channels,    s->out_height,
        s->out_width,    s->out_channels, s->kernel_height,   s->kernel_width,   s->stride_height,
        s->stride_width, s->groups,       s->dilation_height, s->dilation_width,
    };
    for (size_t i = 0; i < sizeof positive / sizeof positive[0]; i++) {
        if (!n8_in_range(positive[i], 1, N8_FORMAT_MAX_DIM)) {
            return false;
        }
    }
    return n8_in_range(s->pad_top, 0, N8_FORMAT_MAX_DIM) &&
           n8_in_range(s->pad_left, 0, N8_FORMAT_MAX_DIM) && s->in_channels % s->groups == 0 &&
           s->out_channels % s->groups == 0;
}

static bool epilogue_ok(const struct n8_conv2d_epilogue *e) {
    const bool s8 = e->type == N8_TYPE_S8;
    if (!s8 && e->type != N8_TYPE_F32 && e->type != N8_TYPE_S32) {
        return false;
    }
    if (e->type != N8_TYPE_S32 && (e->multiplier == NULL) == (e->fixed == NULL)) {
        return false;
    }
    if (e->fixed != NULL && (!s8 || e->slope != NULL || e->residual_scale != 0.0f)) {
        return false;
    }
    if (!s8 && (e->slope != NULL || e->residual_scale != 0.0f)) {
        return false;
    }
    return n8_multiplier_ok(e->residual_scale) && n8_in_range(e->residual_zero_point, -128, 127) &&
           n8_in_range(e->zero_point, -128, 127) && n8_in_range(e->lo, -128, 127) &&
           n8_in_range(e->hi, e->lo, 127);
}

size_t n8_depthwise_window(const struct n8_conv2d_shape *s, size_t pixels) {
    const size_t span = n8_mul((size_t)(s->kernel_width - 1), (size_t)s->dilation_width);
    return n8_add(n8_add(n8_mul(pixels - 1, (size_t)s->stride_width), span), 1);
}

void n8_depthwise_inside(const struct n8_conv2d_shape *s, int64_t *from, int64_t *to) {
    const int64_t span = (int64_t)(s->kernel_width - 1) * s->dilation_width;
    const int64_t last = s->in_width - 1 - span + s->pad_left; // the last start, padding included
    *from = (s->pad_left + s->stride_width - 1) / s->stride_width;
    *to = last < 0 ? 0 : last / s->stride_width + 1;
    *to = *to > s->out_width ? s->out_width : *to;
    *to = *to < *from ? *from : *to;
    *from = *from > s->out_width ? s->out_width : *from;
    *to = *to > s->out_width ? s->out_width : *to;
}

// Pixels at the border see a copy of the input with its padding. Whole rows are copied, once for
// all rows of outputs that see them, where that is less work than a copy and a call of the kernel
// at either end of each.
static void plan_border(struct n8_conv *conv) {
    const struct n8_conv2d_shape *s = &conv->shape;
    int64_t from = 0;
    int64_t to = 0;
    n8_depthwise_inside(s, &from, &to);
    const int64_t right = s->out_width - to;
    const int64_t copied = (int64_t)s->stride_height * s->in_width; // for each row of outputs
    conv->whole_rows = from == to || copied <= ROW_WORTH * (from + right);
    const int64_t wider = from > right ? from : right;
    conv->block = (size_t)(conv->whole_rows ? s->out_width : wider);
    conv->window = n8_depthwise_window(s, conv->block);
    const size_t row = n8_mul(conv->window, n8_round_up((size_t)s->in_channels, N8_PIXEL));
    if (conv->block == 0 || n8_mul(row, (size_t)s->kernel_height) > COPIES_BYTES) {
        conv->whole_rows = false;
        conv->block = 1;
        conv->window = n8_depthwise_window(s, conv->block);
    }
}

static void plan_depthwise(struct n8_conv *conv) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t channels = n8_round_up((size_t)s->in_channels, N8_PIXEL);
    const size_t height = (size_t)s->kernel_height;
    conv->groups = 1;
    conv->group_entries = n8_mul(n8_pieces(channels, conv->row->block), conv->row->block);
    conv->group_weights = n8_mul(conv->taps, conv->group_entries);
    conv->units = n8_mul((size_t)s->batch, (size_t)s->out_height);
    plan_border(conv);
    // A row of padding, the copies, which row each of them is, and the row pointers.
    const size_t width = conv->whole_rows ? 0 : (size_t)s->in_width;
    const size_t padding = width > conv->window ? width : conv->window;
    const size_t copies = n8_add(n8_mul(n8_mul(height, conv->window), channels), N8_SLACK);
    const size_t rows = n8_mul(height, sizeof(int64_t) + sizeof(int8_t *));
    conv->rows_size = n8_add(n8_mul(padding, channels), N8_SLACK);
    conv->scratch_size = n8_add(
        n8_add(n8_round_up(conv->rows_size, N8_CONV_ALIGN), n8_round_up(copies, N8_CONV_ALIGN)),
        rows);
}

// Where there are few pixels, as in a fully connected layer, threads share the channels, too.
static void plan_slices(struct n8_conv *conv, size_t blocks) {
    const struct n8_tile *tile = &conv->row->tile;
    conv->slices = 1;
    conv->slice = conv->group_out;
    if (blocks >= ENOUGH_UNITS) {
        return;
    }
    // A slice begins where its panel of weights and its entries of the arrays are aligned.
    size_t least = tile->nr;
    while (least % (ALIGN_PART / sizeof(int32_t)) != 0 ||
           n8_mul(n8_mul(conv->taps, conv->depth), least) % ALIGN_PART != 0) {
        least += tile->nr;
    }
    const size_t wanted = n8_pieces(ENOUGH_UNITS, n8_mul(blocks, conv->groups));
    conv->slice = n8_mul(n8_pieces(n8_pieces(conv->group_out, wanted), least), least);
    conv->slices = n8_mul(n8_pieces(conv->group_out, conv->slice), conv->groups);
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
    conv->window = n8_round_up(n8_add(depth, MAX_UNFOLDED), ALIGN_PART);
}

static void plan_igemm(struct n8_conv *conv) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const struct n8_tile *tile = &conv->row->tile;
    const size_t channels = n8_mul(n8_pieces(conv->group_out, tile->nr), tile->nr);
    plan_unfolding(conv);
    conv->groups = (size_t)s->groups;
    conv->depth = n8_round_up(conv->group_in, n8_panel_step(tile));
    conv->group_weights =
        n8_round_up(n8_mul(n8_mul(conv->taps, conv->depth), channels), ALIGN_PART);
    conv->group_entries = n8_round_up(channels, ALIGN_PART / sizeof(int32_t));
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
    plan_slices(conv, blocks);
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

enum n8_status n8_conv_plan(struct n8_conv *conv, const struct n8_conv2d_shape *shape,
                            int32_t in_zero_point, const struct n8_conv2d_epilogue *epilogue,
                            uint32_t int16_depth, const struct n8_kernels *kernels) {
    if (!shape_ok(shape) || !epilogue_ok(epilogue) || !n8_in_range(in_zero_point, -128, 127)) {
        return N8_E_FORMAT;
    }
    const struct n8_conv_facts facts = {
        .shape = shape,
        .epilogue = epilogue,
        .int16_depth = int16_depth,
        .level = kernels->isa,
        .core = kernels->core,
    };
    memset(conv, 0, sizeof *conv);
    conv->row = n8_choose_conv(&facts, &conv->reason);
    if (conv->row == NULL) {
        return N8_E_UNSUPPORTED;
    }
    conv->kernel_name = conv->row->name;
    conv->shape = *shape;
    conv->epilogue = *epilogue;
    conv->in_zero_point = in_zero_point;
    conv->requantize_fixed = kernels->requantize_fixed_s32_s8;
    conv->taps = n8_mul((size_t)shape->kernel_height, (size_t)shape->kernel_width);
    conv->group_in = (size_t)(shape->in_channels / shape->groups);
    conv->group_out = (size_t)(shape->out_channels / shape->groups);
    if (conv->row->depthwise != NULL) {
        plan_depthwise(conv);
    } else {
        plan_igemm(conv);
    }
    const size_t weights = n8_round_up(n8_mul(conv->group_weights, conv->groups), N8_CONV_ALIGN);
    const size_t entries = n8_mul(conv->group_entries, conv->groups);
    const size_t array = n8_round_up(n8_mul(entries, sizeof(int32_t)), N8_CONV_ALIGN);
    conv->packed_size = n8_add(weights, n8_mul(array, 4)); // bias, multiplier, bias_f32, slope
    return conv->packed_size == SIZE_MAX || conv->scratch_size == SIZE_MAX ||
                   conv->units == SIZE_MAX
               ? N8_E_FORMAT
               : N8_OK;
}

// [C][taps] to [C / block][taps][block].
static void pack_depthwise(const struct n8_conv *conv, const int8_t *weights, int8_t *out) {
    const size_t channels = (size_t)conv->shape.in_channels;
    const size_t block = conv->row->block;
    for (size_t c = 0; c < channels; c++) {
        int8_t *to = out + c / block * conv->taps * block + c % block;
        for (size_t t = 0; t < conv->taps; t++) {
            to[t * block] = weights[c * conv->taps + t];
        }
    }
}

// Whether all values of a depthwise layer, whose epilogue is packed, are what kernel.h calls small.
static bool has_small_values(const struct n8_conv *conv, const int8_t *weights) {
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    if (e->slope != NULL) {
        return false;
    }
    for (size_t c = 0; c < (size_t)conv->shape.in_channels; c++) {
        int64_t bound = e->bias[c] < 0 ? -(int64_t)e->bias[c] : e->bias[c];
        for (size_t t = 0; t < conv->taps; t++) {
            const int32_t w = weights[c * conv->taps + t];
            bound += 128 * (w < 0 ? -w : w);
        }
        if (bound >= 1 << 22 || (double)bound * (double)e->multiplier[c] >= 32766.0) {
            return false;
        }
    }
    return true;
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
static void pack_tap(const struct n8_tile *tile, int8_t *to, size_t n, const int8_t *from,
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
static void pack_igemm(const struct n8_conv *conv, const int8_t *weights, int8_t *out) {
    const struct n8_tile *tile = &conv->row->tile;
    for (size_t n = 0; n < conv->group_out; n++) {
        for (size_t t = 0; t < conv->taps; t++) {
            pack_tap(tile, out + (n / tile->nr * conv->taps + t) * conv->depth * tile->nr,
                     n % tile->nr, weights + (n * conv->taps + t) * conv->group_in, conv->group_in);
        }
    }
}

// One array of entries of `size` bytes: each group starts at a multiple of group_entries.
static const void *pack_array(const struct n8_conv *conv, const void *from, uint8_t *to,
                              size_t size) {
    const size_t count = (size_t)conv->shape.out_channels / conv->groups;
    for (size_t g = 0; from != NULL && g < conv->groups; g++) {
        memcpy(to + g * conv->group_entries * size, (const uint8_t *)from + g * count * size,
               count * size);
    }
    return to;
}

void n8_conv_pack(struct n8_conv *conv, const int8_t *weights, void *memory) {
    if (conv->row->depthwise != NULL) {
        pack_depthwise(conv, weights, memory);
    } else {
        for (size_t g = 0; g < conv->groups; g++) {
            pack_igemm(conv, weights + g * conv->group_out * conv->taps * conv->group_in,
                       (int8_t *)memory + g * conv->group_weights);
        }
    }
    conv->weights = memory;
    struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t array =
        n8_round_up(conv->group_entries * conv->groups * sizeof(int32_t), N8_CONV_ALIGN);
    uint8_t *next =
        (uint8_t *)memory + n8_round_up(conv->group_weights * conv->groups, N8_CONV_ALIGN);
    e->bias = pack_array(conv, e->bias, next, sizeof *e->bias);
    if (e->fixed != NULL) { // as long as the two arrays in whose place it is
        e->fixed = pack_array(conv, e->fixed, next + array, 2 * sizeof *e->fixed);
        return;
    }
    e->multiplier = pack_array(conv, e->multiplier, next + array, sizeof *e->multiplier);
    e->bias_f32 = pack_array(conv, e->bias_f32, next + 2 * array, sizeof *e->bias_f32);
    if (e->slope != NULL) {
        e->slope = pack_array(conv, e->slope, next + 3 * array, sizeof *e->slope);
    }
    conv->small = conv->row->depthwise != NULL && has_small_values(conv, weights);
}
