// SPDX-License-Identifier: Apache-2.0
//
// The contract of kernel.h, one value at a time and nothing clever, of the kernels that only C has:
// no twin of theirs would show that they are wrong.
#include "checkasm.h"

#include <math.h>

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
