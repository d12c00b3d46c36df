// SPDX-License-Identifier: Apache-2.0
//
// The contract of kernel.h, one value at a time and nothing clever.
#include "checkasm.h"
#include "ref/elementary.h"

#include <math.h>
#include <string.h>

static int32_t rounded(float v, int32_t zero_point, int32_t lo, int32_t hi) {
    const double whole = isnan(v) ? 0.0 : (double)rintf(v);
    const double moved = whole + (double)zero_point;
    return (int32_t)fmin(fmax(moved, (double)lo), (double)hi);
}

static int8_t round_s8(float v, int32_t zero_point, int32_t lo, int32_t hi) {
    return (int8_t)rounded(v, zero_point, lo, hi);
}

static int16_t round_s16(float v, int32_t zero_point, int32_t lo, int32_t hi) {
    return (int16_t)rounded(v, zero_point, lo, hi);
}

static float leaky(float v, const float *slope) {
    return slope && v < 0.0f ? v * *slope : v;
}

void naive_quantize_f32_s8(int8_t *out, const float *in, size_t count, float inverse,
                           int32_t zero_point, int32_t lo, int32_t hi) {
    for (size_t i = 0; i < count; i++)
        out[i] = round_s8(in[i] * inverse, zero_point, lo, hi);
}

void naive_dequantize_s8_f32(float *out, const int8_t *in, size_t count, float scale,
                             int32_t zero_point) {
    for (size_t i = 0; i < count; i++)
        out[i] = scale * (float)((int32_t)in[i] - zero_point);
}

void naive_interleave_s8(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                         size_t channels, size_t pixels) {
    for (size_t p = 0; p < pixels; p++)
        for (size_t c = 0; c < 8; c++)
            out[p * out_stride + c] = c < channels ? in[c * in_stride + p] : 0;
}

void naive_deinterleave_s8(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                           size_t channels, size_t pixels) {
    for (size_t p = 0; p < pixels; p++)
        for (size_t c = 0; c < channels; c++)
            out[c * out_stride + p] = in[p * in_stride + c];
}

void naive_transpose_f32(void *out, size_t out_stride, const void *in, size_t in_stride,
                         size_t rows, size_t columns) {
    for (size_t i = 0; i < rows * columns; i++)
        memcpy((char *)out + i % columns * out_stride + 4 * (i / columns),
               (const char *)in + i / columns * in_stride + 4 * (i % columns), 4);
}

void naive_dequantize_s32_f32(float *out, const int32_t *in, size_t pixels, size_t channels,
                              const float *scale, const float *bias) {
    for (size_t i = 0; i < pixels * channels; i++) {
        const float product = (float)in[i] * scale[i % channels];
        out[i] = product + (bias ? bias[i % channels] : 0.0f);
    }
}

void naive_requantize_s32_s8(int8_t *out, const int32_t *in, size_t pixels, size_t channels,
                             const float *multiplier, int32_t zero_point, int32_t lo, int32_t hi) {
    for (size_t i = 0; i < pixels * channels; i++)
        out[i] = round_s8((float)in[i] * multiplier[i % channels], zero_point, lo, hi);
}

size_t naive_step(const struct n8_tile *tile) {
    static const size_t runs[] = {[N8_PACKING_CHANNELS] = 1,      [N8_PACKING_CHANNELS_BY_2] = 2,
                                  [N8_PACKING_CHANNELS_BY_4] = 4, [N8_PACKING_GROUPS] = 1,
                                  [N8_PACKING_BOTH] = 1,          [N8_PACKING_WINOGRAD] = 2,
                                  [N8_PACKING_WINOGRAD_PAIRS] = 1};
    return runs[tile->packing] * tile->kr;
}

size_t naive_weight(const struct n8_tile *tile, size_t taps, size_t depth, size_t n, size_t t,
                    size_t k) {
    const size_t nr = tile->nr, kr = tile->kr; // [tap][depth / kr][nr][kr]
    const size_t tap = n / nr * taps + t;
    return ((tap * (depth / kr) + k / kr) * nr + n % nr) * kr + k % kr;
}

