// SPDX-License-Identifier: Apache-2.0
#include "log.h"
#include "neon8_calibrate.h"

#include <math.h>

// x ln x, 0 for 0.
static double xlogx(double x) {
    return x > 0 ? x * n8c_log(x) : 0;
}

struct running {
    double mass[N8C_BINS + 1];   // of the bins before this one
    double filled[N8C_BINS + 1]; // how many of them are not empty
    double own[N8C_BINS + 1];    // sum of count * ln count over them
};

// With c the counts, o those above and q a group's count per filled bin, the entropy is
// (sum of P ln P - sum of P ln q) / total - ln(total) + ln(total of Q).
static double one(const struct running *running, const double *counts, size_t bins, size_t levels,
                  int shift) {
    double total = running->mass[N8C_BINS], inside = running->mass[bins];
    double above = total - inside, last = counts[bins - 1];
    if (inside == 0 || (above > 0 && last == 0))
        return INFINITY;
    double mass[N8C_BINS], log_mean[N8C_BINS];
    size_t begin = 0;
    for (size_t group = 0; group < levels; group++) {
        // Bin j of i belongs to group j * levels / i.
        size_t end = ((group + 1) * bins + levels - 1) >> shift;
        double filled = running->filled[end] - running->filled[begin];
        mass[group] = running->mass[end] - running->mass[begin];
        log_mean[group] = mass[group] > 0 ? mass[group] / filled : 1;
        begin = end;
    }
    for (size_t group = 0; group < levels; group++)
        log_mean[group] = n8c_log(log_mean[group]);
    double groups = 0;
    for (size_t group = 0; group < levels; group++)
        groups += mass[group] * log_mean[group];
    double p_log_p = running->own[bins] - xlogx(last) + xlogx(last + above);
    double p_log_q = groups + above * log_mean[levels - 1];
    return (p_log_p - p_log_q) / total - n8c_log(total) + n8c_log(inside);
}

enum n8c_status n8c_divergence(double *out, const double *counts, size_t first, size_t last,
                               size_t levels) {
    if (out == NULL || counts == NULL || levels < 1 || (levels & (levels - 1)) != 0 ||
        first < levels || last < first || last > N8C_BINS)
        return N8C_E_ARGUMENT;
    int shift = 0;
    while ((size_t)1 << shift < levels)
        shift++;
    struct running running = {{0}, {0}, {0}};
    for (size_t bin = 0; bin < N8C_BINS; bin++) {
        running.mass[bin + 1] = running.mass[bin] + counts[bin];
        running.filled[bin + 1] = running.filled[bin] + (counts[bin] > 0);
        running.own[bin + 1] = running.own[bin] + xlogx(counts[bin]);
    }
    for (size_t bins = first; bins <= last; bins++)
        out[bins - first] = one(&running, counts, bins, levels, shift);
    return N8C_OK;
}
