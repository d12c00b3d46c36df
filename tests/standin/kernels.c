// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the stand-in level. As assembly would, each knows its geometry by heart and does
// not look at args->tile or args->block; loops and orders are written out, from kernel.h.
#include "kernel.h"
#include "ref/epilogue.h"

#include <stdbool.h>
#include <string.h>

enum epilogue { TO_S32, TO_F32, TO_S8, TO_S8_ADD };

// The epilogue of pixel p, channel n.
static void finish(const struct n8_igemm_args *args, enum epilogue kind, size_t p, size_t n,
                   int32_t sum) {
    char *out = (char *)args->out + (ptrdiff_t)p * args->out_stride;
    if (kind == TO_S32) {
        memcpy(out + n * sizeof sum, &sum, sizeof sum);
        return;
    }
    float v = (float)sum * args->multiplier[n];
    if (kind == TO_F32) {
        v += args->bias_f32[n];
        memcpy(out + n * sizeof v, &v, sizeof v);
        return;
    }
    if (kind == TO_S8_ADD) {
        const int8_t r = args->residual[(ptrdiff_t)p * args->residual_stride + (ptrdiff_t)n];
        v += (float)(r - args->residual_zero_point) * args->residual_scale;
    }
    if (args->slope)
        v = n8_leaky(v, args->slope[n]);
    out[n] = (char)n8_round_s8(v, n8_bounds_of(args->zero_point, args->lo, args->hi));
}

// [channels / NR][taps][depth / KR][NR][KR] against [pixels / MR][taps][MR].
#define CHANNELS_KERNEL(name, MR, NR, KR, kind)                                                    \
    void name(const struct n8_igemm_args *args) {                                                  \
        const int8_t *panel = args->weights;                                                       \
        for (size_t n = 0; n < args->channels; n += NR) {                                          \
            const int8_t *const *rows = args->rows;                                                \
            for (size_t p = 0; p < args->pixels; p += MR, rows += args->taps * MR) {               \
                int32_t sums[MR][NR];                                                              \
                for (size_t i = 0; i < MR; i++)                                                    \
                    memcpy(sums[i], args->bias + n, sizeof sums[i]);                               \
                const int8_t *w = panel;                                                           \
                for (size_t t = 0; t < args->taps; t++) {                                          \
                    for (size_t k = 0; k < args->depth; k += KR) {                                 \
                        for (size_t j = 0; j < NR; j++, w += KR) {                                 \
                            for (size_t i = 0; i < MR; i++) {                                      \
                                for (size_t b = 0; b < KR; b++)                                    \
                                    sums[i][j] += rows[t * MR + i][k + b] * w[b];                  \
                            }                                                                      \
                        }                                                                          \
                    }                                                                              \
                }                                                                                  \
                for (size_t i = 0; i < MR && p + i < args->pixels; i++) {                          \
                    for (size_t j = 0; j < NR && n + j < args->channels; j++)                      \
                        finish(args, kind, p + i, n + j, sums[i][j]);                              \
                }                                                                                  \
            }                                                                                      \
            panel += args->taps * args->depth * NR;                                                \
        }                                                                                          \
    }

CHANNELS_KERNEL(n8_igemm_s8_s32_standin, 8, 12, 4, TO_S32)
CHANNELS_KERNEL(n8_igemm_s8_f32_standin, 8, 12, 4, TO_F32)
CHANNELS_KERNEL(n8_igemm_s8_s8_standin, 8, 12, 4, TO_S8)
CHANNELS_KERNEL(n8_igemm_s8_s8_add_standin, 8, 12, 4, TO_S8_ADD)
CHANNELS_KERNEL(n8_igemm_s8_s8_standin_pixel, 1, 12, 8, TO_S8)
CHANNELS_KERNEL(n8_igemm_s8_f32_standin_pixel, 1, 16, 16, TO_F32)
CHANNELS_KERNEL(n8_igemm_s8_s32_standin_in_order, 2, 8, 8, TO_S32)
CHANNELS_KERNEL(n8_igemm_s8_s8_absent, 2, 8, 8, TO_S8)