// With products of its own for each of the four: d0 - d2 and so on.
void naive_winograd_s8(const struct n8_winograd_args *args) {
    static const int32_t factors[4][4] = {
        {0, 1, 1, 0}, {0, -1, 1, 0}, {1, 0, -1, 0}, {0, -1, 0, 1}};
    for (size_t tile = 0; tile < args->tiles; tile++) {
        for (size_t k = 0; k < args->depth; k++) {
            // [tile / 2][k / 8][tile % 2][k % 8]
            const size_t pair = (tile / 2 * (args->depth / 8) + k / 8) * 2 + tile % 2;
            const size_t at = args->pairs ? pair * 8 + k % 8 : tile * args->depth + k;
            for (size_t i = 0; i < 4; i++) {
                int32_t sum = i == 0 ? -args->offset : 0;
                for (size_t x = 0; x < 4; x++)
                    sum += factors[i][x] * args->columns[2 * tile + x][k];
                args->out[i * args->plane + at] = (int8_t)(sum & 0xff);
            }
        }
    }
}

static int32_t igemm_sum(const struct n8_igemm_args *args, size_t p, size_t n) {
    const size_t mr = args->tile->mr;
    int64_t sum = args->bias[n];
    for (size_t t = 0; t < args->taps; t++) {
        const size_t tap = p / mr * args->taps + t, kr = args->tile->kr;
        for (size_t k = 0; k < args->depth; k++) {
            const int8_t byte =
                args->tile->packing == N8_PACKING_BOTH // [tile][tap][depth / kr][mr][kr]
                    ? args->rows[0][((tap * args->depth / kr + k / kr) * mr + p % mr) * kr + k % kr]
                    : args->rows[tap * mr + p % mr][k];
            sum += byte * args->weights[naive_weight(args->tile, args->taps, args->depth, n, t, k)];
        }
    }
    return (int32_t)sum;
}

enum igemm_kind { TO_S32, TO_F32, TO_S8, TO_S8_ADD };

static void igemm(const struct n8_igemm_args *args, enum igemm_kind kind) {
    for (size_t p = 0; p < args->pixels; p++) {
        char *row = (char *)args->out + (ptrdiff_t)p * args->out_stride;
        for (size_t n = 0; n < args->channels; n++) {
            const int32_t sum = igemm_sum(args, p, n);
            if (kind == TO_S32) {
                memcpy(row + n * sizeof sum, &sum, sizeof sum);
                continue;
            }
            float v = (float)sum * args->multiplier[n];
            if (kind == TO_F32) {
                v = v + args->bias_f32[n];
                memcpy(row + n * sizeof v, &v, sizeof v);
                continue;
            }
            if (kind == TO_S8_ADD) {
                const int8_t r =
                    args->residual[(ptrdiff_t)p * args->residual_stride + (ptrdiff_t)n];
                v = v + (float)(r - args->residual_zero_point) * args->residual_scale;
            }
            v = leaky(v, args->slope ? args->slope + n : NULL);
            row[n] = (char)round_s8(v, args->zero_point, args->lo, args->hi);
        }
    }
}

void naive_igemm_s8_s32(const struct n8_igemm_args *args) {
    igemm(args, TO_S32);
}

void naive_igemm_s8_f32(const struct n8_igemm_args *args) {
    igemm(args, TO_F32);
}

void naive_igemm_s8_s8(const struct n8_igemm_args *args) {
    igemm(args, TO_S8);
}

void naive_igemm_s8_s8_add(const struct n8_igemm_args *args) {
    igemm(args, TO_S8_ADD);
}

static void depthwise_row(const struct n8_depthwise_args *args, int32_t height, int32_t width,
                          const int8_t *const *rows, int8_t *out) {
    for (size_t p = 0; p < args->pixels; p++) {
        for (size_t c = 0; c < args->channels; c++) {
            int64_t sum = args->bias[c];
            for (int32_t y = 0; y < height; y++) {
                for (int32_t x = 0; x < width; x++) {
                    const size_t row = c / args->block * (size_t)height + (size_t)y;
                    const size_t tap = row * (size_t)width + (size_t)x;
                    const int8_t w = args->weights[tap * args->block + c % args->block];
                    const ptrdiff_t at =
                        (ptrdiff_t)p * args->step + (x - args->left) * args->tap_stride;
                    const bool left = args->left && p == 0 && x == 0;
                    const bool right = args->right && p == args->pixels - 1 && x == width - 1;
                    sum += w * (left || right ? args->in_zero_point : rows[y][at + (ptrdiff_t)c]);
                }
            }
            const float v = (float)(int32_t)sum * args->multiplier[c];
            out[(ptrdiff_t)p * args->out_stride + (ptrdiff_t)c] =
                round_s8(leaky(v, args->slope ? args->slope + c : NULL), args->zero_point, args->lo,
                         args->hi);
        }
    }
}

