// SPDX-License-Identifier: Apache-2.0
//
// What all convolutions have in common. All checks are here and in prove.c, so that running
// one has none.
#include "algorithm.h"

#include "choose.h"
#include "include/neon8_format.h"
#include "ref/panel.h"

#include <math.h>
#include <string.h>

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
    return n8_in_range(s->in_lo, INT8_MIN, s->in_hi) && s->in_hi <= INT8_MAX &&
           n8_in_range(s->pad_top, 0, N8_FORMAT_MAX_DIM) &&
           n8_in_range(s->pad_left, 0, N8_FORMAT_MAX_DIM) && s->in_channels % s->groups == 0 &&
           s->out_channels % s->groups == 0;
}

static bool value_ok(int32_t value, enum n8_type type) {
    return type == N8_TYPE_S16 ? n8_in_range(value, INT16_MIN, INT16_MAX)
                               : n8_in_range(value, INT8_MIN, INT8_MAX);
}

static bool epilogue_ok(const struct n8_conv2d_epilogue *e, enum n8_type residual) {
    const bool quantized = e->type == N8_TYPE_S8 || e->type == N8_TYPE_S16;
    if (!quantized && e->type != N8_TYPE_F32 && e->type != N8_TYPE_S32) {
        return false;
    }
    if (e->type != N8_TYPE_S32 && e->multiplier == NULL) {
        return false;
    }
    if (!quantized && (e->slope != NULL || e->residual_scale != 0.0f)) {
        return false;
    }
    return n8_multiplier_ok(fabsf(e->residual_scale)) &&
           value_ok(e->residual_zero_point, residual) && value_ok(e->zero_point, e->type) &&
           value_ok(e->lo, e->type) && value_ok(e->hi, e->type) && e->lo <= e->hi;
}

// Whether int16 is read or made, or weights are: kernels that do all in one go are for int8 only.
static bool has_s16(const struct n8_conv_input *input, const struct n8_conv2d_epilogue *e) {
    return input->type == N8_TYPE_S16 || input->weights_s16 || e->type == N8_TYPE_S16 ||
           (e->residual_scale != 0.0f && input->residual == N8_TYPE_S16);
}

