// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM: for a block of output pixels the driver writes down where the input pixel under
// each tap lies (or the padding row), and the kernel multiplies; igemm_rows.h does the first.
#include "algorithm.h"

#include "igemm_rows.h"
#include "ref/panel.h"

#include <string.h>

enum {
    TABLE_BYTES = 16384,  // pointer tables, of one unit or all, stay well inside L1
    ENOUGH_PIXELS = 32,   // of a unit, for what is done once for each panel of weights
    MOST_PIXELS = 128,    // whose outputs' lines of cache, written panel by panel, stay there, too;
    ROWS_BYTES = 8192,    // more than enough where what they read takes no more than this, and many
                          // more where what they write does not, either
    PACKED_BYTES = 32768, // of a unit's rows, which all of its channels read
    ENOUGH_UNITS = 64,    // for many threads to finish at the same time
    MAX_UNFOLDED = 8,     // channels, which are copied at once
};

void n8_plan_slices(struct n8_conv *conv, size_t blocks, size_t panel, size_t cache) {
    const struct n8_tile *tile = &conv->row->tile;
    const size_t size = n8_mul(n8_pieces(conv->group_out, tile->nr), panel); // of a group
    size_t wanted = 1;                                                       // slices of a group
    const bool large = blocks > 1 && n8_mul(size, conv->groups) > cache / 2;
    if (large) {
        wanted = n8_pieces(size, cache / 2);
    }
    if (blocks < ENOUGH_UNITS) {
        const size_t enough = n8_pieces(ENOUGH_UNITS, n8_mul(blocks, conv->groups));
        wanted = wanted < enough ? enough : wanted;
    }
    // A slice begins where its panel of weights and its entries of the arrays are aligned.
    size_t panels = 1;
    while (n8_mul(panels, tile->nr) % (N8_ALIGN_PART / sizeof(int32_t)) != 0 ||
           panels * (panel % N8_ALIGN_PART) % N8_ALIGN_PART != 0) { // whatever its size
        panels++;
    }
    const size_t least = n8_mul(panels, tile->nr);
    conv->slice = wanted == 1 ? conv->group_out
                              : n8_mul(n8_pieces(n8_pieces(conv->group_out, wanted), least), least);
    conv->slices = n8_mul(n8_pieces(conv->group_out, conv->slice), conv->groups);
    const size_t cached = cache / 2 / n8_mul(n8_pieces(conv->slice, tile->nr), panel);
    conv->cached = large ? n8_larger(cached, 1) : 0;
}

size_t n8_conv_units_at(const struct n8_conv *conv, size_t unit, size_t end, size_t of_image,
                        size_t block, struct n8_conv_unit *at) {
    *at = n8_conv_unit_at(conv, unit, of_image, block);
    const size_t some = n8_smaller(end - unit, at->alike);
    at->channels = n8_smaller(conv->group_out - at->channel, some * conv->slice);
    return some;
}

static size_t pixels_of(const struct n8_conv2d_shape *s) {
    return n8_mul((size_t)s->out_height, (size_t)s->out_width);
}

// Groups of so few channels that several fit a step and a panel are packed as one, with zeros for
// the channels of others: this takes no extra products, as the rest would be padding.
static void plan_bundle(struct n8_conv *conv) {
    const size_t groups = (size_t)conv->shape.groups;
    size_t bundle = MAX_UNFOLDED / conv->group_in;
    while (bundle > 1 && (groups % bundle != 0 || bundle * conv->group_out > conv->row->tile.nr)) {
        bundle--;
    }
    conv->igemm.bundle = bundle > 1 ? bundle : 1;
    conv->groups = groups / conv->igemm.bundle;
    conv->group_in *= conv->igemm.bundle;
    conv->group_out *= conv->igemm.bundle;
}

// Whether windows are copied by columns, which those of a row share. Kernels that find windows want
// each of a unit as far from the one before it.
static bool has_columns(const struct n8_conv *conv) {
    const struct n8_conv2d_shape *s = &conv->shape;
    return s->stride_width <= s->kernel_width && s->dilation_height == 1 &&
           s->dilation_width == 1 && conv->row->tile.packing != N8_PACKING_WINDOWS;
}

