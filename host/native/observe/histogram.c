// SPDX-License-Identifier: Apache-2.0
#include "histogram.h"

#include <string.h>

enum { LOG_BINS = 11 };
_Static_assert(1 << LOG_BINS == N8C_BINS, "a power of two");

float n8c_histogram_factor(const struct n8c_statistics *statistics) {
    return ldexpf(1.0f, LOG_BINS - statistics->exponent);
}

// How many bins hold values up to `largest`.
static size_t reach(const struct n8c_statistics *statistics, float largest) {
    if (!(largest > 0))
        return 0;
    float bin = largest * n8c_histogram_factor(statistics);
    return bin < N8C_BINS ? (size_t)bin + 1 : N8C_BINS;
}

static uint64_t both(const uint32_t *counters) {
    return (uint64_t)counters[0] + counters[1];
}

void n8c_histogram_drain(struct n8c_statistics *statistics, struct n8c_tally *tally, float minimum,
                         float maximum) {
    _Static_assert(N8C_WAYS == 2, "both() adds all of a bin's counters");
    uint32_t *middle = n8c_tally_middle(tally);
    size_t above = reach(statistics, maximum), below = reach(statistics, -minimum);
    uint32_t *negative = middle - N8C_WAYS * below;
    for (size_t bin = 0; bin < above; bin++)
        statistics->positive[bin] += both(middle + N8C_WAYS * bin);
    for (size_t bin = 0; bin < below; bin++)
        statistics->negative[below - 1 - bin] += both(negative + N8C_WAYS * bin);
    memset(negative, 0, N8C_WAYS * (below + above) * sizeof *negative);
    tally->counted = 0;
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
    int times = exponent - statistics->exponent;
    times = times > LOG_BINS ? LOG_BINS : times;
    fold(statistics->positive, times);
    fold(statistics->negative, times);
    statistics->exponent = exponent;
}