static void depthwise(const struct n8_depthwise_args *args, int32_t height, int32_t width,
                      int32_t ratio) {
    for (int32_t r = args->outputs - 1; r >= 0; r--) {
        depthwise_row(args, height, width, args->rows + r * ratio,
                      args->out + r * args->out_row_stride);
    }
}

void naive_depthwise_s8(const struct n8_depthwise_args *args) {
    depthwise(args, args->kernel_height, args->kernel_width, 1);
}

void naive_depthwise3x3s1_s8(const struct n8_depthwise_args *args) {
    depthwise(args, 3, 3, 1);
}

void naive_depthwise3x3s2_s8(const struct n8_depthwise_args *args) {
    depthwise(args, 3, 3, 2);
}

// Exact sums, then modulo 2^32.
void naive_winograd_gemm_s32(const struct n8_winograd_gemm_args *args) {
    for (size_t p = 0; p < args->planes; p++) {
        for (size_t t = 0; t < args->tiles; t++) {
            for (size_t n = 0; n < args->width; n++) {
                int64_t sum = 0;
                for (size_t k = 0; k < args->depth; k++) {
                    int16_t x;
                    const char *in = (const char *)args->in + p * args->in_plane;
                    memcpy(&x, in + (t * args->depth + k) * sizeof x, sizeof x);
                    sum += x * args->weights[(p * args->depth + k) * args->width + n];
                }
                char *to = (char *)args->sums + p * args->sums_plane;
                memcpy(to + (t * args->width + n) * sizeof(int32_t), &sum, sizeof(int32_t));
            }
        }
    }
}

// Where a plane of Winograd lies, and its points: value = sum over y, x of window[y][x] times the
// coefficients of both directions.
static size_t winograd_plane(int i, int j) {
    return (size_t)(j < 4 ? 4 * i + j : 24 + 2 * i + j - 4);
}

