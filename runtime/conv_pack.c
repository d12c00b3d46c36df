// SPDX-License-Identifier: Apache-2.0
//
// Planning and packing of a convolution. All checks are here and in conv_prove.c, so that
// conv_run.c has none.
#include "conv.h"

#include "include/neon8_format.h"
#include "size.h"

#include <string.h>

enum {
    ALIGN = 64,
    DEPTHWISE_CHANNELS = 8, // the padding of a pixel, and one block of depthwise weights
    TABLE_BYTES = 16384,    // the pointer table of one unit stays well inside L1
    MAX_BLOCK = 32,
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
    if (e->type != N8_TYPE_S32 && e->multiplier == NULL) {
        return false;
    }
    if (!s8 && (e->slope != NULL || e->residual_scale != 0.0f)) {
        return false;
    }
    return n8_multiplier_ok(e->residual_scale) && n8_in_range(e->residual_zero_point, -128, 127) &&
           n8_in_range(e->zero_point, -128, 127) && n8_in_range(e->lo, -128, 127) &&
           n8_in_range(e->hi, e->lo, 127);
}

static void choose_kernel(struct n8_conv *conv, const struct n8_kernels *k) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const bool residual = e->residual_scale != 0.0f;
    if (conv->group_in == 1 && conv->group_out == 1 && e->type == N8_TYPE_S8 && !residual) {
        const bool is3x3 = s->kernel_height == 3 && s->kernel_width == 3;
        // The kernels see distances between pixels only, so a dilation that equals the stride
        // is stride 1 to them.
        if (is3x3 && s->stride_width == s->dilation_width) {
            conv->depthwise = k->depthwise3x3s1_s8;
            conv->kernel_name = k->depthwise3x3s1_s8_name;
        } else if (is3x3 && s->stride_width == 2 * s->dilation_width) {
            conv->depthwise = k->depthwise3x3s2_s8;
            conv->kernel_name = k->depthwise3x3s2_s8_name;
        } else {
            conv->depthwise = k->depthwise_s8;
            conv->kernel_name = k->depthwise_s8_name;
        }
    } else if (e->type == N8_TYPE_S32) {
        conv->igemm = k->igemm_s8_s32;
        conv->kernel_name = k->igemm_s8_s32_name;
    } else if (e->type == N8_TYPE_F32) {
        conv->igemm = k->igemm_s8_f32;
        conv->kernel_name = k->igemm_s8_f32_name;
    } else if (residual) {
        conv->igemm = k->igemm_s8_s8_add;
        conv->kernel_name = k->igemm_s8_s8_add_name;
    } else {
        conv->igemm = k->igemm_s8_s8;
        conv->kernel_name = k->igemm_s8_s8_name;
    }
}

static void plan_depthwise(struct n8_conv *conv) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t channels = n8_round_up((size_t)s->in_channels, DEPTHWISE_CHANNELS);
    conv->group_weights = n8_mul(conv->taps, channels);
    conv->group_entries = channels;
    conv->units = n8_mul((size_t)s->batch, (size_t)s->out_height);
    // A row of padding as wide as the input, a patch for pixels at the border, and the row
    // pointers.
    const size_t row = n8_add(n8_mul((size_t)s->in_width, channels), N8_SLACK);
    const size_t patch = n8_add(n8_mul(conv->taps, channels), N8_SLACK);
    const size_t rows = n8_mul((size_t)s->kernel_height, sizeof(int8_t *));
    conv->scratch_size = n8_add(n8_add(n8_round_up(row, ALIGN), n8_round_up(patch, ALIGN)), rows);
}

static void plan_igemm(struct n8_conv *conv) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t tiles = n8_round_up(conv->group_out, N8_NR);
    conv->depth = n8_round_up(conv->group_in, N8_KR);
    conv->group_weights = n8_mul(n8_mul(conv->taps, conv->depth), tiles);
    conv->group_entries = tiles;
    const size_t pixels = n8_mul((size_t)s->out_height, (size_t)s->out_width);
    const size_t fit = TABLE_BYTES / sizeof(int8_t *) / conv->taps / N8_MR * N8_MR;
    conv->block = fit < N8_MR ? N8_MR : fit > MAX_BLOCK ? MAX_BLOCK : fit;
    conv->units = n8_mul((size_t)s->batch, n8_add(pixels, conv->block - 1) / conv->block);
    const size_t table = n8_mul(n8_mul(conv->block, conv->taps), sizeof(int8_t *));
    conv->scratch_size = n8_add(n8_round_up(conv->depth, ALIGN), table);
}

