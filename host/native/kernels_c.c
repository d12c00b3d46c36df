// SPDX-License-Identifier: Apache-2.0
#include "activate.h"

static inline void add_one(struct n8c_sums *sums, float x, size_t lane) {
    sums->total[lane] += (double)x;
    sums->squares[lane] += (double)x * (double)x;
    sums->least[lane] = x < sums->least[lane] ? x : sums->least[lane];
    sums->most[lane] = x > sums->most[lane] ? x : sums->most[lane];
}

void n8c_add_c(struct n8c_sums *sums, const float *in, size_t count) {
    struct n8c_sums s = *sums;
    size_t whole = count - count % N8C_LANES;
    for (size_t i = 0; i < whole; i += N8C_LANES) {
        for (size_t lane = 0; lane < N8C_LANES; lane++)
            add_one(&s, in[i + lane], lane);
    }
    for (size_t i = whole; i < count; i++)
        add_one(&s, in[i], i - whole);
    *sums = s;
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
