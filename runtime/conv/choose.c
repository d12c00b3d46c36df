// SPDX-License-Identifier: Apache-2.0
#include "choose.h"

#include "algorithm.h"
#include "include/neon8_format.h"
#include "ref/panel.h"
#include "ref/winograd.h"
#include "size.h"

#include <stdbool.h>

// A tile of rows is packed if at least so many panels of up to eight channels read it: packing
// costs about twice what it saves one of them.
enum { PACKED_PANELS = 3 };

// Bytes of a row of which all blocks have numbers.
enum { MOST_GROUPED = N8_MOST_BLOCKS * N8_BLOCK };

// Before it halves them, the whole form of (23) has accumulators of up to twice the bound of (12).
enum { MOST_WHOLE = 1 << 30 };

// Columns of the shortest output for which two pixels at once pay.
enum { LEAST_COLUMNS = 4 };

// Taps above which implicit GEMM pays for a single input channel.
enum { ONE_CHANNEL = 9 };

// What int16 Winograd costs for each tile of 4x4 outputs of a 3x3 convolution, and implicit GEMM
// for each pixel, beyond their products: counted in products that take as long. The factors say how
// long a product takes. One set of figures, from counts of whole layers, suits AArch64 and ARMv7.
enum {
    TILE_INPUT = 100,  // of each channel of the input
    TILE_OUTPUT = 365, // and of the output, in whole panels
    PIXEL_PRODUCTS = 9,
    PIXEL_TAPS = 1000, // finding where they lie, or copying those of several groups
    PIXEL_OUTPUT = 17, // of each channel of the output, where windows come from copied lines
    TRANSFORM = 65,    // of each pair of channels, where weights are transformed for a block
    GEMM_FACTOR = 5,
    WINOGRAD_FACTOR = 4,
    MOST_CHANNELS = 4096, // for which weights, eight times as large, are worth their memory
};

// A depthwise kernel computes a row of outputs a call; implicit GEMM does what it cannot, and
// large windows of a single channel that has several of the output.
static bool is_depthwise(const struct n8_conv_facts *f) {
    const struct n8_conv2d_shape *s = f->shape;
    const int64_t taps = (int64_t)s->kernel_height * s->kernel_width;
    if (s->groups == 1 && s->out_channels > 1 && taps > ONE_CHANNEL) {
        return false;
    }
    return s->groups == s->in_channels && f->epilogue->type == N8_TYPE_S8 &&
           f->epilogue->residual_scale == 0.0f && !f->accumulates;
}

// True if the epilogue of the Winograd kernels can do it.
static bool is_requantized(const struct n8_conv_facts *f) {
    return f->epilogue->type == N8_TYPE_S8 && !f->accumulates;
}

static enum n8_conv_slot igemm_slot(const struct n8_conv_facts *f) {
    const struct n8_conv2d_epilogue *e = f->epilogue;
    if (e->type == N8_TYPE_S32 || f->accumulates) {
        return N8_SLOT_igemm_s8_s32;
    }
    if (e->type == N8_TYPE_F32) {
        return N8_SLOT_igemm_s8_f32;
    }
    return e->residual_scale != 0.0f ? N8_SLOT_igemm_s8_s8_add : N8_SLOT_igemm_s8_s8;
}

// NULL, or why a depthwise row does not serve the layer. A kernel sees distances between
// pixels only, so a dilation that equals the stride is stride 1 to it.
static const char *refuse_depthwise(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    const struct n8_conv2d_shape *s = f->shape;
    if ((row->height != 0 && row->height != s->kernel_height) ||
        (row->width != 0 && row->width != s->kernel_width)) {
        return "for another kernel size";
    }
    if (row->ratio != 0 && (int64_t)row->ratio * s->dilation_width != s->stride_width) {
        return "for another stride";
    }
    if (row->outputs == 2 &&
        (s->out_height == 1 || (int64_t)row->ratio * s->dilation_height != s->stride_height)) {
        return "for two rows of outputs";
    }
    return NULL;
}

