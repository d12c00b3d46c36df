// SPDX-License-Identifier: Apache-2.0
//
// The functions of elementary.h for many values: some side by side, since a processor that
// computes one waits for the result of each operation. What is rare is left to the header.
#include "elementary.h"

#include "floats.h"

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

// What is rare, once in the library.
static __attribute__((noinline)) void one_by_one(double *x, size_t count,
                                                 double (*function)(double)) {
    for (size_t i = 0; i < count; i++)
        x[i] = function(x[i]);
}

// n8_exp of LANES values.
static __attribute__((noinline)) void exp_block(double *x) {
    const double magic = 6755399441055744.0;
    double r[LANES], p[LANES], power[LANES];
    if (!all_within(x, 708.0)) {
        one_by_one(x, LANES, n8_exp);
        return;
    }
    EACH {
        const double shifted = x[i] * 1.4426950408889634 + magic;
        const double k = shifted - magic;
        r[i] = (x[i] - k * N8_LN2_HIGH) - k * N8_LN2_LOW;
        uint64_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 1023) << 52;
        memcpy(&power[i], &bits, sizeof bits);
        p[i] = n8_exp_coefficients[13];
    }
#pragma GCC unroll 13
    for (size_t j = 13; j > 0; j--) {
        EACH p[i] = p[i] * r[i] + n8_exp_coefficients[j - 1];
    }
    EACH x[i] = p[i] * power[i];
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
