// SPDX-License-Identifier: Apache-2.0
//
// Random layers give the bytes of the C kernels on every level that this processor has. In a build
// with the stand-in level, whose kernels have other geometries, also which row is chosen.
//
//   layers COUNT
#include "conv/choose.h"
#include "conv/conv.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

#ifdef N8_EXTRA_LEVELS
static const enum n8_isa STANDIN = (enum n8_isa)N8_LEVEL_standin;
#endif
static int failures;

static void fail(const char *what, const char *detail) {
    failures++;
    fprintf(stderr, "FAIL %s: %s\n", what, detail);
}

static uint32_t below(uint32_t bound) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % bound);
}

static void *allocate(size_t size) {
    void *memory = aligned_alloc(ALIGN, (size + ALIGN) / ALIGN * ALIGN);
    if (memory == NULL)
        abort();
    memset(memory, 0, size);
    return memory;
}

// An odd kernel and as much padding as keeps the size.
static struct n8_conv2d_shape square_shape(int32_t side, int32_t in, int32_t out, int32_t kernel) {
    return (struct n8_conv2d_shape){
        .batch = 1,
        .in_height = side,
        .in_width = side,
        .in_channels = in,
        .out_height = side,
        .out_width = side,
        .out_channels = out,
        .kernel_height = kernel,
        .kernel_width = kernel,
        .stride_height = 1,
        .stride_width = 1,
        .dilation_height = 1,
        .dilation_width = 1,
        .pad_top = kernel / 2,
        .pad_left = kernel / 2,
        .groups = 1,
    };
}

// The choice ---------------------------------------------------------------------------

#ifdef N8_EXTRA_LEVELS

// The kernel that the layers below lack something for, where they get `chosen`; or NULL.
static const char *passed_for(const char *chosen) {
    return strcmp(chosen, "n8_igemm_s8_s8_add_standin") == 0 ? "n8_igemm_s8_s8_add_standin_packed"
                                                             : NULL;
}