// The same for (23).
static const char *refuse_winograd(const struct n8_conv2d_shape *s) {
    return s->kernel_width != 3 || s->kernel_height > 3 || s->stride_width != 1 ||
                   s->stride_height != 1 || s->dilation_width != 1 || s->dilation_height != 1 ||
                   s->groups != 1 || s->in_channels <= N8_PIXEL
               ? "for kernels of 3 columns that see each pixel of many channels"
               : NULL;
}

// Whether tiles of one pixel more than mr leave up to 3 over, which take longer than their
// products, as those of 8 do of 7 x 7; and those of mr none.
static bool leaves_few(const struct n8_conv2d_shape *s, int64_t mr) {
    const int64_t pixels = (int64_t)s->out_height * s->out_width, left = pixels % (mr + 1);
    return pixels % mr == 0 && left != 0 && left <= 3;
}

static const char *refuse_igemm(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    if (n8_is_winograd(&row->tile)) {
        return refuse_winograd(f->shape);
    }
    if (row->tile.mr % 2 == 1 && row->tile.mr > 1 && !leaves_few(f->shape, row->tile.mr)) {
        return "for as many pixels as its tiles make, and even ones do not";
    }
    if (row->tile.mr == 1 && (f->shape->out_height != 1 || f->shape->out_width != 1)) {
        return "for a single pixel";
    }
    return NULL;
}

// The points of Winograd's tiles along an axis: six of each, fewer of the last if it has fewer
// outputs.
static int64_t points_along(int64_t out) {
    return out / 4 * 6 + (out % 4 == 0 ? 0 : out % 4 + 2);
}

// A core that executes in order waits for each line of weights that a second-level cache does not
// hold, longer than it takes to transform them; one that does not reads them meanwhile.
N8_ONCE bool n8_winograd16_transforms(const struct n8_conv_row *row,
                                      const struct n8_conv2d_shape *s,
                                      const struct n8_kernels *kernels) {
    const size_t in = n8_round_up((size_t)(s->in_channels / s->groups), N8_PIXEL);
    const size_t out = n8_round_up((size_t)(s->out_channels / s->groups), row->tile.nr);
    const size_t size = (size_t)s->groups * in * out * N8_WINOGRAD_PLANES * sizeof(int16_t);
    return kernels->frugal || (kernels->core == N8_CORE_IN_ORDER && size > kernels->cache);
}

// The cost of a group of an image by Winograd. Kernels multiply two tiles at least.
static float winograd16_cost(const struct n8_conv_row *row, const struct n8_conv_facts *f,
                             size_t in, size_t out) {
    const struct n8_conv2d_shape *s = f->shape;
    const size_t depth = n8_round_up(in, N8_PIXEL);
    const size_t padded = n8_pieces(out, row->tile.nr) * row->tile.nr;
    const size_t tiles =
        n8_mul(n8_pieces((size_t)s->out_height, 4), n8_pieces((size_t)s->out_width, 4));
    int64_t products = points_along(s->out_height) * points_along(s->out_width);
    products = tiles == 1 ? 2 * products : products;
    if (n8_winograd16_transforms(row, s, f->kernels)) {
        products += TRANSFORM * (int64_t)n8_pieces(tiles, n8_winograd16_block(depth, tiles, true));
    }
    const float ends = (float)tiles * (float)(TILE_INPUT * depth + TILE_OUTPUT * padded);
    return (float)GEMM_FACTOR * ((float)products * (float)(depth * padded) + ends);
}

// The cost of a group of a pixel by implicit GEMM, which pads no channels where they are few: then
// it copies what they see, and takes such groups together.
static float pixel_cost(size_t groups, size_t in, size_t out) {
    const bool few = in < N8_PIXEL;
    const size_t depth = few ? in : n8_round_up(in, N8_PIXEL);
    const size_t padded = n8_round_up(out, N8_PIXEL);
    const size_t bundle = few && groups > 1 ? N8_PIXEL / in : 1;
    const size_t beside = few && groups == 1 ? PIXEL_OUTPUT * padded : PIXEL_TAPS / bundle;
    return (float)(WINOGRAD_FACTOR * (PIXEL_PRODUCTS * depth * padded + beside));
}

