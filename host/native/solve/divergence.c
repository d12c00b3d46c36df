// SPDX-License-Identifier: Apache-2.0
#include "neon8_calibrate.h"

#include <math.h>
#include <string.h>

// ln(x) of a positive, normal x to within 2 units in the last place, in the same arithmetic
// everywhere: C libraries differ. 2 atanh((m - 1) / (m + 1)) of the mantissa near 1.
static double natural_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    // The exponent of x / sqrt(1/2), so that the mantissa lies around 1.
    uint64_t moved = bits - UINT64_C(0x3fe6a09e667f3bcd);
    int64_t exponent = (int64_t)moved >> 52;
    bits -= moved & UINT64_C(0xfff0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1) / (m + 1), z = s * s;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    double tail = s * z * p;
    return (double)exponent * 0.69314718055994531 + 2 * (s + tail);
}

// x ln x, 0 for 0.
static double xlogx(double x) {
    return x > 0 ? x * natural_log(x) : 0;
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
        log_mean[group] = natural_log(log_mean[group]);
    double groups = 0;
    for (size_t group = 0; group < levels; group++)
        groups += mass[group] * log_mean[group];
    double p_log_p = running->own[bins] - xlogx(last) + xlogx(last + above);
    double p_log_q = groups + above * log_mean[levels - 1];
    return (p_log_p - p_log_q) / total - natural_log(total) + natural_log(inside);
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
