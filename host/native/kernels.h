// SPDX-License-Identifier: Apache-2.0
//
// The loops over values, one set for each instruction set.
#ifndef N8C_KERNELS_H
#define N8C_KERNELS_H

#include "neon8_calibrate.h"

#include <math.h>

enum {
    N8C_LANES = 16,
    N8C_BLOCK = 2048, // values that are looked at together; a multiple of N8C_LANES
    N8C_WAYS = 4,     // counters of each bin, side by side in n8c_statistics.tally
    N8C_LOG_WAYS = 2,
    N8C_LOG_BINS = 11,
};

// The sums of one channel of one sample so far: by lanes, and of all lanes together.
struct n8c_sums {
    double totals[N8C_LANES], squares[N8C_LANES];
    float minima[N8C_LANES], maxima[N8C_LANES];
    double total, square;
    float minimum, maximum;
};

struct n8c_kernels {
    // out = before with `count` values more; `before` is NULL for a channel's first values.
    // All calls but a channel's last bring a multiple of N8C_LANES. A value that is not finite
    // makes out->square not finite.
    void (*add)(struct n8c_sums *out, const struct n8c_sums *before, const float *in, size_t count);

    // The first counters of the bins of all values that are not zero:
    // out[k] = N8C_WAYS * (trunc(|x| * factor) + (x < 0 ? N8C_BINS : 0)). Returns how many.
    // `out` has room for count + 16; |x| * factor < N8C_BINS.
    size_t (*bins)(uint32_t *out, const float *in, size_t count, float factor);

    // out[i] = min(max(in[i] < 0 ? in[i] * slope : in[i], lo), hi); NaN stays NaN.
    void (*activate)(float *out, const float *in, size_t count, float slope, float lo, float hi);
};

void n8c_add_c(struct n8c_sums *out, const struct n8c_sums *before, const float *in, size_t count);
void n8c_add_avx2(struct n8c_sums *out, const struct n8c_sums *before, const float *in,
                  size_t count);
void n8c_add_avx512(struct n8c_sums *out, const struct n8c_sums *before, const float *in,
                    size_t count);
size_t n8c_bins_c(uint32_t *out, const float *in, size_t count, float factor);
size_t n8c_bins_avx2(uint32_t *out, const float *in, size_t count, float factor);
size_t n8c_bins_avx512(uint32_t *out, const float *in, size_t count, float factor);
void n8c_activate_c(float *out, const float *in, size_t count, float slope, float lo, float hi);
void n8c_activate_avx2(float *out, const float *in, size_t count, float slope, float lo, float hi);
void n8c_activate_avx512(float *out, const float *in, size_t count, float slope, float lo,
                         float hi);

// Asks for the values a block further while these are counted: the processor's own prefetching
// stops at every page. The address may lie behind the values; it is not read.
static inline void n8c_prefetch(const float *in) {
    __builtin_prefetch((const void *)((uintptr_t)in + N8C_BLOCK * sizeof *in));
}

// Adds the lanes up, in the order that n8c_observe promises.
void n8c_sums_finish(struct n8c_sums *sums);

enum n8c_status n8c_kernels_select(enum n8c_isa isa, struct n8c_kernels *out);

#endif // N8C_KERNELS_H
