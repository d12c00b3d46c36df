// SPDX-License-Identifier: Apache-2.0
//
// exp, log and what is built from them in double, (15): the same bits on every machine, which
// those of C libraries are not. Each operation is rounded once, in the order written here. Good
// to some units in the last place of a double. Every NaN that comes out is N8_NAN.
#ifndef N8_REF_ELEMENTARY_H
#define N8_REF_ELEMENTARY_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define N8_NAN ((double)NAN)

// The double nearest to ln 2 with 20 zeros at its end, so that its products with integers below
// 2^20 are exact, and the double nearest to what is missing.
#define N8_LN2_HIGH 0.69314718036912382
#define N8_LN2_LOW  1.9082149292705877e-10

// 1 / j!
static const double n8_exp_coefficients[14] = {
    1.0,
    1.0,
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5040.0,
    1.0 / 40320.0,
    1.0 / 362880.0,
    1.0 / 3628800.0,
    1.0 / 39916800.0,
    1.0 / 479001600.0,
    1.0 / 6227020800.0,
};

// Sum over j = least .. 13 of r^(j - least) / j!, by Horner from the last term on.
static inline double n8_exp_series(double r, size_t least) {
    double p = n8_exp_coefficients[13];
    for (size_t j = 13; j-- > least;)
        p = p * r + n8_exp_coefficients[j];
    return p;
}

// e^x for x in -708 .. 709; beyond, 0 and infinity. Adding 1.5 * 2^52 rounds half to even and
// leaves the integer k in the low bits, from where it goes into the exponent.
static inline double n8_exp(double x) {
    const double magic = 6755399441055744.0;
    if (!(x >= -708.0))
        return x != x ? N8_NAN : 0.0;
    if (x > 709.0)
        return (double)INFINITY;
    const double shifted = x * 1.4426950408889634 + magic;
    const double k = shifted - magic;
    const double r = (x - k * N8_LN2_HIGH) - k * N8_LN2_LOW;
    const double p = n8_exp_series(r, 0);
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

// e^x - 1, without cancellation near 0.
static inline double n8_expm1(double x) {
    if (x > -0.34 && x < 0.34)
        return n8_exp_series(x, 1) * x;
    return n8_exp(x) - 1.0;
}

// ln x: x = m * 2^e with m in sqrt(1/2) .. sqrt(2), and ln m = 2 artanh((m - 1) / (m + 1)).
static inline double n8_log(double x) {
    if (!(x > 0.0))
        return x == 0.0 ? -(double)INFINITY : N8_NAN;
    if (x == (double)INFINITY)
        return x;
    int32_t e = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        e = -54;
    }
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    e += (int32_t)(bits >> 52) - 1022;
    bits = (bits & 0x000fffffffffffff) | 0x3fe0000000000000; // m in 1/2 .. 1
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m < 0.70710678118654752) {
        m *= 2.0;
        e -= 1;
    }
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = 2.0 / 25.0;
    for (int j = 23; j >= 1; j -= 2)
        p = p * z + 2.0 / (double)j;
    return (double)e * N8_LN2_HIGH + (p * s + (double)e * N8_LN2_LOW);
}

// ln(1 + x) for x >= 0: what rounding 1 + x loses is made good by a quotient.
static inline double n8_log1p(double x) {
    const double sum = 1.0 + x;
    if (x != x)
        return N8_NAN;
    if (sum == 1.0 || sum == (double)INFINITY)
        return x;
    return n8_log(sum) * (x / (sum - 1.0));
}

static inline double n8_sigmoid(double x) {
    return 1.0 / (1.0 + n8_exp(-x));
}

static inline double n8_tanh(double x) {
    const double a = x < 0.0 ? -x : x;
    if (a > 20.0)
        return x < 0.0 ? -1.0 : 1.0;
    const double t = n8_expm1(2.0 * a);
    const double y = t / (t + 2.0);
    return x < 0.0 ? -y : y;
}

// The same of each of `count` values, in place: eight of them side by side (but of tanh), for a
// processor that would wait for the result of each operation. And to double, and back with one NaN.
#pragma GCC visibility push(hidden)
void n8_to_double_all(double *restrict out, const float *restrict in, size_t count);
void n8_to_float_all(float *restrict out, const double *restrict in, size_t count);
void n8_exp_all(double *x, size_t count);
void n8_sigmoid_all(double *x, size_t count);
void n8_tanh_all(double *x, size_t count);

// In float32; `out` may be `in`.
void n8_sigmoid_or_tanh(float *out, const float *in, size_t count, bool tanh);
#pragma GCC visibility pop

// 2 / sqrt(pi) e^(-x^2) times the sum over n of 2^n x^(2n + 1) / (1 * 3 * ... * (2n + 1)): all
// terms have the sign of x. From 6 on it is 1 to the last place.
static inline double n8_erf(double x) {
    if (x != x)
        return N8_NAN;
    if (x >= 6.0 || x <= -6.0)
        return x < 0.0 ? -1.0 : 1.0;
    const double square = x * x;
    double term = x, sum = x;
    for (int n = 1; n < 150; n++) {
        term = term * (2.0 * square / (double)(2 * n + 1));
        sum = sum + term;
    }
    return 1.1283791670955126 * n8_exp(-square) * sum;
}

// sin x: what is left of whole turns by the double nearest to 2 pi, exactly, then of half ones.
static inline double n8_sine(double x) {
    const double turned = fmod(x, 6.2831853071795865);
    const double k = rint(turned * 0.31830988618379067);
    const double r = turned - k * 3.1415926535897931, z = r * r;
    if (r != r)
        return N8_NAN;
    double term = 1.0, sum = 1.0;
    for (int j = 2; j < 24; j += 2) {
        term = term * (-z / (double)(j * (j + 1)));
        sum = sum + term;
    }
    return fabs(k) == 1.0 ? -(sum * r) : sum * r;
}

// atan x: three times the half of the angle, then a series. From 2^53 on it is the last value.
static inline double n8_arctangent(double x) {
    if (x != x)
        return N8_NAN;
    double t = fabs(x) < 0x1p53 ? fabs(x) : 0x1p53;
    for (int i = 0; i < 3; i++)
        t = t / (1.0 + sqrt(1.0 + t * t));
    const double z = t * t;
    double p = 1.0 / 21.0;
    for (int j = 19; j >= 1; j -= 2)
        p = 1.0 / (double)j - p * z;
    return copysign(8.0 * (p * t), x);
}

#endif // N8_REF_ELEMENTARY_H
