// SPDX-License-Identifier: Apache-2.0
#ifndef N8C_INTAKE_H
#define N8C_INTAKE_H

#include "scan.h"

// What one n8c_statistics takes in of one tensor of a sample.
struct n8c_intake {
    struct n8c_statistics *out; // NULL: nothing
    // Of the current channels: so far, and with the piece at hand, which is taken only if it needs
    // no care. A channel of several pieces is alone.
    struct n8c_sums sums[2][N8C_GROUP];
    size_t finite[N8C_GROUP]; // values in them
    int now;                  // sums[now] are those so far
    int begun;                // are there any?
    float minimum, maximum;   // of all channels of this sample so far
    size_t argmin, argmax;
};

// Begins to take in a sample for `out`, which may be NULL.
void n8c_begin_sample(struct n8c_intake *intake, struct n8c_statistics *out, size_t channels);

// Takes the sums so far, which are those of the channels first, first + 1, ... of `channels`, and
// their ranges into those of the sample.
void n8c_end_channels(struct n8c_intake *intake, size_t first, size_t count, size_t channels);

void n8c_end_sample(const struct n8c_intake *intake);

// Has it either all of a histogram or nothing, and the same of channels?
int n8c_valid(const struct n8c_statistics *statistics);

static inline float n8c_smaller(float a, float b) {
    return a < b ? a : b;
}

static inline float n8c_larger(float a, float b) {
    return a > b ? a : b;
}

#endif // N8C_INTAKE_H