// Where the channels of a pixel fill no step of a kernel, or hardly one, copying a window is less
// work than padding each of its taps.
static void plan_unfolding(struct n8_conv *conv) {
    if (conv->group_in > MAX_UNFOLDED || conv->taps == 1) {
        return;
    }
    conv->igemm.unfolded = true;
    if (has_columns(conv)) {
        conv->igemm.column = n8_mul((size_t)conv->shape.kernel_height, conv->group_in);
    }
    conv->group_in = n8_mul(conv->taps, conv->group_in);
    conv->taps = 1;
    const size_t depth = n8_round_up(conv->group_in, n8_panel_step(&conv->row->tile));
    conv->igemm.window = n8_round_up(n8_add(depth, N8_TAP_BYTES), N8_ALIGN_PART);
}

// Bytes of the windows that a unit copies.
static size_t windows_size(const struct n8_conv *conv) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t block = conv->igemm.block;
    if (conv->igemm.column == 0) {
        return n8_mul(block, conv->igemm.window);
    }
    const size_t stride = (size_t)s->stride_width; // not beyond the width of the kernel
    const size_t rows = n8_pieces(block - 1, (size_t)s->out_width) + 1;
    const size_t more = n8_mul(rows, (size_t)s->kernel_width - stride);
    return n8_add(n8_mul(n8_add(n8_mul(block, stride), more), conv->igemm.column),
                  conv->igemm.window);
}

// Bytes of the marks of a panel, those of each of its taps.
static size_t panel_marks(const struct n8_conv *conv) {
    return n8_mul(conv->taps, n8_panel_marks(&conv->row->tile, conv->depth));
}

void n8_conv_plan_igemm(struct n8_conv *conv, const struct n8_kernels *kernels,
                        const struct n8_conv_certificate *certificate) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const struct n8_tile *tile = &conv->row->tile;
    plan_bundle(conv);
    const size_t channels = n8_mul(n8_pieces(conv->group_out, tile->nr), tile->nr);
    plan_unfolding(conv);
    conv->depth = n8_round_up(conv->group_in, n8_panel_step(tile));
    conv->igemm.marks = n8_mul(n8_mul(conv->taps, conv->depth), channels);
    const size_t marks = n8_mul(panel_marks(conv), channels / tile->nr);
    conv->group_weights = n8_round_up(n8_add(conv->igemm.marks, marks), N8_ALIGN_PART);
    conv->group_entries = n8_round_up(channels, N8_ALIGN_PART / sizeof(int32_t));
    const size_t row = n8_mul(conv->taps, conv->depth);
    // Where windows overlap along a row, each but the first reads the columns of a stride.
    const bool apart = conv->igemm.unfolded && conv->igemm.column == 0;
    const bool shares = !apart && s->stride_width < s->kernel_width;
    const size_t read = shares ? row / (size_t)s->kernel_width * (size_t)s->stride_width : row;
    const size_t many = n8_smaller(ROWS_BYTES / conv->group_out, pixels_of(s) / ENOUGH_UNITS);
    size_t block = TABLE_BYTES / sizeof(int8_t *) / conv->taps;
    block = n8_smaller(block, n8_larger(MOST_PIXELS, many));
    block = n8_smaller(block, n8_larger(ENOUGH_PIXELS, ROWS_BYTES / read));
    if (n8_packs_rows(tile) && PACKED_BYTES / row < block) {
        block = PACKED_BYTES / row;
    }
    conv->igemm.block = block < tile->mr ? tile->mr : block / tile->mr * tile->mr;
    conv->igemm.packed_rows = n8_packs_rows(tile) ? n8_mul(conv->igemm.block, row) : 0;
    const size_t blocks = n8_mul((size_t)s->batch, n8_pieces(pixels_of(s), conv->igemm.block));
    const size_t panel = n8_mul(row, tile->nr);
    n8_plan_slices(conv, blocks, panel, kernels->cache);
    conv->units = n8_mul(blocks, conv->slices);
    const size_t table = n8_mul(n8_mul(conv->igemm.block, conv->taps), sizeof(int8_t *));
    // Where every slice begins the blocks anew. So small tables of several taps are 64 at most.
    const bool kept = conv->cached != 0 && conv->groups == 1 && conv->taps > 1 &&
                      conv->igemm.packed_rows == 0 && n8_mul(blocks, table) <= TABLE_BYTES;
    conv->igemm.tables = kept ? blocks : 1;
    conv->igemm.rows_size = conv->igemm.unfolded ? windows_size(conv) : conv->depth;
    conv->scratch_size = n8_add(n8_round_up(conv->igemm.rows_size, N8_CONV_ALIGN),
                                n8_add(n8_round_up(conv->igemm.packed_rows, N8_CONV_ALIGN),
                                       n8_mul(conv->igemm.tables, table)));
    if (conv->accumulates) { // of one unit and group, and what may be read after them
        const size_t values = n8_mul(conv->igemm.block, conv->slice);
        const size_t acc = n8_add(n8_mul(values, sizeof(int32_t)), N8_ALIGN_PART);
        conv->scratch_size = n8_add(n8_round_up(conv->scratch_size, N8_CONV_ALIGN), acc);
    }
}