// Whether Winograd takes less time. As floats, which do not overflow; nothing depends on the last
// bit.
static bool winograd16_pays(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    const struct n8_conv2d_shape *s = f->shape;
    const size_t groups = (size_t)s->groups;
    const size_t in = (size_t)s->in_channels / groups, out = (size_t)s->out_channels / groups;
    const float pixels = (float)((int64_t)s->out_height * s->out_width);
    return pixels * pixel_cost(groups, in, out) > winograd16_cost(row, f, in, out);
}

static const char *refuse_winograd16(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    const struct n8_conv2d_shape *s = f->shape;
    if (s->kernel_height != 3 || s->kernel_width != 3 || s->stride_height != 1 ||
        s->stride_width != 1 || s->dilation_height != 1 || s->dilation_width != 1) {
        return "for 3x3 windows of stride 1";
    }
    if (s->in_channels > MOST_CHANNELS || s->out_channels > MOST_CHANNELS) {
        return "for fewer channels";
    }
    return winograd16_pays(row, f) ? NULL : "does not pay for so few channels or pixels";
}

// NULL, or why a row does not serve such layers at all.
static const char *refuse(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    if (!n8_serves(row->level, f->kernels->isa)) {
        return "of a level beyond the one allowed";
    }
    if (row->core != N8_CORE_ANY && row->core != f->kernels->core) {
        return "ordered for another core";
    }
    return row->kind == N8_CONV_DEPTHWISE    ? refuse_depthwise(row, f)
           : row->kind == N8_CONV_WINOGRAD16 ? refuse_winograd16(row, f)
                                             : refuse_igemm(row, f);
}

// What a layer lacks for (23). Its tiles take 4 products of rows where those of other kernels take
// 6, but what is multiplied is made first, which one panel of channels does not pay for; and rows
// of outputs that end inside a tile, or between two of a pair, leave a part of it empty. An eighth
// more tiles are still fewer cycles in each order of instructions, a fifth more are not.
static const char *lack_winograd(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    const struct n8_conv2d_shape *s = f->shape;
    const struct n8_conv_certificate *c = f->certificate;
    const int64_t mr = (int64_t)row->tile.mr, nr = (int64_t)row->tile.nr;
    const int64_t in_rows = (s->out_width + mr - 1) / mr * s->out_height;
    const int64_t least = ((int64_t)s->out_width * s->out_height + mr - 1) / mr;
    const int64_t tiles = n8_winograd_runs_on(&row->tile, s) ? least : in_rows;
    const int64_t panels = (s->out_channels + nr - 1) / nr;
    if (s->out_width < LEAST_COLUMNS || panels < 2 || 7 * tiles > 8 * least) {
        return "computes two pixels at once, which does not pay for so short rows";
    }
    if (f->in_hi - f->in_lo > INT8_MAX) {
        return "computes two pixels at once, which inputs of more than 128 values do not allow";
    }
    if (c->winograd == 0 || (c->winograd == N8_OP_WINOGRAD_WHOLE && c->acc_bound >= MOST_WHOLE)) {
        return "computes two pixels at once, which the weights were not proved to allow";
    }
    return NULL;
}

// The bytes of a tap or, where channels are few, of the copied window.
static int64_t row_bytes(const struct n8_conv2d_shape *s) {
    const int64_t in = s->in_channels / s->groups;
    return in > N8_PIXEL ? in : (int64_t)s->kernel_height * s->kernel_width * in;
}

