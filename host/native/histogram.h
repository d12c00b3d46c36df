// SPDX-License-Identifier: Apache-2.0
#ifndef N8C_HISTOGRAM_H
#define N8C_HISTOGRAM_H

#include "kernels.h"

// Counts up to N8C_BLOCK finite values, those that are 0 not among the bins.
void n8c_histogram_add(struct n8c_statistics *statistics, const struct n8c_kernels *kernels,
                       const float *in, size_t count);

// Makes the range hold values up to `largest`.
void n8c_histogram_grow(struct n8c_statistics *statistics, float largest);

// Moves what `tally` holds to the bins.
void n8c_histogram_settle(struct n8c_statistics *statistics);

#endif // N8C_HISTOGRAM_H
