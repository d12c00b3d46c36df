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

// clamp(rne(v) + zero_point, lo, hi), NaN as 0: clamped first, then rounded by adding 1.5 * 2^52.
static int8_t round_s8(double v, const struct n8_lrn_args *args) {
    const double magic = 6755399441055744.0;
    const double lo = (double)(args->lo - args->zero_point);
    const double hi = (double)(args->hi - args->zero_point);
    v = v == v ? v : 0.0;
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return (int8_t)((int32_t)((v + magic) - magic) + args->zero_point);
}

static double square(const struct n8_lrn_args *args, size_t c) {
    const int32_t value = args->in[c] - args->in_zero_point;
    return (double)(value * value);
}

// The sum is exact, in double, too, so it may move from channel to channel by what enters and what
// leaves.
void n8_lrn_s8_c(const struct n8_lrn_args *args) {
    const size_t channels = args->channels;
    double sum = 0.0;
    for (size_t c = 0; c < channels && c < args->reach; c++)
        sum += square(args, c);
    for (size_t c = 0; c < channels; c++) {
        if (channels - c > args->reach)
            sum += square(args, c + args->reach);
        if (c > args->reach)
            sum -= square(args, c - args->reach - 1);
        const double d = args->bias + args->factor * sum;
        const double v = (double)(args->in[c] - args->in_zero_point) * args->multiplier;
        args->out[c] = round_s8(v / power(d, args->beta), args);
    }
}