void naive_winograd_input_s8(int16_t *out, size_t plane, const int8_t *in, ptrdiff_t row,
                             ptrdiff_t pixel, size_t channels) {
    static const int32_t from[6][6] = {{0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                       {0, 4, 0, -5, 0, 1},  {4, 0, -5, 0, 1, 0},
                                       {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
            for (size_t c = 0; c < channels; c++) {
                int32_t sum = 0;
                for (int y = 0; y < 6; y++) {
                    for (int x = 0; x < 6; x++)
                        sum += from[i][y] * from[j][x] * in[y * row + x * pixel + (ptrdiff_t)c];
                }
                const int16_t value = (int16_t)sum;
                memcpy((char *)out + winograd_plane(i, j) * plane + c * sizeof value, &value,
                       sizeof value);
            }
        }
    }
}

// A sum of 576 times as much, taken modulo 2^32, is divided by 64 and by 9 as whole numbers are.
void naive_winograd_output_s8(const struct n8_winograd_output_args *args) {
    static const int32_t to[4][6] = {
        {1, 1, 0, 1, 1, 1}, {1, -1, 0, 0, 2, -2}, {1, 1, 0, 0, 4, 4}, {1, -1, 4, 0, 8, -8}};
    for (size_t t = 0; t < args->tiles; t++) {
        for (int o = 0; o < 16; o++) {
            for (size_t n = 0; n < args->channels; n++) {
                int64_t sum = (int64_t)args->bias[n] * 576;
                for (int i = 0; i < 6; i++) {
                    for (int j = 0; j < 6; j++) {
                        int32_t m;
                        memcpy(&m,
                               (const char *)args->sums + winograd_plane(i, j) * args->plane +
                                   t * args->tile + n * sizeof m,
                               sizeof m);
                        sum += (int64_t)to[o / 4][i] * to[o % 4][j] * m;
                    }
                }
                // 576 * acc is the same modulo 2^32, so 9 * acc is modulo 2^26.
                int64_t acc = (int64_t)((uint32_t)sum / 64);
                while (acc % 9 != 0)
                    acc += 1 << 26;
                acc = acc / 9 < 1 << 25 ? acc / 9 : acc / 9 - (1 << 26);
                float v = (float)acc * args->multiplier[n];
                if (args->residual) {
                    const int8_t r =
                        args->residual[args->residual_places[t * 16 + (size_t)o] + (ptrdiff_t)n];
                    v = v + (float)(r - args->residual_zero_point) * args->residual_scale;
                }
                args->out[args->places[t * 16 + (size_t)o] + (ptrdiff_t)n] =
                    round_s8(leaky(v, args->slope ? args->slope + n : NULL), args->zero_point,
                             args->lo, args->hi);
            }
        }
    }
}

void naive_requantize_s8(const struct n8_pointwise_args *args) {
    for (size_t i = 0; i < args->count; i++) {
        const float v = (float)(args->a[i] - args->a_zero_point) * args->a_scale;
        args->out[i] = round_s8(leaky(v, &args->slope), args->zero_point, args->lo, args->hi);
    }
}

void naive_add_s8(const struct n8_pointwise_args *args) {
    for (size_t i = 0; i < args->count; i++) {
        const float a = (float)(args->a[i] - args->a_zero_point) * args->a_scale;
        const float b = (float)(args->b[i] - args->b_zero_point) * args->b_scale;
        args->out[i] = round_s8(leaky(a + b, &args->slope), args->zero_point, args->lo, args->hi);
    }
}

void naive_quantize_f32_s16(int16_t *out, const float *in, size_t count, float inverse,
                            int32_t zero_point, int32_t lo, int32_t hi) {
    for (size_t i = 0; i < count; i++)
        out[i] = round_s16(in[i] * inverse, zero_point, lo, hi);
}

void naive_dequantize_s16_f32(float *out, const int16_t *in, size_t count, float scale,
                              int32_t zero_point) {
    for (size_t i = 0; i < count; i++)
        out[i] = scale * (float)(in[i] - zero_point);
}

void naive_add_s16(const struct n8_add_s16_args *args) {
    for (size_t i = 0; i < args->count; i++) {
        const float a = (float)(args->a[i] - args->a_zero_point) * args->a_scale;
        const float b = (float)(args->b[i] - args->b_zero_point) * args->b_scale;
        args->out[i] = round_s16(leaky(a + b, &args->slope), args->zero_point, args->lo, args->hi);
    }
}

void naive_multiply_s16(const struct n8_add_s16_args *args) {
    for (size_t i = 0; i < args->count; i++) {
        const int64_t a = args->a[i] - args->a_zero_point, b = args->b[i] - args->b_zero_point;
        const float v = (float)(a * b) * (args->scales == NULL ? args->a_scale : args->scales[i]);
        args->out[i] = round_s16(leaky(v, &args->slope), args->zero_point, args->lo, args->hi);
    }
}

void naive_interpolate_s16(const struct n8_interpolate_args *args) {
    for (size_t i = 0; i < args->count; i++) {
        const double q = fmin(fmax(args->in[i], args->in_lo), args->in_hi) - args->in_lo;
        const double at = q / ldexp(1, args->shift);
        const int16_t *line = args->lines + 2 * (size_t)at;
        double v = line[0] + floor(line[1] * (at - floor(at)) + 0.5);
        v = fmin(fmax(v, INT16_MIN), INT16_MAX);
        v = floor(v / ldexp(1, args->fraction) + 0.5);
        args->out[i] = (int16_t)fmin(fmax(v, args->lo), args->hi);
    }
}

void naive_output_s32_s16(const struct n8_output_args *args) {
    for (size_t p = 0; p < args->pixels; p++) {
        for (size_t n = 0; n < args->channels; n++) {
            const char *sums = (const char *)args->sums + (ptrdiff_t)p * args->sums_stride;
            int64_t acc = ((const int32_t *)(const void *)sums)[n];
            acc += args->bias ? args->bias[n] : 0;
            float v = (float)(int32_t)(uint32_t)acc * args->multiplier[n];
            if (args->residual) {
                const char *row =
                    (const char *)args->residual + (ptrdiff_t)p * args->residual_stride;
                const int32_t r = ((const int16_t *)(const void *)row)[n];
                v = v + (float)(r - args->residual_zero_point) * args->residual_scale;
            }
            char *out = (char *)args->out + (ptrdiff_t)p * args->out_stride;
            ((int16_t *)(void *)out)[n] = round_s16(leaky(v, args->slope ? args->slope + n : NULL),
                                                    args->zero_point, args->lo, args->hi);
        }
    }
}

void naive_depthwise_s16_s32(const struct n8_depthwise_s16_args *args) {
    const size_t taps = args->kernel_height * args->kernel_width;
    for (size_t p = 0; p < args->pixels; p++) {
        for (size_t c = 0; c < args->channels; c++) {
            int64_t sum = args->bias[c];
            for (size_t t = 0; t < taps; t++) {
                const char *row = (const char *)args->rows[t / args->kernel_width] +
                                  (ptrdiff_t)p * args->step +
                                  (ptrdiff_t)(t % args->kernel_width) * args->tap_stride;
                sum += (int64_t)((const int16_t *)(const void *)row)[c] *
                       args->weights[c / 8 * taps * 8 + t * 8 + c % 8];
            }
            args->sums[p * args->channels + c] = (int32_t)(uint32_t)sum;
        }
    }
}

void naive_multiply_s8(const struct n8_pointwise_args *args) {
    for (size_t i = 0; i < args->count; i++) {
        const int32_t a = args->a[i] - args->a_zero_point, b = args->b[i] - args->b_zero_point;
        const float v = (float)(a * b) * (args->scales ? args->scales[i] : args->a_scale);
        args->out[i] = round_s8(leaky(v, &args->slope), args->zero_point, args->lo, args->hi);
    }
}

void naive_divide_s8(const struct n8_pointwise_args *args) {
    for (size_t i = 0; i < args->count; i++) {
        const int32_t a = args->a[i] - args->a_zero_point, b = args->b[i] - args->b_zero_point;
        const float v = (float)a / (float)b * args->a_scale;
        args->out[i] = round_s8(leaky(v, &args->slope), args->zero_point, args->lo, args->hi);
    }
}

void naive_table_s8(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                    size_t pixels, size_t count, const int8_t *table) {
    for (size_t p = 0; p < pixels; p++) {
        for (size_t i = 0; i < count; i++)
            out[p * out_stride + i] = table[in[p * in_stride + i] + 128];
    }
}

void naive_tables_s8(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                     size_t pixels, const int8_t *const *tables) {
    for (size_t i = 0; i < 8; i++)
        naive_table_s8(out + i, out_stride, in + i, in_stride, pixels, 1, tables[i]);
}

void naive_affine_s8(const struct n8_affine_args *args) {
    for (size_t p = 0; p < args->pixels; p++) {
        for (size_t c = 0; c < args->channels; c++) {
            const int8_t q = args->in[(ptrdiff_t)p * args->in_stride + (ptrdiff_t)c];
            const float product = (float)(q - args->in_zero_point) * args->multiplier[c];
            const float v = leaky(product + args->offset[c], &args->slope);
            args->out[(ptrdiff_t)p * args->out_stride + (ptrdiff_t)c] =
                round_s8(v, args->zero_point, args->lo, args->hi);
        }
    }
}

void naive_lrn_s8(const struct n8_lrn_args *args) {
    for (size_t c = 0; c < args->channels; c++) {
        int64_t sum = 0;
        for (size_t i = 0; i < args->channels; i++) {
            const int32_t value = args->in[i] - args->in_zero_point;
            if (i + args->reach >= c && i <= c + args->reach)
                sum += value * value;
        }
        const double d = args->bias + args->factor * (double)sum;
        double power = n8_exp(args->beta * n8_log(d));
        if (args->beta == 0.75)
            power = sqrt(d) * sqrt(sqrt(d));
        if (args->beta == 0.5)
            power = sqrt(d);
        if (args->beta == 1.0)
            power = d;
        const double scaled = (double)(args->in[c] - args->in_zero_point) * args->multiplier;
        const double moved = rint(scaled / power) + (double)args->zero_point;
        args->out[c] = (int8_t)fmin(fmax(moved, (double)args->lo), (double)args->hi);
    }
}

void naive_sums_s16(int64_t *sums, const int16_t *in, size_t count) {
    sums[0] = sums[1] = 0;
    for (size_t i = 0; i < count; i++) {
        sums[0] += in[i];
        sums[1] += in[i] * in[i];
    }
}

void naive_powers_s8(int64_t *sums, const int8_t *in, size_t count, const int32_t *powers) {
    sums[0] = INT8_MIN;
    for (size_t i = 0; i < count; i++)
        sums[0] = in[i] > sums[0] ? in[i] : sums[0];
    sums[1] = 0;
    for (size_t i = 0; i < count; i++)
        sums[1] += powers[255 - (sums[0] - in[i])];
}

void naive_top_s8(int8_t *out, const int8_t *in, size_t count, const int8_t *table, int32_t first,
                  int32_t rest) {
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] < first ? (int8_t)rest : table[in[i] - first];
}

