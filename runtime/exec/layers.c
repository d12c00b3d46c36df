// SPDX-License-Identifier: Apache-2.0
//
// Single layers for callers who build their own network, as neon8.h promises them.
#include "conv/conv.h"
#include "memory/allocate.h"
#include "model/model.h"
#include "size.h"

struct n8_conv2d {
    struct n8_conv conv;
    void *scratch;
};

// NULL is aligned.
static bool aligned(const void *array) {
    return (uintptr_t)array % sizeof(float) == 0;
}

static bool range_ok(int32_t zero_point, int32_t lo, int32_t hi) {
    return n8_in_range(lo, -128, hi) && hi <= 127 && n8_in_range(zero_point, -128, 127);
}

enum n8_status n8_quantize_f32_s8(int8_t *out, const float *in, size_t count, float scale,
                                  int32_t zero_point, int32_t lo, int32_t hi) {
    struct n8_kernels kernels;
    if (out == NULL || in == NULL || !aligned(in) || !n8_scale_ok(scale) ||
        !range_ok(zero_point, lo, hi) || !n8_in_range(zero_point, lo, hi)) {
        return N8_E_ARGUMENT;
    }
    N8_TRY(n8_kernels_select(N8_ISA_AUTO, &kernels));
    kernels.quantize_f32_s8(out, in, count, 1.0f / scale, zero_point, lo, hi);
    return N8_OK;
}

enum n8_status n8_dequantize_s8_f32(float *out, const int8_t *in, size_t count, float scale,
                                    int32_t zero_point) {
    struct n8_kernels kernels;
    if (out == NULL || in == NULL || !aligned(out) || !n8_scale_ok(scale) ||
        !n8_in_range(zero_point, -128, 127)) {
        return N8_E_ARGUMENT;
    }
    N8_TRY(n8_kernels_select(N8_ISA_AUTO, &kernels));
    kernels.dequantize_s8_f32(out, in, count, scale, zero_point);
    return N8_OK;
}

static bool multipliers_ok(const float *multiplier, size_t channels) {
    if (multiplier == NULL || !aligned(multiplier)) {
        return false;
    }
    for (size_t c = 0; c < channels; c++) {
        if (!n8_multiplier_ok(multiplier[c])) {
            return false;
        }
    }
    return true;
}

enum n8_status n8_dequantize_s32_f32(float *out, const int32_t *in, size_t pixels, size_t channels,
                                     const float *scale, const float *bias) {
    struct n8_kernels kernels;
    if (out == NULL || in == NULL || !aligned(out) || !aligned(in) || !aligned(bias) ||
        !multipliers_ok(scale, channels)) {
        return N8_E_ARGUMENT;
    }
    for (size_t c = 0; bias != NULL && c < channels; c++) {
        if (!n8_float_bias_ok(bias[c])) {
            return N8_E_ARGUMENT;
        }
    }
    N8_TRY(n8_kernels_select(N8_ISA_AUTO, &kernels));
    kernels.dequantize_s32_f32(out, in, pixels, channels, scale, bias);
    return N8_OK;
}

enum n8_status n8_requantize_s32_s8(int8_t *out, const int32_t *in, size_t pixels, size_t channels,
                                    const float *multiplier, int32_t zero_point, int32_t lo,
                                    int32_t hi) {
    struct n8_kernels kernels;
    if (out == NULL || in == NULL || !aligned(in) || !range_ok(zero_point, lo, hi) ||
        !multipliers_ok(multiplier, channels)) {
        return N8_E_ARGUMENT;
    }
    N8_TRY(n8_kernels_select(N8_ISA_AUTO, &kernels));
    kernels.requantize_s32_s8(out, in, pixels, channels, multiplier, zero_point, lo, hi);
    return N8_OK;
}

