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

static double square(int8_t q, int32_t zero_point) {
    return (double)((q - zero_point) * (q - zero_point));
}

// The sum is exact, in double, too, so it may move from channel to channel by what enters and what
// leaves. A value is clamped first, NaN as 0, then rounded by adding 1.5 * 2^52.
void n8_lrn_s8_c(const struct n8_lrn_args *args) {
    const struct n8_lrn_args a = *args; // which no store changes
    const struct n8_lrn_numbers n = *args->numbers;
    const double magic = 6755399441055744.0;
    const double lo = (double)(a.lo - a.zero_point);
    const double hi = (double)(a.hi - a.zero_point);
    const int8_t *first = a.in - a.reach, *next = a.in + a.reach; // of the channels of a sum
    double sum = 0.0;
    for (const int8_t *in = first; in < next; in++)
        sum += square(*in, a.in_zero_point);
    for (size_t c = 0; c < a.channels; c++) {
        sum += square(next[c], a.in_zero_point);
        const double d = n.bias + n.factor * sum;
        double v = (double)(a.in[c] - a.in_zero_point) * n.multiplier / power(d, n.beta);
        v = v == v ? v : 0.0;
        v = v > lo ? v : lo;
        v = v < hi ? v : hi;
        a.out[c] = (int8_t)((int32_t)((v + magic) - magic) + a.zero_point);
        sum -= square(first[c], a.in_zero_point);
    }
}
