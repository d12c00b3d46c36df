// SPDX-License-Identifier: Apache-2.0
//
// The ways to compute a convolution: conv.c finds out which one a layer goes, one file has each.
#ifndef N8_CONV_WAY_H
#define N8_CONV_WAY_H

#include "conv.h"

enum { N8_ALIGN_PART = 16 }; // of each group's packed weights and arrays

struct n8_conv_way {
    // Completes a plan whose kernel is chosen. Sizes saturate to SIZE_MAX.
    void (*plan)(struct n8_conv *conv);
    // Packs the weights into group_weights bytes of each group, which are zero.
    void (*pack)(const struct n8_conv *conv, const int8_t *weights, void *memory);
    // n8_conv_run
    void (*run)(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin, size_t end,
                void *scratch);
};

extern const struct n8_conv_way n8_conv_igemm;
extern const struct n8_conv_way n8_conv_depthwise;

// Where one tap of a window falls.
static inline int64_t n8_tap_at(int64_t out, int32_t stride, int32_t tap, int32_t dilation,
                                int32_t pad) {
    return out * stride + (int64_t)tap * dilation - pad;
}

#endif // N8_CONV_WAY_H
