// SPDX-License-Identifier: Apache-2.0
//
// Windows of convolutions and pools: which of their taps lie inside the input.
#ifndef N8_WINDOW_H
#define N8_WINDOW_H

#include "step.h"

enum { N8_MAX_TAPS = 1 << 23 }; // 2^23 * 255 < 2^31: the sum of an average pool fits int32

// True if every window along one axis has a tap inside the input. A file may ask this of
// thousands of axes of a million windows each, so the windows are not looked at one by one.
static inline bool n8_pool_covers(const struct n8_file_op *row, int axis, int32_t in, int32_t out) {
    const int64_t stride = row->stride[axis];
    const int64_t dilation = row->dilation[axis];
    const int64_t pad = row->pad[axis];
    if ((pad + dilation - 1) / dilation >= row->kernel[axis] || (out - 1) * stride - pad >= in) {
        return false; // the first window ends before the input, or the last starts after it
    }
    // Windows that start in the padding: of those that share their first tap inside, the last
    // has it deepest. Their depths repeat after `dilation` windows.
    const int64_t starts = (pad + stride - 1) / stride;
    const int64_t count = starts < out ? starts : out;
    for (int64_t o = 0; o < count && o < dilation; o++) {
        const int64_t tap = (pad - o * stride + dilation - 1) / dilation;
        const int64_t last = (pad - (tap - 1) * dilation - 1) / stride;
        o = last < count ? last : count - 1;
        if (o * stride - pad + tap * dilation >= in) {
            return false;
        }
    }
    return true;
}

static inline enum n8_status n8_check_pool(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (in->dims[0] != out->dims[0] || in->dims[1] != out->dims[1]) {
        return n8_malformed(reader, "its output has another batch or channels");
    }
    if ((int64_t)row->kernel[0] * row->kernel[1] > N8_MAX_TAPS) {
        return n8_malformed(reader, "its window has more than 2^23 taps");
    }
    if (!n8_pool_covers(row, 0, in->dims[2], out->dims[2]) ||
        !n8_pool_covers(row, 1, in->dims[3], out->dims[3])) {
        return n8_malformed(reader, "a window has no tap inside the input");
    }
    return N8_OK;
}

// A convolution: every output pixel's window lies where stride and padding put it, and none is
// left out.
static inline bool n8_conv_covers(const struct n8_file_op *row, int axis, int32_t in, int32_t out) {
    const int64_t span = (int64_t)row->dilation[axis] * (row->kernel[axis] - 1) + 1;
    const int64_t room = (int64_t)in + row->pad[axis] + row->pad_end[axis] - span;
    return room >= 0 && room / row->stride[axis] + 1 == out;
}

// Groups and sizes of a convolution.
static inline enum n8_status n8_check_conv(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (row->groups < 1 || in->dims[1] % row->groups != 0 || out->dims[1] % row->groups != 0) {
        return n8_malformed(reader, "its groups do not divide its channels");
    }
    if (in->dims[0] != out->dims[0] || !n8_conv_covers(row, 0, in->dims[2], out->dims[2]) ||
        !n8_conv_covers(row, 1, in->dims[3], out->dims[3])) {
        return n8_malformed(reader, "its output is not as large as it must be");
    }
    return N8_OK;
}

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