// 6x10c4: [channels / 10][taps][depth / 16][4][10][4]. Four products of a lane are summed in int16,
// which wraps, in groups that are marked, and two in others.
void n8_igemm_s8_s8_standin_groups(const struct n8_igemm_args *args) {
    enum { MR = 6, NR = 10, KR = 4, DEEP = 4, MARKS = 31 };
    const int8_t *panel = args->weights;
    const size_t groups = args->depth / (DEEP * KR), words = (groups + MARKS - 1) / MARKS;
    const uint32_t *marks = (const uint32_t *)(const void *)args->deep;
    for (size_t n = 0; n < args->channels; n += NR) {
        for (size_t p = 0; p < args->pixels; p++) {
            const int8_t *const *rows = args->rows + p / MR * args->taps * MR + p % MR;
            int32_t sums[NR];
            memcpy(sums, args->bias + n, sizeof sums);
            const int8_t *w = panel;
            for (size_t t = 0; t < args->taps; t++) {
                for (size_t k = 0; k < args->depth; k += DEEP * KR, w += DEEP * NR * KR) {
                    for (size_t lane = 0; lane < NR * KR; lane++) {
                        uint16_t lanes = 0;
                        const size_t group = k / (DEEP * KR);
                        const bool deep = marks[t * words + group / MARKS] << group % MARKS >> 31;
                        for (size_t d = 0; d < DEEP; d++) {
                            const int8_t x = rows[t * MR][k + d * KR + lane % KR];
                            lanes = (uint16_t)(lanes + x * w[d * NR * KR + lane]);
                            if (d == DEEP - 1 || (d == 1 && !deep)) {
                                sums[lane / KR] += (int16_t)lanes;
                                lanes = 0;
                            }
                        }
                    }
                }
            }
            for (size_t j = 0; j < NR && n + j < args->channels; j++)
                finish(args, TO_S8, p, n + j, sums[j]);
        }
        panel += args->taps * args->depth * NR;
        marks += args->taps * words;
    }
}

// 4x12c16 with marks of three channels: [channels / 12][taps][depth / 16][12][16]. Four or two
// products of a lane are summed in int16, which wraps.
void n8_igemm_s8_f32_standin_groups(const struct n8_igemm_args *args) {
    enum { MR = 4, NR = 12, KR = 16, LANES = KR / 2 };
    const size_t blocks = args->depth / KR, groups = (blocks + 1) / 2;
    for (size_t n = 0; n < args->channels; n++) {
        const int8_t *panel = args->weights + n / NR * NR * args->taps * args->depth;
        const uint64_t *words =
            (const uint64_t *)(const void *)args->deep + n / NR * args->taps * groups;
        for (size_t p = 0; p < args->pixels; p++) {
            const int8_t *const *rows = args->rows + p / MR * args->taps * MR + p % MR;
            int32_t sum = args->bias[n];
            for (size_t i = 0; i < args->taps * LANES; i++) {
                const size_t t = i / LANES;
                int16_t lane = 0;
                for (size_t k = i % LANES; k < args->depth; k += LANES) {
                    const size_t block = k / KR, place = (t * blocks + block) * NR + n % NR;
                    const uint64_t word = words[t * groups + block / 2];
                    const size_t at = (size_t)(word >> k / LANES % 4 * 16 & 0xffff) >> 1;
                    const int8_t x = rows[t * MR][at * LANES + k % LANES];
                    lane = (int16_t)(lane + x * panel[place * KR + k % KR]);
                    const bool last = k + LANES >= args->depth;
                    if (k % KR >= LANES &&
                        (block % 2 != 0 || last || !(word >> n % NR / 3 * 16 & 1))) {
                        sum += lane;
                        lane = 0;
                    }
                }
            }
            finish(args, TO_F32, p, n, sum);
        }
    }
}

// 8x2c8 on packed rows: [channels / 2][taps][depth / 8][2][8] against rows[0], that is
// [pixels / 8][taps][depth / 8][8][8].
void n8_igemm_s8_s8_add_standin_packed(const struct n8_igemm_args *args) {
    enum { MR = 8, NR = 2, KR = 8 };
    const size_t steps = args->taps * args->depth / KR;
    for (size_t n = 0; n < args->channels; n++) {
        for (size_t p = 0; p < args->pixels; p++) {
            const int8_t *row = args->rows[0] + p / MR * steps * MR * KR + p % MR * KR;
            const int8_t *w = args->weights + n / NR * steps * NR * KR + n % NR * KR;
            int32_t sum = args->bias[n];
            for (size_t i = 0; i < steps; i++, row += MR * KR, w += NR * KR) {
                for (size_t b = 0; b < KR; b++)
                    sum += row[b] * w[b];
            }
            finish(args, TO_S8_ADD, p, n, sum);
        }
    }
}

