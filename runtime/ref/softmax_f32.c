// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

#include <string.h>

// exp(d) for d <= 0 by (14), each operation rounded once. Adding 1.5 * 2^52 rounds half to
// even and leaves the integer k in the low bits, from where it goes into the exponent.
static double exp_of(double d) {
    static const double coefficients[14] = {
        // 1 / j!, j = 0 .. 13
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
    const double magic = 6755399441055744.0;
    if (d < -104.0)
        return 0.0;
    const double shifted = d * 1.4426950408889634 + magic;
    const double k = shifted - magic;
    const double r = (d - k * 0.69314718036912382) - k * 1.9082149292705877e-10;
    double p = coefficients[13];
    for (size_t j = 13; j-- > 0;)
        p = p * r + coefficients[j];
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

void n8_softmax_f32_c(float *out, const float *in, size_t count) {
    double largest = (double)in[0];
    for (size_t i = 1; i < count; i++)
        largest = (double)in[i] > largest ? (double)in[i] : largest;
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += exp_of((double)in[i] - largest);
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(exp_of((double)in[i] - largest) / sum);
}