static void check_choice(void) {
    static const float one = 1.0f;
    static const struct {
        enum n8_type type;
        int32_t kernel, stride, dilation, side, groups; // of 8 channels
        float residual;
        enum n8_isa level;
        enum n8_core core;
        const char *name;
    } cases[] = {
        {N8_TYPE_S8, 3, 1, 1, 9, 1, 0, 90, 0, "n8_igemm_s8_s8_standin"},
        {N8_TYPE_S8, 3, 1, 1, 9, 1, 0, N8_ISA_C, 0, "n8_igemm_s8_s8_c"},
        {N8_TYPE_S8, 3, 1, 1, 9, 1, 0, 91, 0, "n8_igemm_s8_s8_standin"},
        {N8_TYPE_S8, 3, 1, 1, 9, 1, 1, 90, 0, "n8_igemm_s8_s8_add_standin_packed"},
        {N8_TYPE_S8, 3, 1, 1, 9, 2, 1, 90, 0, "n8_igemm_s8_s8_add_standin"},
        {N8_TYPE_F32, 1, 1, 1, 1, 1, 0, 90, 0, "n8_igemm_s8_f32_standin_pixel"},
        {N8_TYPE_F32, 1, 1, 1, 2, 1, 0, 90, 0, "n8_igemm_s8_f32_standin"},
        {N8_TYPE_S32, 3, 1, 1, 9, 1, 0, 90, 0, "n8_igemm_s8_s32_standin"},
        {N8_TYPE_S32, 3, 1, 1, 9, 1, 0, 90, N8_CORE_OUT_OF_ORDER, "n8_igemm_s8_s32_standin"},
        {N8_TYPE_S32, 3, 1, 1, 9, 1, 0, 90, N8_CORE_IN_ORDER, "n8_igemm_s8_s32_standin_in_order"},
        {N8_TYPE_S8, 3, 2, 1, 9, 8, 0, 90, 0, "n8_depthwise_s8_standin"},
        {N8_TYPE_S8, 5, 1, 1, 9, 8, 0, 90, 0, "n8_depthwise_s8_standin_5x5"},
        {N8_TYPE_S8, 5, 2, 2, 9, 8, 0, 90, 0, "n8_depthwise_s8_standin_5x5"},
        // Two rows of outputs at once.
        {N8_TYPE_S8, 5, 1, 1, 1, 8, 0, 90, 0, "n8_depthwise_s8_standin"},
        {N8_TYPE_S8, 5, 2, 1, 9, 8, 0, 90, 0, "n8_depthwise_s8_standin"},
        {N8_TYPE_S8, 3, 1, 1, 9, 8, 0, N8_ISA_C, 0, "n8_depthwise3x3s1_s8_c"},
        {N8_TYPE_S8, 3, 2, 1, 9, 8, 0, N8_ISA_C, 0, "n8_depthwise3x3s2_s8_c"},
        {N8_TYPE_S8, 5, 2, 1, 9, 8, 0, N8_ISA_C, 0, "n8_depthwise_s8_c"},
        {N8_TYPE_S8, 3, 1, 1, 9, 8, 1, 90, 0, "n8_igemm_s8_s8_add_standin"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct n8_conv2d_shape shape = square_shape(cases[i].side, 8, 8, cases[i].kernel);
        shape.stride_height = shape.stride_width = cases[i].stride;
        shape.dilation_height = shape.dilation_width = cases[i].dilation;
        shape.groups = cases[i].groups;
        const struct n8_conv2d_epilogue epilogue = {
            .type = cases[i].type, .multiplier = &one, .residual_scale = cases[i].residual};
        const struct n8_conv_certificate certificate = {.int16_depth = 2, .acc_bound = INT32_MAX};
        const struct n8_kernels kernels = {.isa = cases[i].level, .core = cases[i].core};
        const struct n8_conv_facts facts = {.shape = &shape,
                                            .epilogue = &epilogue,
                                            .certificate = &certificate,
                                            .in_lo = -128,
                                            .in_hi = 127,
                                            .kernels = &kernels};
        struct n8_conv_reasons reasons;
        const struct n8_conv_row *row = n8_choose_conv(&facts, &reasons);
        if (row == NULL || reasons.chosen == NULL ||
            strcmp(n8_conv_row_name(row), cases[i].name) != 0)
            fail(cases[i].name, row == NULL ? reasons.chosen : n8_conv_row_name(row));
        const char *passed = passed_for(cases[i].name);
        if (passed == NULL ? reasons.passed != NULL || reasons.lack != NULL
                           : reasons.passed == NULL || strcmp(reasons.passed, passed) != 0)
            fail(cases[i].name, reasons.lack == NULL ? "nothing was passed" : reasons.lack);
    }

    // Below every level there is nothing to choose from.
    const struct n8_conv2d_shape shape = {.groups = 1, .in_channels = 8, .out_channels = 8};
    const struct n8_conv2d_epilogue epilogue = {.type = N8_TYPE_S8};
    const struct n8_conv_certificate certificate = {.int16_depth = 2, .acc_bound = INT32_MAX};
    const struct n8_conv_facts facts = {.shape = &shape,
                                        .epilogue = &epilogue,
                                        .certificate = &certificate,
                                        .kernels = &(const struct n8_kernels){.isa = N8_ISA_AUTO}};
    struct n8_conv_reasons reasons;
    if (n8_choose_conv(&facts, &reasons) != NULL ||
        strcmp(reasons.chosen, "of a level beyond the one allowed") != 0)
        fail("no level", reasons.chosen);
}

#endif

// Single layers ------------------------------------------------------------------------

struct layer {
    struct n8_conv2d_shape shape;
    struct n8_conv2d_epilogue epilogue;
    int32_t in_zero_point;
    uint32_t int16_depth;
    uint32_t winograd;
    uint64_t acc_bound;
    enum n8_core core;
    int8_t *weights;
    int32_t *bias;
    float *multiplier, *bias_f32, *slope;
};

static int32_t out_size(int32_t in, int32_t kernel, int32_t stride, int32_t dilation, int32_t pad) {
    const int32_t span = in + 2 * pad - (kernel - 1) * dilation;
    return span < 1 ? 0 : (span - 1) / stride + 1;
}

// 3x3 of stride 1, with channels enough for Winograd to pay more often than not; tiles of all kinds
// at every edge.
static bool draw_tiled(struct n8_conv2d_shape *s) {
    s->groups = 1 + (int32_t)(below(4) == 0);
    s->in_channels = s->groups * (8 + (int32_t)below(50));
    s->out_channels = s->groups * (10 + (int32_t)below(50));
    s->batch = 1 + (int32_t)below(2);
    s->in_height = 2 + (int32_t)below(18);
    s->in_width = 2 + (int32_t)below(below(4) == 0 ? 60 : 18);
    s->kernel_height = s->kernel_width = 3;
    s->stride_height = s->stride_width = 1;
    s->dilation_height = s->dilation_width = 1;
    s->pad_top = (int32_t)below(3);
    s->pad_left = (int32_t)below(3);
    s->out_height = s->in_height - 2 + s->pad_top + (int32_t)below(3);
    s->out_width = s->in_width - 2 + s->pad_left + (int32_t)below(3);
    return s->out_height > 0 && s->out_width > 0;
}

// False if the draw has no output.
static bool draw_layer(struct layer *layer) {
    static const int32_t kernels[] = {1, 1, 3, 5, 5};
    struct n8_conv2d_shape *s = &layer->shape;
    if (below(8) == 0)
        return draw_tiled(s);
    const bool depthwise = below(3) == 0;
    // Depthwise layers take other ways where rows are long, and where copies of them are large.
    const uint32_t most_columns = depthwise && below(8) == 0 ? 100 : 12;
    const uint32_t most_groups = most_columns > 12 && below(4) == 0 ? 500 : 40;
    s->groups = depthwise ? 1 + (int32_t)below(most_groups) : 1 + (int32_t)below(3);
    // Few have many groups of products, some of which fit int16 in another order.
    const uint32_t most_inside = below(8) == 0 ? 300 : 40;
    s->in_channels = depthwise ? s->groups : s->groups * (1 + (int32_t)below(most_inside));
    const int32_t most = depthwise && below(2) == 0 ? 1 : depthwise ? 4 : 30;
    s->out_channels = s->groups * (1 + (int32_t)below((uint32_t)most));
    s->batch = 1 + (int32_t)below(2);
    s->in_height = below(4) == 0 ? 1 : 1 + (int32_t)below(12);
    s->in_width = s->in_height == 1 ? 1 : 1 + (int32_t)below(most_columns);
    s->kernel_height = kernels[below(5)];
    s->kernel_width = below(4) == 0 ? kernels[below(5)] : s->kernel_height;
    s->stride_height = s->stride_width = 1 + (int32_t)below(2);
    s->dilation_height = s->dilation_width = 1 + (int32_t)below(2);
    if (!depthwise && below(5) == 0) { // what (23) serves
        s->in_channels = s->in_channels / s->groups + N8_PIXEL;
        s->groups = 1;
        s->kernel_width = 3;
        s->kernel_height = 1 + (int32_t)below(3);
        s->stride_height = s->stride_width = s->dilation_height = s->dilation_width = 1;
    }
    if (!depthwise && below(10) == 0) { // what tiles of 7 pixels serve
        s->in_height = s->in_width = 7;
        s->kernel_height = s->kernel_width = s->stride_height = s->stride_width = 1;
    }
    s->pad_top = (int32_t)below((uint32_t)s->kernel_height);
    s->pad_left = (int32_t)below((uint32_t)s->kernel_width);
    s->out_height =
        out_size(s->in_height, s->kernel_height, s->stride_height, s->dilation_height, s->pad_top);
    s->out_width =
        out_size(s->in_width, s->kernel_width, s->stride_width, s->dilation_width, s->pad_left);
    return s->out_height > 0 && s->out_width > 0;
}

// Makes some layers fit (23), often at its bounds: their input has 128 values, and of three
// neighbouring weights the inner one is changed until they fit.
static void draw_winograd(struct layer *layer, size_t rows) {
    static const uint32_t forms[] = {0, N8_OP_WINOGRAD_WHOLE, N8_OP_WINOGRAD_HALF};
    struct n8_conv2d_shape *s = &layer->shape;
    if (s->kernel_width != 3 || s->stride_width != 1 || s->dilation_width != 1)
        return;
    layer->winograd = forms[below(3)];
    if (layer->winograd == 0)
        return;
    s->in_lo = (int32_t)below(129) - 128;
    s->in_hi = s->in_lo + 127;
    layer->in_zero_point = s->in_lo + (int32_t)below(128);
    const int32_t most = layer->winograd == N8_OP_WINOGRAD_WHOLE ? 127 : 254;
    const size_t depth = (size_t)(s->in_channels / s->groups);
    for (size_t i = 0; i < rows * depth; i++) {
        int8_t *g = layer->weights + i / depth * 3 * depth + i % depth;
        const int32_t outer = abs(g[0] + g[2 * depth]);
        if (outer > most)
            g[0] = (int8_t)-g[0];
        const int32_t room = most - abs(g[0] + g[2 * depth]);
        if (abs(g[depth]) > room)
            g[depth] = (int8_t)(g[depth] < 0 ? -room : room);
        if (layer->winograd == N8_OP_WINOGRAD_HALF && ((g[0] + g[depth] + g[2 * depth]) & 1) != 0)
            g[depth] = (int8_t)(g[depth] + (g[depth] < 0 ? 1 : -1));
    }
}

// (12) of its weights and biases.
static uint64_t bound_of(const struct layer *layer) {
    const struct n8_conv2d_shape *s = &layer->shape;
    const size_t count = (size_t)(s->kernel_height * s->kernel_width * s->in_channels / s->groups);
    uint64_t most = 0;
    for (size_t n = 0; n < (size_t)s->out_channels; n++) {
        uint64_t bound = (uint64_t)abs(layer->bias[n]);
        for (size_t i = 0; i < count; i++)
            bound += 128 * (uint64_t)abs(layer->weights[n * count + i]);
        most = bound > most ? bound : most;
    }
    return most;
}

static void draw_arrays(struct layer *layer) {
    static const enum n8_type types[] = {N8_TYPE_S8, N8_TYPE_S8, N8_TYPE_F32, N8_TYPE_S32};
    const struct n8_conv2d_shape *s = &layer->shape;
    const size_t channels = (size_t)s->out_channels;
    const size_t count =
        channels * (size_t)(s->kernel_height * s->kernel_width * s->in_channels / s->groups);
    layer->int16_depth = below(2) == 0 ? 2 : 4;
    layer->core = (enum n8_core)below(3);
    // Any four of weights up to 63 fit; the largest that do are frequent.
    const int32_t largest = layer->int16_depth == 2 ? 127 : 63;
    layer->weights = allocate(count);
    // In some layers two thirds of them are small, so that four fit in some groups.
    const size_t each = count / channels, small = below(2) == 0 ? each : 16;
    for (size_t i = 0; i < count; i++) {
        const int32_t w = (int32_t)below(4 * (uint32_t)largest) - 2 * largest;
        const int32_t value = w < -largest ? -largest : w > largest ? largest : w;
        layer->weights[i] = (int8_t)(i % each / small % 3 == 0 ? value : value / 2);
    }
    layer->in_zero_point = (int32_t)below(256) - 128;
    draw_winograd(layer, channels * (size_t)s->kernel_height);
    layer->bias = allocate(channels * sizeof(int32_t));
    layer->multiplier = allocate(channels * sizeof(float));
    layer->bias_f32 = allocate(channels * sizeof(float));
    layer->slope = allocate(channels * sizeof(float));
    for (size_t i = 0; i < channels; i++) {
        layer->bias[i] = (int32_t)below(20000) - 10000;
        layer->multiplier[i] = (float)(1 + below(1000)) * 1e-5f;
        layer->bias_f32[i] = (float)below(1000) * 0.1f - 50.0f;
        layer->slope[i] = (float)below(100) * 0.01f;
    }
    layer->acc_bound = below(4) == 0 ? 1 << 29 : bound_of(layer);
    const enum n8_type type = types[below(4)];
    const float residual_scale = below(2) == 0 ? 0.3f : -0.3f;
    layer->epilogue = (struct n8_conv2d_epilogue){
        .type = type,
        .bias = layer->bias,
        .multiplier = layer->multiplier,
        .bias_f32 = layer->bias_f32,
        .slope = type == N8_TYPE_S8 && below(2) == 0 ? layer->slope : NULL,
        .residual_scale = type == N8_TYPE_S8 && below(3) == 0 ? residual_scale : 0.0f,
        .residual_zero_point = 5,
        .zero_point = (int32_t)below(256) - 128,
        .lo = -127,
        .hi = 120,
    };
}

static void free_arrays(struct layer *layer) {
    free(layer->weights);
    free(layer->bias);
    free(layer->multiplier);
    free(layer->bias_f32);
    free(layer->slope);
}

// Runs the layer on the best kernels up to `level`; returns the row, NULL after a failure.
static const struct n8_conv_row *run_layer(const struct layer *layer, enum n8_isa level,
                                           struct n8_conv_io io) {
    struct n8_kernels kernels;
    struct n8_conv conv;
    if (n8_kernels_select(level, &kernels) != N8_OK)
        return NULL;
    kernels.core = layer->core;
    kernels.cache = (size_t)1024 << below(10); // so that small weights are sliced, too
    const struct n8_conv_certificate certificate = {.int16_depth = layer->int16_depth,
                                                    .acc_bound = layer->acc_bound,
                                                    .winograd = layer->winograd};
    const struct n8_conv_input input = {.zero_point = layer->in_zero_point,
                                        .type = N8_TYPE_S8,
                                        .residual = N8_TYPE_S8,
                                        .reach = 128};
    if (n8_conv_plan(&conv, &layer->shape, &input, &layer->epilogue, &certificate, &kernels) !=
        N8_OK)
        return NULL;
    void *packed = allocate(conv.packed_size);
    void *scratch = allocate(conv.scratch_size);
    struct n8_conv_proof proof;
    struct n8_model_error error;
    const bool done = n8_conv_prove(&conv, layer->weights, &proof, &error) == N8_OK;
    if (done) {
        n8_conv_pack(&conv, layer->weights, &proof, packed);
        for (size_t unit = 0, some; unit < conv.units; unit += some) { // as threads share them
            some = 1 + below((uint32_t)(conv.units - unit));
            n8_conv_run(&conv, &io, unit, unit + some, scratch);
        }
    }
    free(packed);
    free(scratch);
    return done ? conv.row : NULL;
}

enum inputs { NOISE, LOWEST };

// Whether kernels up to `level` give the bytes of C, and which row they are.
static bool same_bytes(const struct layer *layer, enum n8_isa level, enum inputs inputs,
                       const struct n8_conv_row **row) {
    const struct n8_conv2d_shape *s = &layer->shape;
    const size_t pixels_in = (size_t)(s->batch * s->in_height * s->in_width);
    const size_t pixels_out = (size_t)(s->batch * s->out_height * s->out_width);
    const size_t in_stride = ((size_t)s->in_channels + 7) / 8 * 8 + 8 * below(2);
    const size_t padded = ((size_t)s->out_channels + 7) / 8 * 8;
    const size_t out_stride =
        layer->epilogue.type == N8_TYPE_S8 ? padded : (size_t)s->out_channels * 4;
    const size_t in_size = pixels_in * in_stride + N8_SLACK;
    const size_t residual_size = pixels_out * padded + N8_SLACK;
    int8_t *in = allocate(in_size);
    int8_t *residual = allocate(residual_size);
    void *expected = allocate(pixels_out * out_stride);
    void *out = allocate(pixels_out * out_stride);
    // Half of the noise are the ends of its range.
    const int32_t lo = layer->winograd != 0 ? s->in_lo : -128;
    const int32_t hi = layer->winograd != 0 ? s->in_hi : 127;
    for (size_t i = 0; i < in_size; i++) {
        const int32_t x = lo + (int32_t)below(2 * (uint32_t)(hi - lo)) - (hi - lo) / 2;
        in[i] = (int8_t)(inputs == LOWEST ? -128 : x < lo ? lo : x > hi ? hi : x);
    }
    for (size_t i = 0; i < residual_size; i++)
        residual[i] = (int8_t)below(256);
    struct n8_conv_io io = {
        .out = expected,
        .out_stride = (ptrdiff_t)out_stride,
        .in = in,
        .in_stride = (ptrdiff_t)in_stride,
        .residual = layer->epilogue.residual_scale != 0.0f ? residual : NULL,
        .residual_stride = (ptrdiff_t)padded,
    };
    const struct n8_conv_row *truth = run_layer(layer, N8_ISA_C, io);
    io.out = out;
    *row = run_layer(layer, level, io);
    // The channel padding of a depthwise layer is written, of others it is not: both alike.
    const bool same =
        truth != NULL && *row != NULL && memcmp(out, expected, pixels_out * out_stride) == 0;
    free(in);
    free(residual);
    free(expected);
    free(out);
    return same;
}

// Levels beyond C that this processor has, the stand-in one first.
static size_t levels_here(enum n8_isa levels[N8_ISA_SME + 1]) {
    size_t count = 0;
#ifdef N8_EXTRA_LEVELS
    levels[count++] = STANDIN;
#endif
    for (int isa = N8_ISA_C + 1; isa <= N8_ISA_SME; isa++) {
        if (n8_cpu_has((enum n8_isa)isa))
            levels[count++] = (enum n8_isa)isa;
    }
    return count;
}

static void check_layers(unsigned long count) {
    enum n8_isa levels[N8_ISA_SME + 1];
    const size_t level_count = levels_here(levels);
    unsigned *used = allocate(n8_conv_row_count * sizeof *used);
    for (size_t i = 0; i < count; i++) {
        struct layer layer = {0};
        const struct n8_conv_row *row = NULL;
        if (!draw_layer(&layer))
            continue;
        draw_arrays(&layer);
        // The first of them each time, and one of the others in turn.
        for (size_t n = 0; n < level_count && n < 2; n++) {
            const enum n8_isa level = levels[n == 0 ? 0 : 1 + i % (level_count - 1)];
            if (!same_bytes(&layer, level, NOISE, &row))
                fail("layer", row == NULL ? "it does not run" : n8_conv_row_name(row));
            else
                used[row - n8_conv_rows]++;
        }
        free_arrays(&layer);
    }
    for (size_t i = 0; i < n8_conv_row_count; i++) {
        const struct n8_conv_row *row = &n8_conv_rows[i];
        if (level_count > 0 && row->level == levels[0] && used[i] == 0)
            fail("never used", n8_conv_row_name(row));
    }
    free(used);
}

// At the bound of (13): sums of just below 2^25, which Winograd gives exactly, and of 2^25.
static void check_winograd_reach(void) {
    for (int i = 0; i < 4; i++) {
        struct layer layer = {0};
        layer.shape = square_shape(9, 40, 36, 3);
        draw_arrays(&layer);
        const size_t count = 9 * 40;
        const int32_t beyond = i / 2;
        for (size_t n = 0; n < 36; n++) { // each channel reaches the bound, in its own direction
            const int8_t weight = n % 2 == 0 ? -127 : 127;
            const int32_t rest = N8_WINOGRAD_REACH - 1 + beyond - (int32_t)count * 127 * 128;
            memset(layer.weights + n * count, weight, count);
            layer.bias[n] = weight < 0 ? rest : -rest;
            layer.multiplier[n] = 0x1p-19f;
        }
        layer.int16_depth = 2;
        layer.winograd = 0;
        layer.acc_bound = bound_of(&layer);
        layer.core = N8_CORE_ANY;
        layer.in_zero_point = -128;
        layer.epilogue.type = N8_TYPE_S8;
        layer.epilogue.residual_scale = i % 2 == 0 ? 0.0f : 0.3f;
        const struct n8_conv_row *row = NULL;
#ifdef N8_EXTRA_LEVELS
        const char *expected = beyond == 0  ? "n8_winograd_gemm_s32_standin"
                               : i % 2 == 0 ? "n8_igemm_s8_s8_standin"
                                            : "n8_igemm_s8_s8_add_standin_packed";
        if (!same_bytes(&layer, STANDIN, LOWEST, &row) ||
            strcmp(n8_conv_row_name(row), expected) != 0)
            fail(expected, row == NULL ? "it does not run" : n8_conv_row_name(row));
#endif
        if (n8_cpu_has(N8_ISA_NEON) && !same_bytes(&layer, N8_ISA_NEON, LOWEST, &row))
            fail("at the bound", row == NULL ? "it does not run" : n8_conv_row_name(row));
        free_arrays(&layer);
    }
}

// Levels and cores ---------------------------------------------------------------------

#ifdef N8_EXTRA_LEVELS
static void check_levels(void) {
    struct n8_kernels kernels;
    if (setenv("N8_ISA", "standin", 1) != 0 || n8_kernels_select(N8_ISA_AUTO, &kernels) != N8_OK ||
        kernels.isa != STANDIN)
        fail("N8_ISA", "standin");
    if (setenv("N8_ISA", "c", 1) != 0 || n8_kernels_select(N8_ISA_AUTO, &kernels) != N8_OK ||
        kernels.isa != N8_ISA_C)
        fail("N8_ISA", "c");
    static const char *const refused[] = {"absent", "standi", "STANDIN", "auto"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (setenv("N8_ISA", refused[i], 1) != 0 ||
            n8_kernels_select(N8_ISA_AUTO, &kernels) != N8_E_UNSUPPORTED)
            fail("N8_ISA", refused[i]);
    }
    if (unsetenv("N8_ISA") != 0 || n8_kernels_select(N8_ISA_AUTO, &kernels) != N8_OK ||
        kernels.isa != STANDIN)
        fail("N8_ISA", "the best level");
    if (n8_kernels_select((enum n8_isa)N8_LEVEL_absent, &kernels) != N8_E_UNSUPPORTED)
        fail("level", "absent");
}

#endif

// The emulator says which core it imitates.
static void check_core(void) {
    static const struct {
        const char *name;
        enum n8_core core;
    } cores[] = {
        {"cortex-a53", N8_CORE_IN_ORDER},
        {"cortex-a76", N8_CORE_OUT_OF_ORDER},
        {"neoverse-n1", N8_CORE_OUT_OF_ORDER},
    };
    const char *imitated = n8_cpu_has(N8_ISA_NEON) ? getenv("N8_QEMU_CPU") : NULL;
    for (size_t i = 0; imitated != NULL && i < sizeof cores / sizeof cores[0]; i++) {
        if (strcmp(imitated, cores[i].name) == 0 && n8_cpu_core() != cores[i].core)
            fail("core", imitated);
    }
}

int main(int argc, char **argv) {
    check_core();
    check_layers(argc == 2 ? strtoul(argv[1], NULL, 10) : 0);
    check_winograd_reach();
#ifdef N8_EXTRA_LEVELS
    check_levels();
    check_choice();
#endif
    printf("layers: %d failures\n", failures);
    return failures > 0;
}
