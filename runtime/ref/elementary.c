// SPDX-License-Identifier: Apache-2.0
//
// The functions of elementary.h for many values: some side by side, since a processor that
// computes one waits for the result of each operation. What is rare is left to the header.
#include "elementary.h"

#include "floats.h"

#include <stdbool.h>

#if defined(__arm__)
enum { LANES = 2 }; // all of which sixteen registers hold
#else
enum { LANES = 8 };
#endif

// For compilers, which then keep the lanes in registers.
#define EACH _Pragma("GCC unroll 8") for (size_t i = 0; i < LANES; i++)

// Whether no magnitude exceeds `most`; false where there is a NaN.
static __attribute__((noinline)) bool all_within(const double *x, double most) {
    uint64_t limit, beyond = 0; // magnitudes are in the order of their bits
    memcpy(&limit, &most, sizeof limit);
    EACH {
        uint64_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        beyond |= limit - (bits & INT64_MAX);
    }
    return beyond >> 63 == 0;
}

// e^x = (series * r + 1) * power; r is x near 0. For |x| up to 708.
struct powers {
    double series[LANES], r[LANES], power[LANES];
};

static __attribute__((noinline)) void exp_lanes(struct powers *restrict out,
                                                const double *restrict x) {
    const double magic = 6755399441055744.0;
    double r[LANES], p[LANES];
    EACH {
        const double shifted = x[i] * 1.4426950408889634 + magic;
        const double k = shifted - magic;
        r[i] = (x[i] - k * N8_LN2_HIGH) - k * N8_LN2_LOW;
        uint64_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 1023) << 52;
        memcpy(&out->power[i], &bits, sizeof bits);
        p[i] = n8_exp_coefficients[13];
    }
#pragma GCC unroll 12
    for (size_t j = 12; j > 0; j--) {
        EACH p[i] = p[i] * r[i] + n8_exp_coefficients[j];
    }
    EACH {
        out->series[i] = p[i];
        out->r[i] = r[i];
    }
}

static inline double exp_of(const struct powers *p, size_t i) {
    return (p->series[i] * p->r[i] + 1.0) * p->power[i];
}

// What is rare, once in the library.
static __attribute__((noinline)) void one_by_one(double *x, size_t count,
                                                 double (*function)(double)) {
    for (size_t i = 0; i < count; i++)
        x[i] = function(x[i]);
}

static void exp_block(double *x) {
    struct powers p;
    if (!all_within(x, 708.0)) {
        one_by_one(x, LANES, n8_exp);
        return;
    }
    exp_lanes(&p, x);
    EACH x[i] = exp_of(&p, i);
}

static void sigmoid_block(double *x) {
    EACH x[i] = -x[i];
    exp_block(x);
    EACH x[i] = 1.0 / (1.0 + x[i]);
}

// A block by itself where fewer values are left.
static __attribute__((noinline)) void each_block(double *x, size_t count, void (*block)(double *)) {
    for (; count >= LANES; count -= LANES, x += LANES)
        block(x);
    if (count > 0) {
        double last[LANES] = {0};
        memcpy(last, x, count * sizeof *x);
        block(last);
        memcpy(x, last, count * sizeof *x);
    }
}

void n8_exp_all(double *x, size_t count) {
    each_block(x, count, exp_block);
}

void n8_sigmoid_all(double *x, size_t count) {
    each_block(x, count, sigmoid_block);
}

void n8_tanh_all(double *x, size_t count) {
    one_by_one(x, count, n8_tanh);
}

void n8_to_double_all(double *restrict out, const float *restrict in, size_t count) {
    for (; count >= LANES; count -= LANES, in += LANES, out += LANES) {
        EACH out[i] = (double)in[i];
    }
    for (size_t i = 0; i < count; i++)
        out[i] = (double)in[i];
}

void n8_to_float_all(float *restrict out, const double *restrict in, size_t count) {
    for (; count >= LANES; count -= LANES, in += LANES, out += LANES) {
        float y[LANES];
        EACH y[i] = (float)in[i];
        EACH out[i] = n8_one_nan(y[i]);
    }
    for (size_t i = 0; i < count; i++)
        out[i] = n8_one_nan((float)in[i]);
}

// Two values, for which compilers take vector operations if there are any.
typedef double pair __attribute__((vector_size(16)));
typedef uint64_t words __attribute__((vector_size(16)));

