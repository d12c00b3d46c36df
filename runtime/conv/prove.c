// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a convolution, value by value: what their file says of them is not believed.
#include "algorithm.h"

#include "include/neon8_format.h"
#include "status.h"

#include <math.h>
#include <string.h>

static float load_f32(const float *array, size_t index) {
    float value;
    memcpy(&value, (const uint8_t *)array + index * sizeof value, sizeof value);
    return value;
}

// What a channel's weights are, as a whole.
struct weights {
    uint64_t sum; // of magnitudes
    int32_t lo, hi;
};

// `count`, which is a constant wherever this is called, fits vectors of bytes and sums of 16 bits.
static inline __attribute__((always_inline)) void take(struct weights *all, const int8_t *weights,
                                                       size_t count) {
    uint16_t sum = 0;
    int8_t lo = 127;
    int8_t hi = -128;
    for (size_t i = 0; i < count; i++) {
        const int8_t w = weights[i];
        lo = w < lo ? w : lo;
        hi = w > hi ? w : hi;
        sum = (uint16_t)(sum + (uint8_t)(w < 0 ? -w : w));
    }
    all->sum += sum;
    all->lo = lo < all->lo ? lo : all->lo;
    all->hi = hi > all->hi ? hi : all->hi;
}

static struct weights take_channel(const int8_t *weights, size_t count) {
    enum { MANY = 64, FEW = 8 };
    struct weights all = {.lo = 127, .hi = -128};
    for (; count >= MANY; count -= MANY, weights += MANY) {
        take(&all, weights, MANY);
    }
    for (; count >= FEW; count -= FEW, weights += FEW) {
        take(&all, weights, FEW);
    }
    for (; count > 0; count--, weights++) {
        take(&all, weights, 1);
    }
    return all;
}

// The same of int16.
static struct weights take_channel_s16(const struct n8_conv *conv, const int8_t *weights,
                                       size_t first, size_t count) {
    struct weights all = {.lo = INT16_MAX, .hi = INT16_MIN};
    for (size_t i = 0; i < count; i++) {
        const int32_t w = n8_load_weight(conv, weights, first + i);
        all.sum += (uint32_t)(w < 0 ? -w : w);
        all.lo = w < all.lo ? w : all.lo;
        all.hi = w > all.hi ? w : all.hi;
    }
    return all;
}

// (11): true if any `depth` products of a channel fit int16, in whatever order a kernel adds
// them: the largest do. Two always fit if none of its weights is -128, and any `depth` if that
// many of the largest would.
static bool fits_int16(const int8_t *weights, size_t count, uint32_t depth, struct weights all) {
    const uint64_t most = (uint64_t)(all.hi > -all.lo ? all.hi : -all.lo);
    if ((depth <= 2 && all.lo > -128) || depth * most * 128 <= INT16_MAX) {
        return true;
    }
    size_t counts[129] = {0}; // of weights of each magnitude
    for (size_t i = 0; i < count; i++) {
        counts[weights[i] < 0 ? -weights[i] : weights[i]]++;
    }
    uint64_t sum = 0;
    size_t left = depth;
    for (size_t w = 128; w > 0; w--) {
        const size_t taken = counts[w] < left ? counts[w] : left;
        sum += (uint64_t)taken * w;
        left -= taken;
    }
    return sum * 128 <= INT16_MAX;
}

// What the taps g0 g1 g2 of rows of a kernel are, as a whole.
struct triples {
    int16_t most; // |g0 + g2| + |g1|
    int8_t odd;   // its lowest bit: whether a sum of the three is
};

// `count` as of `take`.
static inline __attribute__((always_inline)) void take_triples(struct triples *all,
                                                               const int8_t *g0, const int8_t *g1,
                                                               const int8_t *g2, size_t count) {
    int16_t most = all->most;
    int8_t odd = all->odd;
    for (size_t i = 0; i < count; i++) {
        const int16_t outer = (int16_t)(g0[i] + g2[i]);
        const int16_t inner = g1[i];
        const int16_t reach =
            (int16_t)((outer < 0 ? -outer : outer) + (inner < 0 ? -inner : inner));
        most = reach > most ? reach : most;
        odd = (int8_t)(odd | (g0[i] ^ g1[i] ^ g2[i]));
    }
    all->most = most;
    all->odd = odd;
}

// Takes the rows of one output channel.
static void take_rows(struct triples *all, const int8_t *weights,
                      const struct n8_conv2d_shape *shape) {
    enum { MANY = 16, TAPS = 3 };
    const size_t channels = (size_t)(shape->in_channels / shape->groups);
    for (int32_t y = 0; y < shape->kernel_height; y++, weights += TAPS * channels) {
        const int8_t *g0 = weights, *g1 = weights + channels, *g2 = weights + 2 * channels;
        size_t left = channels;
        for (; left >= MANY; left -= MANY, g0 += MANY, g1 += MANY, g2 += MANY) {
            take_triples(all, g0, g1, g2, MANY);
        }
        for (; left > 0; left--, g0++, g1++, g2++) {
            take_triples(all, g0, g1, g2, 1);
        }
    }
}

// (23): whether weights prove this form.
static bool fits_winograd(struct triples all, uint32_t form) {
    return form == N8_OP_WINOGRAD_WHOLE ? all.most <= 127 : all.most <= 254 && (all.odd & 1) == 0;
}