// Pieces of `kr` bytes, nr of them from one to the next; the last may be shorter. Where `kr` is a
// constant, a piece is a load and a store.
static inline __attribute__((always_inline)) void scatter(int8_t *to, size_t nr, const int8_t *from,
                                                          size_t count, size_t kr) {
    for (; count >= kr; count -= kr, from += kr, to += nr * kr) {
        memcpy(to, from, kr);
    }
    memcpy(to, from, count);
}

// The `count` bytes of channel n in one tap of a panel.
static void pack_weights(const struct n8_tile *tile, int8_t *to, size_t n, const int8_t *from,
                         size_t count) {
    to += n * tile->kr;
    if (tile->kr == 2) {
        scatter(to, tile->nr, from, count, 2);
    } else if (tile->kr == 4) {
        scatter(to, tile->nr, from, count, 4);
    } else if (tile->kr == 8) {
        scatter(to, tile->nr, from, count, 8);
    } else if (tile->kr == 16) {
        scatter(to, tile->nr, from, count, 16);
    } else {
        scatter(to, tile->nr, from, count, tile->kr);
    }
}

enum { USUAL_NR = 8 };

// One tap of all channels of a panel, `stride` bytes from one to the next. `kr` is a constant, so
// that pieces are loads and stores.
static inline __attribute__((always_inline)) void
pack_panel(int8_t *to, const int8_t *from, size_t stride, size_t count, size_t kr) {
    for (; count >= kr; count -= kr, from += kr, to += USUAL_NR * kr) {
#pragma GCC unroll 8
        for (size_t n = 0; n < USUAL_NR; n++) {
            memcpy(to + n * kr, from + n * stride, kr);
        }
    }
    for (size_t n = 0; n < USUAL_NR && count > 0; n++) {
        memcpy(to + n * kr, from + n * stride, count);
    }
}

// The same of the whole panels of a layer of one tap, if they are of a usual geometry; how many
// channels that was. Products of two tensors are packed in each run.
static size_t pack_panels(const struct n8_conv *conv, const int8_t *weights, int8_t *out) {
    const struct n8_tile *tile = &conv->row->tile;
    const size_t kr = tile->kr, count = conv->group_in;
    size_t n = 0;
    if (conv->taps != 1 || tile->nr != USUAL_NR || (kr != 2 && kr != 4 && kr != 8)) {
        return n;
    }
    for (; conv->group_out - n >= USUAL_NR; n += USUAL_NR, weights += USUAL_NR * count) {
        if (kr == 2) {
            pack_panel(out, weights, count, count, 2);
        } else if (kr == 4) {
            pack_panel(out, weights, count, count, 4);
        } else {
            pack_panel(out, weights, count, count, 8);
        }
        out += conv->depth * USUAL_NR;
    }
    return n;
}

