// SPDX-License-Identifier: Apache-2.0
#include "activate.h"

static const struct n8c_sums nothing = {
#define EIGHT(x) x, x, x, x, x, x, x, x
    .minima = {EIGHT(INFINITY), EIGHT(INFINITY)},
    .maxima = {EIGHT(-INFINITY), EIGHT(-INFINITY)},
#undef EIGHT
};

static inline void add_one(struct n8c_sums *sums, float x, size_t lane) {
    sums->totals[lane] += (double)x;
    sums->squares[lane] += (double)x * (double)x;
    sums->minima[lane] = x < sums->minima[lane] ? x : sums->minima[lane];
    sums->maxima[lane] = x > sums->maxima[lane] ? x : sums->maxima[lane];
}

void n8c_add_c(struct n8c_sums *out, const struct n8c_sums *before, const float *in, size_t count) {
    struct n8c_sums sums = before == NULL ? nothing : *before;
    size_t whole = count - count % N8C_LANES;
    for (size_t i = 0; i < whole; i += N8C_LANES) {
        n8c_prefetch(in + i);
        for (size_t lane = 0; lane < N8C_LANES; lane++)
            add_one(&sums, in[i + lane], lane);
    }
    for (size_t i = whole; i < count; i++)
        add_one(&sums, in[i], i - whole);
    n8c_sums_finish(&sums);
    *out = sums;
}

static double over_lanes(const double *lanes) {
    double eight[8], four[4];
    for (size_t i = 0; i < 8; i++)
        eight[i] = lanes[i] + lanes[i + 8];
    for (size_t i = 0; i < 4; i++)
        four[i] = eight[i] + eight[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

void n8c_sums_finish(struct n8c_sums *sums) {
    sums->total = over_lanes(sums->totals);
    sums->square = over_lanes(sums->squares);
    sums->minimum = sums->minima[0];
    sums->maximum = sums->maxima[0];
    for (size_t lane = 1; lane < N8C_LANES; lane++) {
        float least = sums->minima[lane], most = sums->maxima[lane];
        sums->minimum = least < sums->minimum ? least : sums->minimum;
        sums->maximum = most > sums->maximum ? most : sums->maximum;
    }
}

size_t n8c_bins_c(uint32_t *out, const float *in, size_t count, float factor) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bin = (uint32_t)(int32_t)(fabsf(in[i]) * factor);
        uint32_t side = (uint32_t)(in[i] < 0) << N8C_LOG_BINS;
        out[found] = (bin + side) << N8C_LOG_WAYS;
        found += in[i] != 0;
    }
    return found;
}

void n8c_activate_c(float *out, const float *in, size_t count, float slope, float lo, float hi) {
    n8c_activate(out, in, count, slope, lo, hi);
}