// [channels / NR][taps][depth / KR][2][NR][KR] against [taps][2], each [tile][depth] or, in pairs,
// [tile / 2][depth / 8][2][8].
static void winograd(const struct n8_igemm_args *args, size_t nr, size_t kr, bool pairs,
                     enum epilogue kind) {
    const size_t depth = args->depth;
    for (size_t n = 0; n < args->channels; n++) {
        for (size_t p = 0; p < args->pixels; p++) {
            const size_t tile = p / 2;
            int64_t m[2] = {args->bias[n], 0};
            for (size_t t = 0; t < args->taps; t++) {
                if (2 * t == args->taps) {
                    const int64_t sum = m[0] + m[1], difference = m[0] - m[1];
                    m[0] = args->whole ? sum >> 1 : sum;
                    m[1] = args->whole ? difference >> 1 : difference;
                }
                const int8_t *tap = args->weights + (n / nr * args->taps + t) * depth * 2 * nr;
                for (size_t i = 0; i < 2 * depth; i++) {
                    const size_t s = i % 2, k = i / 2;
                    const size_t pair = (tile / 2 * (depth / 8) + k / 8) * 2 + tile % 2;
                    const int8_t *row = args->rows[2 * t + s];
                    m[s] += row[pairs ? pair * 8 + k % 8 : tile * depth + k] *
                            tap[((k / kr * 2 + s) * nr + n % nr) * kr + k % kr];
                }
            }
            finish(args, kind, p, n, (int32_t)m[p % 2]);
        }
    }
}

void n8_igemm_s8_s8_standin_winograd(const struct n8_igemm_args *args) {
    winograd(args, 10, 4, false, TO_S8);
}

void n8_igemm_s8_s8_add_standin_winograd(const struct n8_igemm_args *args) {
    winograd(args, 12, 8, true, TO_S8_ADD);
}

// [channels / BLOCK][height][width][BLOCK]; row `r` of outputs, for stride == dilation.
static void depthwise(const struct n8_depthwise_args *args, size_t block, size_t height,
                      size_t width, ptrdiff_t step, ptrdiff_t r) {
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    for (size_t c = 0; c < args->channels; c++) {
        const int8_t *w = args->weights + c / block * block * height * width + c % block;
        for (size_t p = 0; p < args->pixels; p++) {
            int32_t sum = args->bias[c];
            for (size_t y = 0; y < height; y++) {
                const int8_t *in = args->rows[(size_t)r + y] + (ptrdiff_t)p * step + c;
                for (size_t x = 0; x < width; x++) {
                    const bool padding = (args->left && p == 0 && x == 0) ||
                                         (args->right && p + 1 == args->pixels && x + 1 == width);
                    const ptrdiff_t at = ((ptrdiff_t)x - args->left) * args->tap_stride;
                    sum += (padding ? args->in_zero_point : in[at]) * w[(y * width + x) * block];
                }
            }
            float v = (float)sum * args->multiplier[c];
            if (args->slope)
                v = n8_leaky(v, args->slope[c]);
            args->out[r * args->out_row_stride + (ptrdiff_t)p * args->out_stride + (ptrdiff_t)c] =
                n8_round_s8(v, limits);
        }
    }
}

void n8_depthwise_s8_standin(const struct n8_depthwise_args *args) {
    depthwise(args, 24, (size_t)args->kernel_height, (size_t)args->kernel_width, args->step, 0);
}

// Two rows, for stride == dilation: it does not look at args->step.
void n8_depthwise_s8_standin_5x5(const struct n8_depthwise_args *args) {
    for (ptrdiff_t r = 1; r >= 0; r--)
        depthwise(args, 16, 5, 5, args->tap_stride, r);
}

// [planes][depth][24]; the sums wrap.
void n8_winograd_gemm_s32_standin(const struct n8_winograd_gemm_args *args) {
    enum { WIDTH = 24 };
    for (size_t p = 0; p < args->planes; p++) {
        const char *in = (const char *)args->in + p * args->in_plane;
        char *sums = (char *)args->sums + p * args->sums_plane;
        const char *plane = (const char *)args->weights + p * args->weights_plane;
        const int16_t *w = (const int16_t *)(const void *)plane;
        for (size_t t = 0; t < args->tiles; t++) {
            for (size_t n = 0; n < WIDTH; n++) {
                uint32_t sum = 0;
                for (size_t k = 0; k < args->depth; k++) {
                    int16_t x;
                    memcpy(&x, in + (t * args->depth + k) * sizeof x, sizeof x);
                    sum += (uint32_t)(x * w[k * WIDTH + n]);
                }
                memcpy(sums + (t * WIDTH + n) * sizeof sum, &sum, sizeof sum);
            }
        }
    }
}

void n8_winograd_input_s8_standin(int16_t *out, size_t plane, const int8_t *in, ptrdiff_t row,
                                  ptrdiff_t pixel, size_t channels) {
    n8_winograd_input_s8_c(out, plane, in, row, pixel, channels);
}

void n8_winograd_output_s8_standin(const struct n8_winograd_output_args *args) {
    n8_winograd_output_s8_c(args);
}