// [O][taps][I] to [O / nr][taps] and the order of the packing.
static void pack_group(const struct n8_conv *conv, const int8_t *weights, int8_t *out) {
    const struct n8_tile *tile = &conv->row->tile;
    for (size_t n = pack_panels(conv, weights, out); n < conv->group_out; n++) {
        for (size_t t = 0; t < conv->taps; t++) {
            pack_weights(tile, out + (n / tile->nr * conv->taps + t) * conv->depth * tile->nr,
                         n % tile->nr, weights + (n * conv->taps + t) * conv->group_in,
                         conv->group_in);
        }
    }
}

// The same of a bundle, in which each channel has weights for the channels of its own group, or of
// windows by columns.
static void pack_bundle(const struct n8_conv *conv, const int8_t *weights, int8_t *out) {
    const struct n8_tile *tile = &conv->row->tile;
    const size_t read = n8_igemm_channels_read(conv);
    const size_t own = read / conv->igemm.bundle;
    const size_t each = conv->group_out / conv->igemm.bundle;
    const size_t height = (size_t)conv->shape.kernel_height;
    const size_t width = (size_t)conv->shape.kernel_width;
    for (size_t n = 0; n < conv->group_out; n++) {
        int8_t *panel = out + n / tile->nr * conv->taps * conv->depth * tile->nr;
        // Where an unfolded window is the only tap, it has the pixels one after the other.
        for (size_t t = 0; t < height * width; t++) {
            const size_t place = conv->igemm.column != 0 ? t % width * height + t / width : t;
            const size_t at = place * read + n / each * own;
            int8_t *tap = panel + at / conv->group_in * conv->depth * tile->nr;
            for (size_t i = 0; i < own; i++) {
                tap[n8_panel_at(tile, n % tile->nr, at % conv->group_in + i)] = *weights++;
            }
        }
    }
}

