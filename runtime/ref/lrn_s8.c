// SPDX-License-Identifier: Apache-2.0
#include "elementary.h"
#include "kernel.h"

// d^beta by roots where they say it, as in AlexNet and GoogLeNet, else by exp and log.
static double power(double d, double beta) {
    if (beta == 0.75) {
        const double root = sqrt(d);
        return root * sqrt(root);
    }
    if (beta == 0.5)
        return sqrt(d);
    return beta == 1.0 ? d : n8_exp(beta * n8_log(d));
}

static double square(const struct n8_lrn_args *args, size_t c) {
    const int32_t value = args->in[c] - args->in_zero_point;
    return (double)(value * value);
}

// The sum is exact, in double, too, so it may move from channel to channel by what enters and what
// leaves. A value is clamped first, NaN as 0, then rounded by adding 1.5 * 2^52.
void n8_lrn_s8_c(const struct n8_lrn_args *args) {
    const struct n8_lrn_args a = *args; // which no store changes
    const double magic = 6755399441055744.0;
    const double lo = (double)(a.lo - a.zero_point);
    const double hi = (double)(a.hi - a.zero_point);
    double sum = 0.0;
    for (size_t c = 0; c < a.channels && c < a.reach; c++)
        sum += square(&a, c);
    for (size_t c = 0; c < a.channels; c++) {
        if (a.channels - c > a.reach)
            sum += square(&a, c + a.reach);
        if (c > a.reach)
            sum -= square(&a, c - a.reach - 1);
        const double d = a.bias + a.factor * sum;
        double v = (double)(a.in[c] - a.in_zero_point) * a.multiplier / power(d, a.beta);
        v = v == v ? v : 0.0;
        v = v > lo ? v : lo;
        v = v < hi ? v : hi;
        a.out[c] = (int8_t)((int32_t)((v + magic) - magic) + a.zero_point);
    }
}
