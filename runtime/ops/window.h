// SPDX-License-Identifier: Apache-2.0
//
// Windows of convolutions and pools: which of their taps lie inside the input.
#ifndef N8_WINDOW_H
#define N8_WINDOW_H

#include "step.h"

// Taps [from, to) of a window fall inside the input; `count` of them count as its size.
struct n8_window {
    int64_t start, from, to, count;
};

static inline struct n8_window n8_window_at(const struct n8_file_op *row, int axis, int64_t out,
                                            int32_t in) {
    const int64_t dilation = row->dilation[axis];
    const int64_t kernel = row->kernel[axis];
    struct n8_window w = {.start = out * row->stride[axis] - row->pad[axis]};
    if (w.start >= 0 && w.start + (kernel - 1) * dilation < in) { // all inside: no divisions
        w.to = kernel;
        w.count = kernel;
        return w;
    }
    w.from = w.start < 0 ? (-w.start + dilation - 1) / dilation : 0;
    w.to = w.start < in ? (in - 1 - w.start) / dilation + 1 : 0;
    w.to = w.to > kernel ? kernel : w.to;
    w.count = w.to - w.from;
    if (row->flags & N8_OP_COUNT_PAD) { // the taps up to the end of the padding, none beyond
        const int64_t end = (in + row->pad_end[axis] - 1 - w.start) / dilation + 1;
        w.count = end > kernel ? kernel : end;
    }
    return w;
}

#endif // N8_WINDOW_H