// Whether kernels of this architecture have such packings; what is for others only is left out.
enum {
#define N8_KERNEL(slot, suffix)
#define N8_GEMM(slot, level, variant, mr, nr, kr, packing, core)                                   \
    | (N8_PACKING_##packing == N8_PACKING_GROUPS)
    HAS_GROUPS = 0
#include "kernels.inc"
    ,
#define N8_KERNEL(slot, suffix)
#define N8_GEMM(slot, level, variant, mr, nr, kr, packing, core)                                   \
    | (N8_PACKING_##packing == N8_PACKING_GROUPS_BY_4)
    HAS_GROUPS_BY_4 = 0
#include "kernels.inc"
    ,
#define N8_KERNEL(slot, suffix)
#define N8_GEMM(slot, level, variant, mr, nr, kr, packing, core)                                   \
    | (N8_PACKING_##packing == N8_PACKING_WINDOWS)
    HAS_WINDOWS = 0
#include "kernels.inc"
};

// Whether the kernel finds the rows of a layer.
static bool has_windows(const struct n8_conv *conv) {
    return HAS_WINDOWS && conv->row->tile.packing == N8_PACKING_WINDOWS;
}

// The weights of eight lanes of int16, and what they add up to.
typedef int8_t bytes __attribute__((vector_size(8)));
typedef int16_t lanes __attribute__((vector_size(16)));
typedef uint16_t sums __attribute__((vector_size(16)));

// (11) of eight lanes of a group, the four weights of each: whether any of their products add up to
// int16, whatever the input. As a channel has one weight of -128 at most, four are 509 at most, and
// 128 times that fits 16 bits.
static bool are_deep(const struct n8_conv *conv, const int8_t *const *weights) {
    const uint16_t up = (uint16_t)(conv->in_hi > 0 ? conv->in_hi : 0);
    const uint16_t down = (uint16_t)(conv->in_lo < 0 ? -conv->in_lo : 0);
    lanes above = {0}, below = {0}; // sums apart by sign
    for (size_t k = 0; k < N8_BLOCKS; k++) {
        bytes w;
        memcpy(&w, weights[k], sizeof w);
        const lanes wide = __builtin_convertvector(w, lanes);
        above += wide & (wide > 0);
        below -= wide & (wide < 0);
    }
    const sums high = (sums)above * up + (sums)below * down;
    const sums low = (sums)above * down + (sums)below * up;
    const lanes beyond = (lanes)(high | low) < 0; // 32767
    uint64_t halves[2];
    memcpy(halves, &beyond, sizeof halves);
    return (halves[0] | halves[1]) == 0;
}

// The marks of a tap in the order GROUPS_BY_4.
static void mark_groups(const struct n8_conv *conv, const int8_t *tap, uint32_t *words) {
    const struct n8_tile *tile = &conv->row->tile;
    const size_t groups = n8_panel_groups(tile, conv->depth), row = (size_t)tile->nr * tile->kr;
    for (size_t i = 0; i < groups; i++, tap += N8_BLOCKS * row) {
        bool deep = !conv->passing;
        for (size_t at = 0; at < row && deep; at += N8_BLOCK) {
            const int8_t *const four[] = {tap + at, tap + row + at, tap + 2 * row + at,
                                          tap + 3 * row + at};
            deep = are_deep(conv, four);
        }
        const size_t place = i % N8_WORD_MARKS;
        const bool last = place + 1 == N8_WORD_MARKS || i + 1 == groups;
        words[i / N8_WORD_MARKS] |= (2 * (uint32_t)deep + last) << (N8_WORD_MARKS - 1 - place);
    }
}

// A tap of a panel in the order GROUPS.
struct blocks {
    const struct n8_conv *conv;
    int8_t *weights;
    uint64_t *words;
};

// The mark of a part of a group; what has only two products has none.
static bool mark_of(const struct blocks *it, size_t group, size_t part) {
    const struct n8_tile *tile = &it->conv->row->tile;
    const size_t each = tile->nr / N8_MARKED, first = group * N8_BLOCKS * N8_BLOCK;
    bool deep = first + N8_BLOCKS * N8_BLOCK <= it->conv->depth;
    for (size_t n = part * each; n < (part + 1) * each && deep; n++) {
        const int8_t *four[N8_BLOCKS];
        for (size_t k = 0; k < N8_BLOCKS; k++) {
            four[k] = it->weights + n8_panel_at(tile, n, first + k * N8_BLOCK);
        }
        deep = are_deep(it->conv, four);
    }
    return deep;
}

static size_t count_marks(const struct blocks *it, size_t group) {
    size_t count = 0;
    for (size_t part = 0; part < N8_MARKED; part++) {
        count += mark_of(it, group, part);
    }
    return count;
}

static void swap_blocks(const struct blocks *it, size_t a, size_t b) {
    const struct n8_tile *tile = &it->conv->row->tile;
    for (size_t n = 0; n < tile->nr; n++) {
        int8_t *one = it->weights + n8_panel_at(tile, n, a * N8_BLOCK);
        int8_t *two = it->weights + n8_panel_at(tile, n, b * N8_BLOCK);
        uint64_t block;
        memcpy(&block, one, sizeof block);
        memcpy(one, two, sizeof block);
        memcpy(two, &block, sizeof block);
    }
    uint64_t *one = &it->words[a / N8_BLOCKS], *two = &it->words[b / N8_BLOCKS];
    const size_t at = 16 * (a % N8_BLOCKS), to = 16 * (b % N8_BLOCKS);
    const uint64_t differ = (*one >> at ^ *two >> to) & UINT16_MAX;
    *one ^= differ << at;
    *two ^= differ << to;
}

// Swaps blocks of a group and another one where more marks are set then, until all of the group,
// which has `had`; returns how many it has.
static size_t trade(const struct blocks *it, size_t group, size_t other, size_t had) {
    const size_t blocks = it->conv->depth / N8_BLOCK;
    const size_t end = n8_smaller((other + 1) * N8_BLOCKS, blocks);
    size_t left = count_marks(it, other);
    for (size_t a = group * N8_BLOCKS; a < (group + 1) * N8_BLOCKS; a++) {
        for (size_t b = other * N8_BLOCKS; b < end && had < N8_MARKED; b++) {
            swap_blocks(it, a, b);
            const size_t has = count_marks(it, group);
            const size_t rest = count_marks(it, other);
            if (has + rest > had + left) {
                had = has;
                left = rest;
            } else {
                swap_blocks(it, a, b);
            }
        }
    }
    return had;
}

// Puts the blocks of a tap in an order in which large weights come together in few groups: each
// that is not deep as a whole trades with those after it, which the first follow. Then marks them.
static void sort_blocks(const struct blocks *it) {
    enum { PARTNERS = 3 }; // more find hardly more
    const struct n8_conv *conv = it->conv;
    const size_t groups = n8_panel_groups(&conv->row->tile, conv->depth);
    const size_t whole = conv->passing ? 0 : conv->depth / (N8_BLOCKS * N8_BLOCK);
    for (size_t i = 0; i < groups; i++) { // as they are
        it->words[i] = 2 * (N8_BLOCKS * i * UINT64_C(0x0001000100010001) + 0x0003000200010000);
    }
    for (size_t i = 0; i < whole; i++) {
        size_t had = count_marks(it, i);
        for (size_t k = 1; k <= PARTNERS && k < groups && had < N8_MARKED; k++) {
            had = trade(it, i, (i + k) % groups, had);
        }
    }
    for (size_t i = 0; i < whole; i++) {
        for (size_t part = 0; part < N8_MARKED; part++) {
            it->words[i] |= (uint64_t)mark_of(it, i, part) << 16 * part;
        }
    }
}

// The marks of a group's packed panels, which lie after them.
static void mark_panels(const struct n8_conv *conv, int8_t *packed) {
    const struct n8_tile *tile = &conv->row->tile;
    const size_t size = n8_panel_marks(tile, conv->depth);
    int8_t *marks = packed + conv->igemm.marks;
    for (const int8_t *end = marks; size != 0 && packed < end; packed += conv->depth * tile->nr) {
        void *words = marks;
        if (HAS_GROUPS && tile->packing == N8_PACKING_GROUPS) {
            sort_blocks(&(struct blocks){.conv = conv, .weights = packed, .words = words});
        } else if (HAS_GROUPS_BY_4) {
            mark_groups(conv, packed, words);
        }
        marks += size;
    }
}

void n8_conv_pack_igemm(const struct n8_conv *conv, const int8_t *weights, void *memory) {
    for (size_t g = 0; g < conv->groups; g++) {
        const size_t size = conv->group_out * conv->taps * conv->group_in / conv->igemm.bundle;
        int8_t *packed = (int8_t *)memory + g * conv->group_weights;
        const bool apart = conv->igemm.bundle > 1 || conv->igemm.column != 0;
        (apart ? pack_bundle : pack_group)(conv, weights + g * size, packed);
        mark_panels(conv, packed);
    }
}

// What a unit of implicit GEMM works on: its rows, and one slice of the channels or all of them.
struct igemm {
    struct n8_igemm_rows rows;
    int32_t *acc; // [count][channels], where they are requantized afterwards
};

void n8_igemm_args_of(const struct n8_conv *conv, const struct n8_conv_io *io, size_t first,
                      size_t count, size_t group, size_t channel, size_t channels,
                      struct n8_igemm_args *args) {
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t out_size = e->type == N8_TYPE_S8 ? 1 : e->type == N8_TYPE_S16 ? 2 : 4;
    const size_t out_channel = group * conv->group_out + channel;
    const size_t entry = group * conv->group_entries + channel;
    const ptrdiff_t pixel = (ptrdiff_t)first;
    *args = (struct n8_igemm_args){
        .out = (uint8_t *)io->out + pixel * io->out_stride + out_channel * out_size,
        .out_stride = io->out_stride,
        .pixels = count,
        .channels = channels,
        .taps = conv->taps,
        .depth = conv->depth,
        .bias = e->bias + entry,
        .multiplier = e->multiplier + entry,
        .bias_f32 = e->bias_f32 + entry,
        .start = conv->start == NULL ? NULL : conv->start + entry,
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

// What a kernel computes: a unit, or several that follow each other.
struct piece {
    struct n8_igemm_args args;
    struct n8_windows_args windows; // of kernels that find their rows
};

// That of the unit at `rows.at`, whose rows are made. A slice begins with a panel.
static void prepare_piece(struct n8_igemm_rows *rows, struct piece *out) {
    struct n8_igemm_args *args = &out->args;
    const struct n8_conv *conv = rows->conv;
    const struct n8_conv_unit *at = &rows->at;
    const size_t first = at->image * pixels_of(&conv->shape) + at->first;
    n8_igemm_args_of(conv, rows->io, first, at->count, at->group, at->channel, at->channels, args);
    if (has_windows(conv)) {
        n8_igemm_windows(rows, &out->windows);
        args->windows = &out->windows;
    } else {
        n8_igemm_make_rows(rows);
        args->rows = rows->table;
    }
    const int8_t *packed = conv->weights + at->group * conv->group_weights;
    args->weights = packed + at->channel * conv->taps * conv->depth;
    if (n8_panel_lanes(&conv->row->tile) != 0) {
        args->deep = (const uint8_t *)packed + conv->igemm.marks +
                     at->channel / conv->row->tile.nr * panel_marks(conv);
    }
}

static void run_unit(const struct igemm *it, struct n8_igemm_args *args) {
    const struct n8_conv *conv = it->rows.conv;
    const struct n8_conv_unit *at = &it->rows.at;
    if (!conv->accumulates) {
        conv->row->igemm(args);
        return;
    }
    args->out = it->acc;
    args->out_stride = (ptrdiff_t)(at->channels * sizeof *it->acc);
    conv->row->igemm(args);
    n8_conv_output(
        conv, it->rows.io,
        &(struct n8_conv_accumulators){.acc = it->acc,
                                       .stride = args->out_stride,
                                       .pixel = at->image * pixels_of(&conv->shape) + at->first,
                                       .pixels = at->count,
                                       .channel = at->group * conv->group_out + at->channel,
                                       .channels = at->channels,
                                       .entry = at->group * conv->group_entries + at->channel});
}

// Whether a unit has the next pixels of the same channels.
static bool goes_on(const struct n8_conv_unit *at, const struct n8_conv_unit *before) {
    return at->first == before->first + before->count && at->group == before->group &&
           at->channel == before->channel && at->channels == before->channels;
}

void n8_conv_run_igemm(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin,
                       size_t end, void *memory) {
    uint8_t *scratch = memory;
    const size_t padding = n8_round_up(conv->igemm.rows_size, N8_CONV_ALIGN);
    const size_t copies = padding + n8_round_up(conv->igemm.packed_rows, N8_CONV_ALIGN);
    const size_t pointers = conv->igemm.tables * conv->igemm.block * conv->taps;
    const size_t used = copies + pointers * sizeof(int8_t *);
    struct igemm it = {
        .rows = {.conv = conv,
                 .io = io,
                 .windows = (int8_t *)scratch,
                 .padding = (const int8_t *)scratch,
                 .packed = (int8_t *)scratch + padding,
                 .tables = (const int8_t **)(void *)(scratch + copies),
                 .made = SIZE_MAX},
    };
    it.acc = (int32_t *)(void *)(scratch + n8_round_up(used, N8_CONV_ALIGN));
    memset(scratch, conv->in_zero_point, conv->igemm.rows_size);
    // A kernel that finds rows has one call for all units, as far as there are pieces: a share of
    // an image has up to three, its channels between the beginning and the end of its pixels.
    struct piece pieces[8], *piece = pieces;
    const bool together = has_windows(conv) && !conv->igemm.unfolded && !conv->accumulates;
    for (size_t unit = begin; unit < end;) {
        const size_t last = conv->accumulates ? unit + 1 : end; // a unit's accumulators are kept
        const struct n8_conv_unit before = it.rows.at;
        unit += n8_conv_units_at(conv, unit, last, pixels_of(&conv->shape), conv->igemm.block,
                                 &it.rows.at);
        if (piece > pieces && goes_on(&it.rows.at, &before)) {
            piece[-1].args.pixels += it.rows.at.count;
        } else {
            prepare_piece(&it.rows, piece);
            if (piece > pieces) {
                piece[-1].windows.next = &piece->args;
            }
            piece++;
        }
        if (!together || piece == pieces + sizeof pieces / sizeof *pieces || unit == end) {
            run_unit(&it, &pieces->args);
            piece = pieces;
        }
    }
}