enum n8_status n8_conv2d_create(const struct n8_conv2d_shape *shape, const int8_t *weights,
                                int32_t in_zero_point, const struct n8_conv2d_epilogue *epilogue,
                                enum n8_isa isa, struct n8_conv2d **out) {
    if (out == NULL) {
        return N8_E_ARGUMENT;
    }
    *out = NULL;
    if (shape == NULL || weights == NULL || epilogue == NULL || !N8_NOTHING_RESERVED(shape) ||
        !N8_NOTHING_RESERVED(epilogue) || epilogue->type == N8_TYPE_S16 ||
        !aligned(epilogue->bias) || !aligned(epilogue->multiplier) ||
        !aligned(epilogue->bias_f32) || !aligned(epilogue->slope)) {
        return N8_E_ARGUMENT;
    }
    struct n8_kernels kernels;
    N8_TRY(n8_kernels_select(isa, &kernels));
    // Checked with a certificate that holds for any weights, and planned with what these prove.
    struct n8_conv_certificate certificate = {.int16_depth = 2, .acc_bound = INT32_MAX};
    const struct n8_conv_input input = {
        .zero_point = in_zero_point, .type = N8_TYPE_S8, .residual = N8_TYPE_S8, .reach = 128};
    struct n8_conv plan;
    enum n8_status status = n8_conv_plan(&plan, shape, &input, epilogue, &certificate, &kernels);
    if (status == N8_OK) {
        certificate = n8_conv_certify(&plan, weights);
        status = n8_conv_plan(&plan, shape, &input, epilogue, &certificate, &kernels);
    }
    if (status != N8_OK) {
        return status == N8_E_ADDRESS ? status : N8_E_ARGUMENT; // no file here is malformed
    }
    struct n8_conv_proof proof;
    struct n8_model_error error;
    status = n8_conv_prove(&plan, weights, &proof, &error);
    if (status != N8_OK) {
        return status == N8_E_FORMAT ? N8_E_ARGUMENT : status;
    }
    // Object, packed weights and scratch in one allocation; packed_size is a multiple of 64.
    const size_t head = n8_round_up(sizeof(struct n8_conv2d), N8_ALIGN);
    struct n8_conv2d *conv = n8_allocate(n8_add(n8_add(head, plan.packed_size), plan.scratch_size));
    if (conv == NULL) {
        return N8_E_MEMORY;
    }
    conv->conv = plan;
    conv->scratch = (uint8_t *)conv + head + plan.packed_size;
    n8_conv_pack(&conv->conv, weights, &proof, (uint8_t *)conv + head);
    *out = conv;
    return N8_OK;
}

void n8_conv2d_destroy(struct n8_conv2d *conv) {
    n8_free(conv);
}

// Bytes of a pixel, channel padding included.
static ptrdiff_t pixel_bytes(int32_t channels, enum n8_type type) {
    return type == N8_TYPE_S8 ? (ptrdiff_t)(channels + 7) / 8 * 8 : (ptrdiff_t)channels * 4;
}

enum n8_status n8_conv2d_run(struct n8_conv2d *conv, void *out, ptrdiff_t out_stride,
                             const int8_t *in, ptrdiff_t in_stride, const int8_t *residual,
                             ptrdiff_t residual_stride) {
    if (conv == NULL || out == NULL || in == NULL) {
        return N8_E_ARGUMENT;
    }
    const struct n8_conv2d_shape *shape = &conv->conv.shape;
    const enum n8_type type = conv->conv.epilogue.type;
    const bool wants_residual = conv->conv.epilogue.residual_scale != 0.0f;
    if (in_stride < pixel_bytes(shape->in_channels, N8_TYPE_S8) ||
        out_stride < pixel_bytes(shape->out_channels, type) ||
        (type != N8_TYPE_S8 && (out_stride % 4 != 0 || !aligned(out))) ||
        (residual != NULL) != wants_residual ||
        (residual != NULL && residual_stride < pixel_bytes(shape->out_channels, N8_TYPE_S8))) {
        return N8_E_ARGUMENT;
    }
    const struct n8_conv_io io = {
        .out = out,
        .out_stride = out_stride,
        .in = in,
        .in_stride = in_stride,
        .residual = residual,
        .residual_stride = residual_stride,
    };
    n8_conv_run(&conv->conv, &io, 0, conv->conv.units, conv->scratch);
    return N8_OK;
}
