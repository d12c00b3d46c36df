// SPDX-License-Identifier: Apache-2.0
//
// The loop over values. scan.c is compiled once for each instruction set.
#ifndef N8C_SCAN_H
#define N8C_SCAN_H

#include "neon8_calibrate.h"

#include <math.h>

enum {
    N8C_LANES = 16,
    N8C_PIECE = 1024, // values that are looked at together; a multiple of N8C_LANES
    N8C_GROUP = 8,    // channels that are looked at together
    N8C_WAYS = 2,     // counters of each bin, used in turn: see scan.c
};

// The values of one channel of one sample so far. The lanes are those of n8c_observe; total and
// square are the sums over them.
struct n8c_sums {
    double totals[N8C_LANES], squares[N8C_LANES];
    double total, square;
    float minimum, maximum;
};

// Values of one channel, or of several whole ones; what becomes of them, and of the bins of
// values before them.
struct n8c_piece {
    const float *in, *end; // up to `end` memory may be read
    // At most N8C_GROUP; values of each: a multiple of N8C_LANES but at the end of a channel.
    size_t channels, count;
    int32_t *bins;          // out: of all values that are not 0; room for N8C_LANES more
    const int32_t *pending; // bins of values before these, to be counted
    size_t pending_count;
    uint32_t *tally; // bin b has N8C_WAYS counters from tally[N8C_WAYS * b] on; b may be < 0
    // The channel before the piece; NULL: these are the first values of their channels.
    const struct n8c_sums *raw_before, *activated_before;
    struct n8c_sums *raw, *activated; // out: [channels]; NULL: none
    float factor;                     // of bins: trunc(|x| * factor), its complement for x < 0
    float slope, lo, hi;
    int last; // the lanes of the sums are not needed: their channels end here
};

// Takes a piece into the sums, makes the bins and counts the pending ones. Bins are those of the
// activated values if there are such. Returns how many; they mean nothing if a value is not
// finite or too large for its bin, which the sums and the range then show.
typedef size_t n8c_scan(const struct n8c_piece *piece);

n8c_scan n8c_scan_baseline;
#ifdef __x86_64__
n8c_scan n8c_scan_avx2, n8c_scan_avx512;
#endif

#endif // N8C_SCAN_H