#define EACH_PAIR _Pragma("GCC unroll 4") for (size_t i = 0; i < LANES / 2; i++)

static inline pair pair_at(const double *values, size_t i) {
    pair found;
    memcpy(&found, values + 2 * i, sizeof found);
    return found;
}

// Less than (15), where it is enough to know which float a sigmoid or a tanh is nearest to. With z
// = x or 2 |x| and e^-z = 2^k (1 - m), they are
//
//     sigmoid(x) = 1 / (1 + e^-z)    tanh |x| = (1 - e^-z) / (1 + e^-z)
//
// of m the terms up to r^9 / 9!, and a quotient of floats that a step of Newton's method betters.
// What is left out is below 2^-35 of the result, for |r| <= ln 2 / 2, and what is rounded otherwise
// below 2^-44: together less than `unsure` units in the last place of a double. False where a value
// is so near to the middle of two floats, or so large, that this does not decide.
static bool quickly(float *restrict out, const float *restrict in, bool tanh) {
    enum { TERMS = 9 };
    const uint64_t unsure = 1 << 18, middle = 1 << 28, between = (1 << 29) - 1;
    const double magic = 6755399441055744.0 + 1023.0; // with the bias of exponents
    pair z[LANES / 2], r[LANES / 2], m[LANES / 2], power[LANES / 2];
    const words limit = (words)(pair){80.0, 80.0};
    words wrong = {0}; // where a sign bit is set
    double values[LANES];
    float quotients[LANES];
    EACH values[i] = (double)in[i];
    EACH_PAIR z[i] = pair_at(values, i);
    if (tanh) {
        EACH_PAIR z[i] = (pair)((words)z[i] & INT64_MAX) * 2.0;
    }
    EACH_PAIR {
        wrong |= limit - ((words)z[i] & INT64_MAX); // magnitudes are in the order of their bits
        const pair shifted = magic - z[i] * 1.4426950408889634;
        const pair k = shifted - magic;
        r[i] = z[i] + k * 0.6931471805599453; // e^-z = 2^k * e^-r
        power[i] = (pair)((words)shifted << 52);
        m[i] = (pair){0} + n8_exp_coefficients[TERMS];
    }
#pragma GCC unroll 8
    for (size_t j = TERMS - 1; j > 0; j--) {
        EACH_PAIR m[i] = n8_exp_coefficients[j] - m[i] * r[i];
    }
    EACH_PAIR {
        m[i] = m[i] * r[i] * power[i];
        z[i] = (1.0 + power[i]) - m[i];
        memcpy(&values[2 * i], &z[i], sizeof z[i]);
    }
    EACH quotients[i] = 1.0f / (float)values[i];
    EACH values[i] = (double)quotients[i];
    EACH_PAIR {
        const pair about = pair_at(values, i);
        z[i] = about * (2.0 - z[i] * about);
    }
    if (tanh) {
        EACH_PAIR z[i] = z[i] * ((1.0 - power[i]) + m[i]);
    }
    EACH_PAIR {
        wrong |= (((words)z[i] - (middle - unsure)) & between) - 2 * unsure;
        memcpy(&values[2 * i], &z[i], sizeof z[i]);
    }
    EACH out[i] = (float)values[i];
    if (tanh) {
        EACH out[i] = copysignf(out[i], in[i]);
    }
    return (wrong[0] | wrong[1]) >> 63 == 0;
}

static __attribute__((noinline)) void in_full(float *out, const float *in, size_t count,
                                              bool tanh) {
    double x[LANES];
    n8_to_double_all(x, in, count);
    if (tanh)
        n8_tanh_all(x, count);
    else
        n8_sigmoid_all(x, count);
    n8_to_float_all(out, x, count);
}

static void of_floats(float *out, const float *in, size_t count, bool tanh) {
    for (; count >= LANES; count -= LANES, in += LANES, out += LANES) {
        float y[LANES];
        if (quickly(y, in, tanh))
            memcpy(out, y, sizeof y);
        else
            in_full(out, in, LANES, tanh);
    }
    in_full(out, in, count, tanh);
}

void n8_sigmoid_floats(float *out, const float *in, size_t count) {
    of_floats(out, in, count, false);
}

void n8_tanh_floats(float *out, const float *in, size_t count) {
    of_floats(out, in, count, true);
}
