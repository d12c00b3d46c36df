// SPDX-License-Identifier: Apache-2.0
#include "pool_rare.h"

#include "ref/epilogue.h"
#include "ref/floats.h"
#include "size.h"

#include <string.h>

// Eight channels at once, which take one operation where the processor has vectors. What is read
// beyond the last channel of a pixel counts for nothing.
enum { LANES = 8 };
typedef int16_t lanes_s16 __attribute__((vector_size(2 * LANES)));
typedef int32_t lanes_s32 __attribute__((vector_size(4 * LANES)));

static inline lanes_s16 load(const struct n8_pool_args *args, size_t tap, size_t channel) {
    lanes_s16 values;
    memcpy(&values, args->rows[tap] + channel * sizeof(int16_t), sizeof values);
    return values;
}

// `one` in the lanes where `mask` is all ones, `other` where it is 0.
static inline lanes_s16 chosen(lanes_s16 mask, lanes_s16 one, lanes_s16 other) {
    return (one & mask) | (other & ~mask);
}

void n8_max_s16(const struct n8_pool_args *args) {
    const lanes_s16 lo = (lanes_s16){0} + (int16_t)args->lo;
    const lanes_s16 hi = (lanes_s16){0} + (int16_t)args->hi;
    for (size_t c = 0; c < args->channels; c += LANES) {
        const size_t count = n8_smaller(args->channels - c, LANES);
        lanes_s16 best = lo;
        for (size_t t = 0; t < args->taps; t++) {
            const lanes_s16 tap = load(args, t, c);
            best = chosen(tap > best, tap, best);
        }
        best = chosen(best < hi, best, hi);
        memcpy(args->out + c * sizeof(int16_t), &best, count * sizeof(int16_t));
    }
}

void n8_average_s16(const struct n8_pool_args *args) {
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    for (size_t c = 0; c < args->channels; c += LANES) {
        const size_t count = n8_smaller(args->channels - c, LANES);
        lanes_s32 sums = (lanes_s32){0} - (int32_t)args->taps * args->in_zero_point;
        for (size_t t = 0; t < args->taps; t++) {
            sums += __builtin_convertvector(load(args, t, c), lanes_s32);
        }
        int16_t q[LANES];
        float y[LANES];
        for (size_t i = 0; i < LANES; i++) {
            y[i] = (float)sums[i] * args->multiplier;
            q[i] = n8_round_s16(y[i], limits);
        }
        if (args->real) {
            memcpy(args->out + c * sizeof *y, y, count * sizeof *y);
        } else {
            memcpy(args->out + c * sizeof *q, q, count * sizeof *q);
        }
    }
}

void n8_pool_f32(const struct n8_pool_args *args, bool max, float count) {
    float *out = (float *)(void *)args->out;
    for (size_t c = 0; c < args->channels; c++) {
        out[c] = max ? -INFINITY : 0.0f;
    }
    for (size_t t = 0; t < args->taps; t++) {
        const float *in = (const float *)(const void *)args->rows[t];
        for (size_t c = 0; max && c < args->channels; c++) { // as maximum of (22)
            out[c] = out[c] != out[c] || out[c] > in[c] ? out[c] : in[c];
        }
        for (size_t c = 0; !max && c < args->channels; c++) {
            out[c] += in[c];
        }
    }
    for (size_t c = 0; c < args->channels; c++) {
        out[c] = n8_one_nan(out[c] / count);
    }
}