// (12)
static uint64_t bound_of(struct weights all, uint32_t reach, int32_t bias) {
    return all.sum * reach + (bias < 0 ? (uint64_t)-(int64_t)bias : (uint64_t)bias);
}

// Proves one output channel: `count` weights from number `first` on.
static enum n8_status prove_channel(const struct n8_conv *conv, const int8_t *weights, size_t first,
                                    size_t count, int32_t bias, struct n8_conv_proof *proof,
                                    uint64_t *bound, struct n8_model_error *error) {
    const bool s16 = conv->weights_s16;
    const struct weights all =
        s16 ? take_channel_s16(conv, weights, first, count) : take_channel(weights + first, count);
    if (!s16 && !fits_int16(weights + first, count, conv->certificate.int16_depth, all)) {
        return n8_refuse(error, N8_E_FORMAT, "its weights do not prove its int16 depth");
    }
    *bound = bound_of(all, conv->reach, bias);
    if (*bound >= UINT64_C(0x80000000)) {
        return n8_refuse(error, N8_E_OVERFLOW, "an accumulator can exceed 32 bits");
    }
    proof->weights_lo = all.lo < proof->weights_lo ? all.lo : proof->weights_lo;
    proof->weights_hi = all.hi > proof->weights_hi ? all.hi : proof->weights_hi;
    proof->acc_bound = *bound > proof->acc_bound ? *bound : proof->acc_bound;
    return N8_OK;
}

// Weights of an output channel.
static size_t weights_of(const struct n8_conv2d_shape *s) {
    return (size_t)s->kernel_height * (size_t)s->kernel_width *
           (size_t)(s->in_channels / s->groups);
}

enum n8_status n8_conv_prove(const struct n8_conv *conv, const int8_t *weights,
                             struct n8_conv_proof *out, struct n8_model_error *error) {
    const struct n8_conv_certificate *certificate = &conv->certificate;
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t channels = (size_t)conv->shape.out_channels;
    const size_t count = weights_of(&conv->shape);
    const double residual = 255.0 * fabs((double)e->residual_scale); // at most
    *out = (struct n8_conv_proof){
        .weights_lo = INT16_MAX,
        .weights_hi = INT16_MIN,
        .small = e->multiplier != NULL ? N8_SMALL_RESULTS | N8_SMALL_SUMS : 0,
    };
    struct triples triples = {0};
    for (size_t n = 0; n < channels; n++) {
        const int32_t bias = e->bias == NULL ? 0 : n8_load_i32(e->bias, n);
        uint64_t bound = 0;
        if (certificate->winograd != 0) {
            take_rows(&triples, weights + n * count, &conv->shape);
        }
        N8_TRY(prove_channel(conv, weights, n * count, count, bias, out, &bound, error));
        const float multiplier = e->multiplier == NULL ? 0.0f : load_f32(e->multiplier, n);
        if (!n8_multiplier_ok(multiplier)) {
            return n8_refuse(error, N8_E_FORMAT, "a multiplier is neither 0 nor in 1e-30 .. 2^64");
        }
        const double result = (double)bound * (double)multiplier + residual;
        out->small &= n8_small(bound, e->slope == NULL ? result : INFINITY);
        if (e->bias_f32 != NULL && !n8_float_bias_ok(load_f32(e->bias_f32, n))) {
            return n8_refuse(error, N8_E_FORMAT, "a float bias is neither 0 nor a normal number");
        }
        if (e->slope != NULL && !n8_slope_ok(load_f32(e->slope, n))) {
            return n8_refuse(error, N8_E_FORMAT, "a slope is outside +-2^30");
        }
    }
    if (certificate->winograd != 0 && !fits_winograd(triples, certificate->winograd)) {
        return n8_refuse(error, N8_E_FORMAT, "its weights do not prove its form of (23)");
    }
    return N8_OK;
}

struct n8_conv_certificate n8_conv_certify(const struct n8_conv *conv, const int8_t *weights) {
    enum { MOST_DEPTH = 8 }; // of kernels
    const int32_t *biases = conv->epilogue.bias;
    const size_t count = weights_of(&conv->shape);
    struct n8_conv_certificate certificate = {.int16_depth = MOST_DEPTH};
    const struct n8_conv2d_shape *s = &conv->shape;
    const bool neighbours = s->kernel_width == 3 && s->stride_width == 1 && s->dilation_width == 1;
    struct triples triples = {0};
    for (size_t n = 0; n < (size_t)conv->shape.out_channels; n++) {
        const struct weights all = take_channel(weights + n * count, count);
        const uint64_t bound =
            bound_of(all, conv->reach, biases == NULL ? 0 : n8_load_i32(biases, n));
        certificate.acc_bound = bound > certificate.acc_bound ? bound : certificate.acc_bound;
        while (certificate.int16_depth > 2 &&
               !fits_int16(weights + n * count, count, certificate.int16_depth, all)) {
            certificate.int16_depth /= 2;
        }
        if (neighbours) {
            take_rows(&triples, weights + n * count, s);
        }
    }
    const uint32_t form = triples.most <= 127 ? N8_OP_WINOGRAD_WHOLE : N8_OP_WINOGRAD_HALF;
    certificate.winograd = neighbours && fits_winograd(triples, form) ? form : 0;
    return certificate;
}
