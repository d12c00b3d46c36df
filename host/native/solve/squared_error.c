// SPDX-License-Identifier: Apache-2.0
#include "neon8_calibrate.h"

#include <math.h>

struct moments { // of the bins from this one on, about 0, values spread evenly within a bin
    double zeroth[N8C_BINS + 1], first[N8C_BINS + 1], second[N8C_BINS + 1];
};

static void sum_moments(struct moments *out, const double *counts, size_t used) {
    out->zeroth[used] = out->first[used] = out->second[used] = 0;
    for (size_t bin = used; bin-- > 0;) {
        double center = (double)bin + 0.5;
        out->zeroth[bin] = out->zeroth[bin + 1] + counts[bin];
        out->first[bin] = out->first[bin + 1] + counts[bin] * center;
        out->second[bin] = out->second[bin + 1] + counts[bin] * (center * center + 1.0 / 12);
    }
}

// out[e] = the squared rounding error of all values below bin e on a grid of `step` bins.
static void sum_rounding(double *out, const double *counts, size_t used, double step) {
    // The integral of (x - rint(x / s) * s)^2 from 0 to e, at all edges e.
    double integral[N8C_BINS + 1], each = step * step * step / 12;
    for (size_t edge = 0; edge <= used; edge++) {
        double nearest = rint((double)edge / step);
        double rest = (double)edge - nearest * step;
        integral[edge] = nearest * each + rest * rest * rest / 3;
    }
    for (size_t bin = 0; bin < used; bin++)
        integral[bin] = (integral[bin + 1] - integral[bin]) * counts[bin];
    out[0] = 0;
    for (size_t bin = 0; bin < used; bin++)
        out[bin + 1] = out[bin] + integral[bin];
}

enum n8c_status n8c_squared_error(double *out, const double *counts, const double *steps,
                                  size_t step_count, const int64_t *levels, size_t level_count) {
    if (out == NULL || counts == NULL || steps == NULL || levels == NULL)
        return N8C_E_ARGUMENT;
    size_t used = N8C_BINS;
    while (used > 0 && counts[used - 1] == 0)
        used--;
    if (used == 0)
        return N8C_OK;
    struct moments above;
    double rounding[N8C_BINS + 1];
    sum_moments(&above, counts, used);
    for (size_t i = 0; i < step_count; i++) {
        sum_rounding(rounding, counts, used, steps[i]);
        for (size_t j = 0; j < level_count; j++) {
            double reach = steps[i] * (double)levels[j];
            double at = reach < (double)used ? reach : (double)used;
            size_t bin = at < (double)(used - 1) ? (size_t)at : used - 1;
            double share = at - (double)bin;
            double error = rounding[bin] + share * (rounding[bin + 1] - rounding[bin]);
            if (reach < (double)used) {
                double center = (double)bin + 0.5;
                double zeroth = above.zeroth[bin] - share * counts[bin];
                double first = above.first[bin] - share * (counts[bin] * center);
                double second =
                    above.second[bin] - share * (counts[bin] * (center * center + 1.0 / 12));
                double clipping = second - 2 * reach * first + reach * reach * zeroth;
                error += clipping > 0 ? clipping : 0;
            }
            out[i * level_count + j] += error;
        }
    }
    return N8C_OK;
}