void naive_normalize_s16(const struct n8_normalize_args *args) {
    for (size_t i = 0; i < args->count; i++) {
        const int64_t d = (int64_t)args->in[i] * args->factor - args->shift;
        float v = (float)(int32_t)d * args->rate;
        v = v * args->gain[i];
        v = v + args->offset[i];
        v = v < 0.0f ? v * args->slope : v;
        const double moved = v != v ? args->zero_point : rint((double)v) + args->zero_point;
        args->out[i] = (int16_t)fmin(fmax(moved, args->lo), args->hi);
    }
}

void naive_maxpool_s8(const struct n8_pool_args *args) {
    for (size_t c = 0; c < args->channels; c++) {
        int32_t best = -128;
        for (size_t t = 0; t < args->taps; t++)
            best = args->rows[t][c] > best ? args->rows[t][c] : best;
        best = best < args->lo ? args->lo : best;
        args->out[c] = (int8_t)(best > args->hi ? args->hi : best);
    }
}

void naive_avgpool_s8(const struct n8_pool_args *args) {
    for (size_t c = 0; c < args->channels; c++) {
        int32_t sum = 0;
        for (size_t t = 0; t < args->taps; t++)
            sum += args->rows[t][c] - args->in_zero_point;
        args->out[c] =
            round_s8((float)sum * args->multiplier, args->zero_point, args->lo, args->hi);
    }
}

