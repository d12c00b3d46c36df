// SPDX-License-Identifier: Apache-2.0
#ifndef N8C_HISTOGRAM_H
#define N8C_HISTOGRAM_H

#include "scan.h"

// Counts of one tensor and sample that are not in its histogram yet: small enough for the first
// cache, which the histograms of all tensors are not. The negative bins come first, backwards.
struct n8c_tally {
    uint32_t counters[2 * N8C_WAYS * N8C_BINS];
    uint64_t counted; // values in them, at most
};

// What bin 0 of the positive side has; n8c_piece.tally.
static inline uint32_t *n8c_tally_middle(struct n8c_tally *tally) {
    return tally->counters + N8C_WAYS * N8C_BINS;
}

// 2^11 / 2^exponent: |x| times this is the bin.
float n8c_histogram_factor(const struct n8c_statistics *statistics);

// Moves the counts, which are all of values from `minimum` to `maximum`, to the histogram.
void n8c_histogram_drain(struct n8c_statistics *statistics, struct n8c_tally *tally, float minimum,
                         float maximum);

// Makes the range hold values up to `largest`; the tally must be empty.
void n8c_histogram_grow(struct n8c_statistics *statistics, float largest);

#endif // N8C_HISTOGRAM_H
