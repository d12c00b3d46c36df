// SPDX-License-Identifier: Apache-2.0
#include "elementary.h"
#include "floats.h"
#include "kernel.h"

enum { BLOCK = 64 };

// The powers of (14) of up to BLOCK values.
static void powers_of(double *out, const float *in, size_t count, double largest) {
    for (size_t i = 0; i < count; i++)
        out[i] = (double)in[i] - largest;
    n8_exp_all(out, count);
    for (size_t i = 0; i < count; i++)
        out[i] = (double)in[i] - largest < -104.0 ? 0.0 : out[i];
}

void n8_softmax_f32_c(float *out, const float *in, size_t count) {
    double powers[BLOCK];
    double largest = (double)in[0];
    for (size_t i = 1; i < count; i++)
        largest = (double)in[i] > largest ? (double)in[i] : largest;
    double sum = 0.0;
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t size = count - at < BLOCK ? count - at : BLOCK;
        powers_of(powers, in + at, size, largest);
        for (size_t i = 0; i < size; i++)
            sum += powers[i];
    }
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t size = count - at < BLOCK ? count - at : BLOCK;
        if (count > BLOCK) // else they are still here
            powers_of(powers, in + at, size, largest);
        for (size_t i = 0; i < size; i++)
            out[at + i] = n8_one_nan((float)(powers[i] / sum));
    }
}