enum n8_status n8_conv_plan(struct n8_conv *conv, const struct n8_conv2d_shape *shape,
                            int32_t in_zero_point, const struct n8_conv2d_epilogue *epilogue,
                            const struct n8_kernels *kernels) {
    if (!shape_ok(shape) || !epilogue_ok(epilogue) || !n8_in_range(in_zero_point, -128, 127)) {
        return N8_E_FORMAT;
    }
    memset(conv, 0, sizeof *conv);
    conv->shape = *shape;
    conv->epilogue = *epilogue;
    conv->in_zero_point = in_zero_point;
    conv->taps = n8_mul((size_t)shape->kernel_height, (size_t)shape->kernel_width);
    conv->group_in = (size_t)(shape->in_channels / shape->groups);
    conv->group_out = (size_t)(shape->out_channels / shape->groups);
    choose_kernel(conv, kernels);
    if (conv->depthwise != NULL) {
        plan_depthwise(conv);
    } else {
        plan_igemm(conv);
    }
    const size_t groups = conv->depthwise != NULL ? 1 : (size_t)shape->groups;
    const size_t weights = n8_round_up(n8_mul(conv->group_weights, groups), ALIGN);
    const size_t entries = n8_mul(conv->group_entries, groups);
    const size_t array = n8_round_up(n8_mul(entries, sizeof(int32_t)), ALIGN);
    conv->packed_size = n8_add(weights, n8_mul(array, 4)); // bias, multiplier, bias_f32, slope
    return conv->packed_size == SIZE_MAX || conv->scratch_size == SIZE_MAX ||
                   conv->units == SIZE_MAX
               ? N8_E_FORMAT
               : N8_OK;
}

static void pack_depthwise(const struct n8_conv *conv, const int8_t *weights, int8_t *out) {
    const size_t channels = (size_t)conv->shape.in_channels;
    for (size_t c = 0; c < channels; c++) {
        int8_t *block = out + c / DEPTHWISE_CHANNELS * conv->taps * DEPTHWISE_CHANNELS;
        for (size_t t = 0; t < conv->taps; t++) {
            block[t * DEPTHWISE_CHANNELS + c % DEPTHWISE_CHANNELS] = weights[c * conv->taps + t];
        }
    }
}

// [O][taps][I] to [O / 4][taps][I / 16][4][16]: the order in which the kernel reads.
static void pack_igemm(const struct n8_conv *conv, const int8_t *weights, int8_t *out) {
    const size_t tile = conv->taps * conv->depth * N8_NR;
    for (size_t n = 0; n < conv->group_out; n++) {
        for (size_t t = 0; t < conv->taps; t++) {
            const int8_t *from = weights + (n * conv->taps + t) * conv->group_in;
            int8_t *to = out + n / N8_NR * tile + t * conv->depth * N8_NR + n % N8_NR * N8_KR;
            for (size_t k = 0; k < conv->group_in; k += N8_KR) {
                const size_t rest = conv->group_in - k;
                memcpy(to + k * N8_NR, from + k, rest < N8_KR ? rest : N8_KR);
            }
        }
    }
}

// One array of 32-bit entries: each group starts at a multiple of group_entries.
static const void *pack_array(const struct n8_conv *conv, size_t groups, const void *from,
                              uint8_t *to) {
    const size_t count = (size_t)conv->shape.out_channels / groups;
    for (size_t g = 0; from != NULL && g < groups; g++) {
        memcpy(to + g * conv->group_entries * sizeof(int32_t),
               (const uint8_t *)from + g * count * sizeof(int32_t), count * sizeof(int32_t));
    }
    return to;
}

void n8_conv_pack(struct n8_conv *conv, const int8_t *weights, void *memory) {
    const size_t groups = conv->depthwise != NULL ? 1 : (size_t)conv->shape.groups;
    if (conv->depthwise != NULL) {
        pack_depthwise(conv, weights, memory);
    } else {
        for (size_t g = 0; g < groups; g++) {
            pack_igemm(conv, weights + g * conv->group_out * conv->taps * conv->group_in,
                       (int8_t *)memory + g * conv->group_weights);
        }
    }
    conv->weights = memory;
    struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t array = n8_round_up(conv->group_entries * groups * sizeof(int32_t), ALIGN);
    uint8_t *next = (uint8_t *)memory + n8_round_up(conv->group_weights * groups, ALIGN);
    e->bias = pack_array(conv, groups, e->bias, next);
    e->multiplier = pack_array(conv, groups, e->multiplier, next + array);
    e->bias_f32 = pack_array(conv, groups, e->bias_f32, next + 2 * array);
    if (e->slope != NULL) {
        e->slope = pack_array(conv, groups, e->slope, next + 3 * array);
    }
}
