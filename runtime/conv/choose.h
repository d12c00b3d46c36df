// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves a convolution: the one place where that is decided.
#ifndef N8_CHOOSE_H
#define N8_CHOOSE_H

#include "conv.h"

// All that the choice may depend on.
struct n8_conv_facts {
    const struct n8_conv2d_shape *shape;
    const struct n8_conv2d_epilogue *epilogue; // its pointers are only compared with NULL
    const struct n8_conv_certificate *certificate;
    int32_t in_lo, in_hi; // the values of the input, the zero point of the padding among them
    const struct n8_kernels *kernels;
    bool accumulates; // the layer wants int32 accumulators, whatever they become
};

// The row, or NULL where no kernel can serve the layer.
const struct n8_conv_row *n8_choose_conv(const struct n8_conv_facts *facts,
                                         struct n8_conv_reasons *reasons);

// Whether int16 Winograd by `row` transforms weights in each run instead of once, to eight times
// their size: to save memory, or the time in which more than a second-level cache is read.
bool n8_winograd16_transforms(const struct n8_conv_row *row, const struct n8_conv2d_shape *shape,
                              const struct n8_kernels *kernels);

#endif // N8_CHOOSE_H