// NULL, or what of the certificate or the size such a layer lacks for a row that could serve it.
static const char *lack(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    if (row->kind == N8_CONV_WINOGRAD16 && f->certificate->acc_bound >= N8_WINOGRAD_REACH) {
        return "its sums were not proved to stay below 2^25";
    }
    const size_t channels = (size_t)(f->shape->out_channels / f->shape->groups);
    if (n8_packs_rows(&row->tile) && channels < PACKED_PANELS * n8_smaller(row->tile.nr, 8)) {
        return "packs rows, which does not pay for so few channels";
    }
    if (row->tile.packing == N8_PACKING_GROUPS && row_bytes(f->shape) > MOST_GROUPED) {
        return "sums groups of products in int16, not for so many input channels";
    }
    return n8_is_winograd(&row->tile) ? lack_winograd(row, f) : NULL;
}

// What decided for a row, first what only some layers have.
static const char *merit(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    if (row->kind == N8_CONV_DEPTHWISE) {
        return row->height == 0 ? "depthwise, of any size" : "depthwise, of this size and stride";
    }
    if (row->kind == N8_CONV_WINOGRAD16) {
        return n8_winograd16_transforms(row, f->shape, f->kernels)
                   ? "a quarter of the products, of weights that are transformed in each run"
                   : "a quarter of the products";
    }
    if (row->tile.mr == 1) {
        return "for a single pixel";
    }
    if (n8_is_winograd(&row->tile)) {
        return "computes two pixels at once, as weights and input allow";
    }
    if (n8_panel_lanes(&row->tile) != 0) {
        return "sums four products in int16 wherever weights and input allow";
    }
    if (n8_packs_rows(&row->tile)) {
        return "packs rows, which pays for so many channels";
    }
    return row->core == N8_CORE_ANY ? "the highest level with a kernel" : "ordered for this core";
}

// The order of rows of one level: those with fewer products, then those that read packed rows.
static int rank_of(const struct n8_conv_row *row) {
    return row->kind == N8_CONV_WINOGRAD16 || n8_is_winograd(&row->tile)
               ? 2
               : n8_packs_rows(&row->tile);
}

// Whether `row`, which comes later, is preferred to `best`. Rows for several pixels waste most of
// their products on a single one.
static bool is_better(const struct n8_conv_row *row, const struct n8_conv_row *best) {
    if (best == NULL ||
        (row->kind == N8_CONV_IGEMM && (row->tile.mr == 1) != (best->tile.mr == 1))) {
        return best == NULL || row->tile.mr == 1;
    }
    if (row->level == best->level && rank_of(row) != rank_of(best)) {
        return rank_of(row) > rank_of(best);
    }
    return row->level >= best->level;
}

const struct n8_conv_row *n8_choose_conv(const struct n8_conv_facts *facts,
                                         struct n8_conv_reasons *reasons) {
    const bool depthwise = is_depthwise(facts);
    const enum n8_conv_slot slot = igemm_slot(facts);
    const struct n8_conv_row *best = NULL;   // that serves the layer
    const struct n8_conv_row *passed = NULL; // that lacks something
    const char *refusal = "no kernel of this kind";
    for (size_t i = 0; i < n8_conv_row_count; i++) {
        const struct n8_conv_row *row = &n8_conv_rows[i];
        const bool winograd = row->kind == N8_CONV_WINOGRAD16 && is_requantized(facts);
        if (depthwise ? row->kind != N8_CONV_DEPTHWISE : row->slot != slot && !winograd) {
            continue;
        }
        const char *why = refuse(row, facts);
        if (why != NULL) {
            refusal = why;
        } else if (lack(row, facts) != NULL) {
            passed = is_better(row, passed) ? row : passed;
        } else if (is_better(row, best)) {
            best = row;
        }
    }
    *reasons = (struct n8_conv_reasons){.chosen = best == NULL ? refusal : merit(best, facts)};
    const bool faster = passed != NULL && best != NULL &&
                        (passed < best ? !is_better(best, passed) : is_better(passed, best));
    if (faster) {
        reasons->passed = n8_conv_row_name(passed);
        reasons->lack = lack(passed, facts);
    }
    return best;
}