enum n8_status n8_conv_plan(struct n8_conv *conv, const struct n8_conv2d_shape *shape,
                            const struct n8_conv_input *input,
                            const struct n8_conv2d_epilogue *epilogue,
                            const struct n8_conv_certificate *certificate,
                            const struct n8_kernels *kernels) {
    const bool s16 = has_s16(input, epilogue);
    const int32_t in_zero_point = input->zero_point;
    if (!shape_ok(shape) || !epilogue_ok(epilogue, input->residual) ||
        !value_ok(in_zero_point, input->type)) {
        return N8_E_FORMAT;
    }
    const bool any = shape->in_lo == 0 && shape->in_hi == 0;
    const int32_t lo = any ? INT8_MIN : shape->in_lo, hi = any ? INT8_MAX : shape->in_hi;
    const struct n8_conv_facts facts = {
        .shape = shape,
        .epilogue = epilogue,
        .certificate = certificate,
        .in_lo = in_zero_point < lo ? in_zero_point : lo,
        .in_hi = in_zero_point > hi ? in_zero_point : hi,
        .kernels = kernels,
        .accumulates = s16,
    };
    memset(conv, 0, sizeof *conv);
    if (s16 && shape->groups == shape->in_channels) {
        conv->algorithm = N8_ALGORITHM_depthwise_s16;
        conv->kernel_name = kernels->depthwise_s16_s32_name;
        conv->reasons.chosen = "depthwise, with int16";
    } else if (input->type == N8_TYPE_S16 || input->weights_s16) {
        conv->algorithm = N8_ALGORITHM_igemm_s16;
        conv->kernel_name = kernels->gemm_name;
        conv->reasons.chosen = "int16 times int16";
    } else {
        conv->row = n8_choose_conv(&facts, &conv->reasons);
        if (conv->row == NULL) {
            return N8_E_UNSUPPORTED;
        }
        conv->kernel_name = n8_conv_row_name(conv->row);
        conv->algorithm = conv->row->kind == N8_CONV_DEPTHWISE    ? N8_ALGORITHM_depthwise
                          : conv->row->kind == N8_CONV_WINOGRAD16 ? N8_ALGORITHM_winograd16
                          : n8_is_winograd(&conv->row->tile)      ? N8_ALGORITHM_winograd8
                                                                  : N8_ALGORITHM_igemm;
    }
    conv->shape = *shape;
    conv->certificate = *certificate;
    conv->epilogue = *epilogue;
    conv->in_zero_point = in_zero_point;
    conv->in_lo = facts.in_lo;
    conv->in_hi = facts.in_hi;
    conv->in_type = input->type;
    conv->residual_type = input->residual;
    conv->weights_s16 = input->weights_s16;
    conv->reach = input->reach;
    conv->accumulates = facts.accumulates;
    conv->output = kernels->output_s32_s16;
    conv->dequantize = kernels->dequantize_s32_f32;
    conv->taps = n8_mul((size_t)shape->kernel_height, (size_t)shape->kernel_width);
    conv->group_in = (size_t)(shape->in_channels / shape->groups);
    conv->group_out = (size_t)(shape->out_channels / shape->groups);
    switch (conv->algorithm) {
#define N8_CASE(symbol)                                                                            \
    case N8_ALGORITHM_##symbol:                                                                    \
        n8_conv_plan_##symbol(conv, kernels, certificate);                                         \
        break;
        N8_CONV_ALGORITHMS(N8_CASE)
#undef N8_CASE
    }
    const size_t weights = n8_round_up(n8_mul(conv->group_weights, conv->groups), N8_CONV_ALIGN);
    const size_t entries = n8_mul(conv->group_entries, conv->groups);
    const size_t array = n8_round_up(n8_mul(entries, sizeof(int32_t)), N8_CONV_ALIGN);
    // bias, multiplier, bias_f32 and slope, at least N8_SLACK each
    conv->packed_size = n8_add(weights, n8_mul(array, 4));
    return conv->packed_size == SIZE_MAX || conv->scratch_size == SIZE_MAX ||
                   conv->units == SIZE_MAX
               ? N8_E_ADDRESS
               : N8_OK;
}