static float blend(float a, float b, float c, float d, const struct n8_blend_args *args) {
    const float above = a * args->left + b * args->right;
    const float below = c * args->left + d * args->right;
    return above * args->upper + below * args->lower;
}

void naive_blend_s8(const struct n8_blend_args *args) {
    for (size_t i = 0; i < args->channels; i++) {
        float real[4];
        for (int at = 0; at < 4; at++)
            real[at] = (float)(((const int8_t *)args->in[at])[i] - args->in_zero_point);
        const float v = blend(real[0], real[1], real[2], real[3], args) * args->scale;
        ((int8_t *)args->out)[i] = round_s8(v, args->zero_point, args->lo, args->hi);
    }
}

void naive_blend_f32(const struct n8_blend_args *args) {
    const float *const *in = (const float *const *)args->in;
    for (size_t i = 0; i < args->channels; i++) {
        const float v = blend(in[0][i], in[1][i], in[2][i], in[3][i], args);
        ((float *)args->out)[i] = isnan(v) ? NAN : v;
    }
}

static double exp_of(double d) {
    if (d < -104.0)
        return 0.0;
    const double k = rint(d * 1.4426950408889634);
    const double first = d - k * 0.69314718036912382;
    const double r = first - k * 1.9082149292705877e-10;
    double factorial = 6227020800.0; // 13!
    double p = 1.0 / factorial;
    for (int j = 12; j >= 0; j--) {
        factorial /= j + 1;
        p = p * r + 1.0 / factorial;
    }
    return ldexp(p, (int)k);
}

void naive_softmax_f32(float *out, const float *in, size_t count) {
    double largest = -INFINITY;
    for (size_t i = 0; i < count; i++)
        largest = (double)in[i] > largest ? (double)in[i] : largest;
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += exp_of((double)in[i] - largest);
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(exp_of((double)in[i] - largest) / sum);
}
