// SPDX-License-Identifier: Apache-2.0
#include "elementary.h"
#include "floats.h"
#include "kernel.h"

// The powers of (14): d <= 0.
static double exp_of(double d) {
    return d < -104.0 ? 0.0 : n8_exp(d);
}

void n8_softmax_f32_c(float *out, const float *in, size_t count) {
    double largest = (double)in[0];
    for (size_t i = 1; i < count; i++)
        largest = (double)in[i] > largest ? (double)in[i] : largest;
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += exp_of((double)in[i] - largest);
    for (size_t i = 0; i < count; i++)
        out[i] = n8_one_nan((float)(exp_of((double)in[i] - largest) / sum));
}