bool n8_conv_plan_frugal(const struct n8_conv *conv, const struct n8_kernels *kernels,
                         struct n8_conv *out) {
    if (conv->algorithm != N8_ALGORITHM_winograd16) {
        return false;
    }
    const struct n8_conv_input input = {.zero_point = conv->in_zero_point,
                                        .type = conv->in_type,
                                        .residual = conv->residual_type,
                                        .reach = conv->reach};
    struct n8_kernels frugal = *kernels;
    frugal.frugal = true;
    if (n8_conv_plan(out, &conv->shape, &input, &conv->epilogue, &conv->certificate, &frugal) !=
        N8_OK) {
        return false;
    }
    out->weights = conv->weights;
    return out->packed_size < conv->packed_size;
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

// Whether the kernel can requantize by (5d), and gains by it: one for pairs of bytes serves first
// layers of in-order cores, which the copies of what is added cost more. Weights that are packed in
// each run are not worth a proof.
static bool fuses(const struct n8_conv *conv) {
#ifdef __aarch64__
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const bool known =
        conv->algorithm == N8_ALGORITHM_depthwise ||
        (conv->algorithm == N8_ALGORITHM_igemm && conv->row->tile.mr > 1 && conv->row->tile.kr > 2);
    return known && conv->row->level >= N8_ISA_NEON && e->type == N8_TYPE_S8 &&
           e->residual_scale == 0.0f && e->slope == NULL && !conv->accumulates && !conv->passing;
#else
    (void)conv;
    return false;
#endif
}

void n8_conv_pack(struct n8_conv *conv, const int8_t *weights, const struct n8_conv_proof *proof,
                  void *memory) {
    switch (conv->algorithm) {
#define N8_CASE(symbol)                                                                            \
    case N8_ALGORITHM_##symbol:                                                                    \
        n8_conv_pack_##symbol(conv, weights, memory);                                              \
        break;
        N8_CONV_ALGORITHMS(N8_CASE)
#undef N8_CASE
    }
    conv->weights = memory;
    conv->small = proof->small;
    struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t array =
        n8_round_up(conv->group_entries * conv->groups * sizeof(int32_t), N8_CONV_ALIGN);
    uint8_t *next =
        (uint8_t *)memory + n8_round_up(conv->group_weights * conv->groups, N8_CONV_ALIGN);
    e->bias = pack_array(conv, e->bias, next, sizeof *e->bias);
    e->multiplier = pack_array(conv, e->multiplier, next + array, sizeof *e->multiplier);
    e->bias_f32 = pack_array(conv, e->bias_f32, next + 2 * array, sizeof *e->bias_f32);
    if (e->slope != NULL) {
        e->slope = pack_array(conv, e->slope, next + 3 * array, sizeof *e->slope);
    } else if (fuses(conv)) { // whose other arrays nobody needs
        int32_t *start = (int32_t *)(void *)(next + 3 * array);
        float *addend = (float *)(void *)(next + 2 * array);
        const bool depthwise = conv->algorithm == N8_ALGORITHM_depthwise;
        const size_t panel = depthwise ? conv->row->block : conv->row->tile.nr;
        conv->mixed = n8_conv_fuse(conv, weights, panel, start, addend) != 0;
        // Tiles that go on at the next panel begin as those of this one.
        const bool alike = !depthwise && (conv->small & N8_SMALL_RESULTS) != 0 &&
                           conv->row->level == N8_ISA_DOTPROD &&
                           conv->row->core == N8_CORE_IN_ORDER;
        conv->start = conv->mixed && alike ? NULL : start;
    }
}

bool n8_conv_packs_alike(const struct n8_conv *a, const struct n8_conv *b) {
    if (a->algorithm != b->algorithm || a->row != b->row || a->packed_size != b->packed_size ||
        a->taps != b->taps || a->groups != b->groups || a->group_in != b->group_in ||
        a->depth != b->depth || a->group_weights != b->group_weights ||
        a->group_entries != b->group_entries || a->in_lo != b->in_lo || a->in_hi != b->in_hi) {
        return false;
    }
    if (a->algorithm == N8_ALGORITHM_winograd8) {
        return a->winograd8.form == b->winograd8.form;
    }
    if (a->algorithm == N8_ALGORITHM_igemm_s16) {
        return a->igemm_s16.panel == b->igemm_s16.panel;
    }
    return a->algorithm != N8_ALGORITHM_igemm ||
           (a->igemm.bundle == b->igemm.bundle && a->igemm.marks == b->igemm.marks);
}

void n8_conv_adopt(struct n8_conv *conv, const struct n8_conv *packed) {
    conv->weights = packed->weights;
    conv->small = packed->small;
    conv->start = packed->start;
    conv->mixed = packed->mixed;
    conv->epilogue.bias = packed->epilogue.bias;
    conv->epilogue.multiplier = packed->epilogue.multiplier;
    conv->epilogue.bias_f32 = packed->epilogue.bias_f32;
    conv->epilogue.slope = packed->epilogue.slope;
}

void n8_conv_run(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin, size_t end,
                 void *scratch) {
    switch (conv->algorithm) {
#define N8_CASE(symbol)                                                                            \
    case N8_ALGORITHM_##symbol:                                                                    \
        n8_conv_run_##symbol(conv, io, begin, end, scratch);                                       \
        break;
        N8_CONV_ALGORITHMS(N8_CASE)
#undef N8_CASE
    }
}
