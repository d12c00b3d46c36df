// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of int16 inputs or weights: the windows of a block of output pixels are copied one
// after the other, and the products of int16 Winograd (13) sum them with weights that are int16,
// too, a panel of channels at a time. Accumulators are taken modulo 2^32, which is exact where they
// fit (12).
#include "algorithm.h"

#include "move/widen.h"

#include <string.h>

enum {
    ROWS_BYTES = 65536, // of copied windows, which all panels read
    LEAST_BLOCK = 4,    // pixels that share a load of weights
    MAX_BLOCK = 16,
    ENOUGH_UNITS = 64, // for many threads to finish at the same time
};

static size_t pixels_of(const struct n8_conv2d_shape *s) {
    return n8_mul((size_t)s->out_height, (size_t)s->out_width);
}

static size_t windows_size(const struct n8_conv *conv) {
    return n8_round_up(n8_mul(conv->igemm_s16.block, conv->igemm_s16.window), N8_CONV_ALIGN);
}

void n8_conv_plan_igemm_s16(struct n8_conv *conv, const struct n8_kernels *kernels,
                            const struct n8_conv_certificate *certificate) {
    const struct n8_conv2d_shape *s = &conv->shape;
    struct n8_igemm_s16_plan *it = &conv->igemm_s16;
    it->gemm = kernels->gemm;
    it->panel = kernels->gemm_width;
    const size_t used = n8_mul(conv->taps, conv->group_in);
    conv->groups = (size_t)s->groups;
    conv->depth = n8_round_up(used, N8_PIXEL);
    conv->group_entries = n8_mul(n8_pieces(conv->group_out, it->panel), it->panel);
    it->window = n8_mul(conv->depth, sizeof(int16_t));
    conv->group_weights = n8_mul(it->window, conv->group_entries);
    const size_t fit = ROWS_BYTES / it->window;
    it->block = fit < LEAST_BLOCK ? LEAST_BLOCK : fit > MAX_BLOCK ? MAX_BLOCK : fit;
    const size_t blocks = n8_mul((size_t)s->batch, n8_pieces(pixels_of(s), it->block));
    const size_t wanted = n8_pieces(ENOUGH_UNITS, n8_mul(blocks, conv->groups));
    conv->slice = n8_mul(n8_pieces(n8_pieces(conv->group_out, wanted), it->panel), it->panel);
    conv->slices = n8_mul(n8_pieces(conv->group_out, conv->slice), conv->groups);
    conv->units = n8_mul(blocks, conv->slices);
    conv->scratch_size = n8_add(windows_size(conv), it->block * it->panel * sizeof(int32_t));
}

// [O][taps][I] to [O / panel][depth][panel].
void n8_conv_pack_igemm_s16(const struct n8_conv *conv, const int8_t *weights, void *memory) {
    const size_t panel = conv->igemm_s16.panel, used = conv->taps * conv->group_in;
    for (size_t g = 0; g < conv->groups; g++) {
        int16_t *group = (int16_t *)memory + g * (conv->group_weights / sizeof(int16_t));
        for (size_t n = 0; n < conv->group_out; n++) {
            int16_t *to = group + n / panel * conv->depth * panel + n % panel;
            const size_t first = (g * conv->group_out + n) * used;
            for (size_t k = 0; k < used; k++) {
                to[k * panel] = n8_load_weight(conv, weights, first + k);
            }
        }
    }
}

struct igemm_s16 {
    const struct n8_conv *conv;
    const struct n8_conv_io *io;
    int16_t *windows; // [block][depth]
    int32_t *acc;     // [block][panel]
    size_t made;      // the number of the block and group that the windows belong to
    struct n8_conv_unit at;
};

// The window whose first tap is at row y0 and column x0, padding included.
static void copy_window(const struct igemm_s16 *w, const uint8_t *image, int64_t y0, int64_t x0,
                        int16_t *to) {
    const struct n8_conv2d_shape *s = &w->conv->shape;
    const size_t channels = w->conv->group_in;
    for (int32_t ky = 0; ky < s->kernel_height; ky++) {
        const int64_t y = y0 + (int64_t)ky * s->dilation_height;
        for (int32_t kx = 0; kx < s->kernel_width; kx++, to += channels) {
            const int64_t x = x0 + (int64_t)kx * s->dilation_width;
            if (y >= 0 && y < s->in_height && x >= 0 && x < s->in_width) {
                n8_widen(to, image + (ptrdiff_t)(y * s->in_width + x) * w->io->in_stride, channels,
                         w->conv->in_type);
                continue;
            }
            for (size_t c = 0; c < channels; c++) {
                to[c] = (int16_t)w->conv->in_zero_point;
            }
        }
    }
}

