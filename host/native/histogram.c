// SPDX-License-Identifier: Apache-2.0
#include "histogram.h"

#include <string.h>

// Neighbouring values often share a bin. Four counters for each bin, used in turn, keep one
// increment from waiting for the one before; side by side they also share a cache line.
_Static_assert(N8C_TALLY == N8C_WAYS * 2 * N8C_BINS, "a counter for each way, side and bin");

void n8c_histogram_add(struct n8c_statistics *statistics, const struct n8c_kernels *kernels,
                       const float *in, size_t count) {
    uint32_t first[N8C_BLOCK + 16];
    float factor = ldexpf(1.0f, N8C_LOG_BINS - statistics->exponent);
    size_t found = kernels->bins(first, in, count, factor);
    if (statistics->tallied + found > UINT32_MAX)
        n8c_histogram_settle(statistics);
    uint32_t *tally = statistics->tally;
    size_t i = 0;
    for (; i + N8C_WAYS <= found; i += N8C_WAYS) {
        for (size_t way = 0; way < N8C_WAYS; way++)
            tally[first[i + way] + way]++;
    }
    for (; i < found; i++)
        tally[first[i]]++;
    statistics->tallied += found;
    statistics->zeros += count - found;
}

void n8c_histogram_settle(struct n8c_statistics *statistics) {
    if (statistics->tallied == 0)
        return;
    const uint32_t *tally = statistics->tally;
    for (size_t bin = 0; bin < N8C_BINS; bin++) {
        const uint32_t *above = tally + N8C_WAYS * bin, *below = above + N8C_WAYS * N8C_BINS;
        for (size_t way = 0; way < N8C_WAYS; way++) {
            statistics->positive[bin] += above[way];
            statistics->negative[bin] += below[way];
        }
    }
    memset(statistics->tally, 0, N8C_TALLY * sizeof *tally);
    statistics->tallied = 0;
}

static void fold(uint64_t *counts, int times) {
    size_t width = (size_t)1 << times, bins = N8C_BINS >> times;
    for (size_t bin = 0; bin < bins; bin++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < width; i++)
            sum += counts[bin * width + i];
        counts[bin] = sum;
    }
    memset(counts + bins, 0, (N8C_BINS - bins) * sizeof *counts);
}

void n8c_histogram_grow(struct n8c_statistics *statistics, float largest) {
    int exponent = N8C_EXPONENT_MIN;
    if (largest > 0)
        frexpf(largest, &exponent);
    if (exponent <= statistics->exponent)
        return;
    n8c_histogram_settle(statistics);
    int times = exponent - statistics->exponent;
    times = times > N8C_LOG_BINS ? N8C_LOG_BINS : times;
    fold(statistics->positive, times);
    fold(statistics->negative, times);
    statistics->exponent = exponent;
}