// The windows of the unit's pixels, each `depth` values: copied, or where pixels lie like that.
static const int16_t *windows_of(struct igemm_s16 *w) {
    const struct n8_conv *conv = w->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const ptrdiff_t pixels = (ptrdiff_t)s->in_height * s->in_width;
    const bool s16 = conv->in_type == N8_TYPE_S16;
    const size_t number = w->at.block * conv->groups + w->at.group;
    const uint8_t *image = (const uint8_t *)w->io->in +
                           (ptrdiff_t)w->at.image * pixels * w->io->in_stride +
                           w->at.group * conv->group_in * (s16 ? sizeof(int16_t) : 1);
    const bool pointwise = s16 && conv->taps == 1 && s->stride_width == 1 &&
                           s->stride_height == 1 && s->pad_top == 0 && s->pad_left == 0 &&
                           s->out_width == s->in_width && s->out_height == s->in_height;
    if (pointwise && w->io->in_stride == (ptrdiff_t)conv->igemm_s16.window && conv->groups == 1 &&
        (uintptr_t)image % N8_ALIGN_PART == 0) {
        return (const int16_t *)(const void *)(image + w->at.first * conv->igemm_s16.window);
    }
    for (size_t p = 0; w->made != number && p < w->at.count; p++) {
        const int64_t oy = (int64_t)(w->at.first + p) / s->out_width;
        const int64_t ox = (int64_t)(w->at.first + p) % s->out_width;
        copy_window(w, image, n8_tap_at(oy, s->stride_height, 0, s->dilation_height, s->pad_top),
                    n8_tap_at(ox, s->stride_width, 0, s->dilation_width, s->pad_left),
                    w->windows + p * conv->depth);
    }
    w->made = number;
    return w->windows;
}

// The unit's channels, a panel at a time.
static void run_slice(struct igemm_s16 *w) {
    const struct n8_conv *conv = w->conv;
    const size_t group = w->at.group, end = w->at.channel + w->at.channels;
    const size_t panel = conv->igemm_s16.panel;
    const int8_t *weights = conv->weights + group * conv->group_weights;
    struct n8_winograd_gemm_args gemm = {
        .sums = w->acc,
        .in = windows_of(w),
        .depth = conv->depth,
        .tiles = w->at.count,
        .planes = 1,
        .width = panel,
    };
    struct n8_conv_accumulators it = {
        .acc = w->acc,
        .stride = (ptrdiff_t)(panel * sizeof *w->acc),
        .pixel = w->at.image * pixels_of(&conv->shape) + w->at.first,
        .pixels = w->at.count,
    };
    for (size_t n = w->at.channel; n < end; n += panel) {
        const size_t rest = end - n;
        gemm.weights = (const int16_t *)(const void *)(weights + n * conv->igemm_s16.window);
        conv->igemm_s16.gemm(&gemm);
        it.entry = group * conv->group_entries + n;
        it.bias = conv->epilogue.bias + it.entry;
        it.channel = group * conv->group_out + n;
        it.channels = rest < panel ? rest : panel;
        n8_conv_output(conv, w->io, &it);
    }
}

void n8_conv_run_igemm_s16(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin,
                           size_t end, void *memory) {
    struct igemm_s16 w = {
        .conv = conv,
        .io = io,
        .windows = memory,
        .acc = (int32_t *)(void *)((uint8_t *)memory + windows_size(conv)),
        .made = SIZE_MAX,
    };
    memset(memory, 0, windows_size(conv)); // what pads a window meets weights of 0
    for (size_t unit = begin; unit < end; unit++) {
        w.at = n8_conv_unit_at(conv, unit, pixels_of(&conv->shape), conv->igemm_s16.block);
        run_slice(&w);
    }
}
