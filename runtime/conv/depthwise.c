// SPDX-License-Identifier: Apache-2.0
//
// Depthwise layers: a kernel runs over all channels of a row of outputs, or of two. Where a channel
// of the input has several of the output, the kernel sees a copy with each as often.
#include "algorithm.h"

#include <string.h>

enum {
    COPIES_BYTES = 131072, // of copied rows at the border, which stay in a second-level cache
    ROW_WORTH = 32,        // columns, which are copied as fast as a pixel at the border is run
};

size_t n8_depthwise_window(const struct n8_conv2d_shape *s, size_t pixels) {
    const size_t span = n8_mul((size_t)(s->kernel_width - 1), (size_t)s->dilation_width);
    return n8_add(n8_add(n8_mul(pixels - 1, (size_t)s->stride_width), span), 1);
}

N8_ONCE void n8_depthwise_fit(struct n8_conv *conv, size_t block, size_t column) {
    struct n8_depthwise_plan *plan = &conv->depthwise;
    plan->block = block;
    plan->window = n8_depthwise_window(&conv->shape, block);
    while (plan->block > 1 && n8_mul(plan->window, column) > COPIES_BYTES) {
        plan->whole_rows = false;
        plan->block = (plan->block + 1) / 2;
        plan->window = n8_depthwise_window(&conv->shape, plan->block);
    }
}

// The channels of the output, and of the input that a kernel sees.
static size_t channels_of(const struct n8_conv *conv) {
    return n8_round_up((size_t)conv->shape.out_channels, N8_PIXEL);
}

// The rows that a unit of outputs sees.
static size_t rows_seen(const struct n8_conv *conv) {
    const size_t beyond = (size_t)(conv->row->outputs - 1) * (size_t)conv->row->ratio;
    return n8_add((size_t)conv->shape.kernel_height, beyond);
}

// Units of one image.
static size_t units_of(const struct n8_conv *conv) {
    return n8_pieces((size_t)conv->shape.out_height, (size_t)conv->row->outputs);
}

// How far the last window reaches beyond the last column, or less than 1.
static int64_t beyond_right(const struct n8_conv2d_shape *s) {
    const int64_t span = (int64_t)(s->kernel_width - 1) * s->dilation_width;
    return (int64_t)(s->out_width - 1) * s->stride_width + span - s->pad_left - (s->in_width - 1);
}

// Outputs whose whole window lies between the left and the right edge, but for padding that the
// kernel knows: [*from, *to).
static void find_inside(const struct n8_conv *conv, int64_t *from, int64_t *to) {
    const struct n8_conv2d_shape *s = &conv->shape;
    if (conv->group_out > 1) { // the kernel sees copies only
        *from = *to = 0;
        return;
    }
    const int64_t span = (int64_t)(s->kernel_width - 1) * s->dilation_width;
    const int64_t last = s->in_width - 1 - span + s->pad_left; // the last start, padding included
    const bool knows_left = conv->row->outputs == 2 && s->pad_left <= s->dilation_width;
    *from = knows_left ? 0 : (s->pad_left + s->stride_width - 1) / s->stride_width;
    *to = last < 0 ? 0 : last / s->stride_width + 1;
    *to = *to > s->out_width ? s->out_width : *to;
    *to = *to < *from ? *from : *to;
    *from = *from > s->out_width ? s->out_width : *from;
    *to = *to > s->out_width ? s->out_width : *to;
    if (conv->row->outputs == 2 && conv->row->ratio == 1 && beyond_right(s) <= s->dilation_width) {
        *to = s->out_width;
    }
}

// A border of fewer outputs than a kernel computes at once is no less work than that many.
static void widen_border(const struct n8_conv *conv, int64_t *from, int64_t *to) {
    const int64_t width = conv->shape.out_width;
    const int64_t once = conv->row->outputs == 2 ? 2 : 4;
    if (*from > 0 && *from < once) {
        *from = once < width ? once : width;
    }
    if (*to < width && width - *to < once) {
        *to = width - once;
    }
    *to = *to < *from ? *from : *to;
}

// Pixels at the border see a copy of the input with its padding. Whole rows are copied, once for
// all rows of outputs that see them, where that is less work than a copy and a call of the kernel
// at either end of each.
static N8_ONCE void plan_border(struct n8_conv *conv) {
    const struct n8_conv2d_shape *s = &conv->shape;
    int64_t from = 0;
    int64_t to = 0;
    find_inside(conv, &from, &to);
    const int64_t right = s->out_width - to;
    const int64_t copied = (int64_t)s->stride_height * s->in_width; // for each row of outputs
    conv->depthwise.whole_rows = from == to || copied <= ROW_WORTH * (from + right);
    widen_border(conv, &from, &to);
    const int64_t wider = from > s->out_width - to ? from : s->out_width - to;
    // Without a border, copies are for rows of padding beside an input that is not dense.
    n8_depthwise_fit(conv,
                     (size_t)(conv->depthwise.whole_rows || wider == 0 ? s->out_width : wider),
                     n8_mul(rows_seen(conv), channels_of(conv)));
}

void n8_conv_plan_depthwise(struct n8_conv *conv, const struct n8_kernels *kernels,
                            const struct n8_conv_certificate *certificate) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t channels = channels_of(conv);
    const size_t height = rows_seen(conv);
    conv->groups = 1;
    conv->group_entries = n8_mul(n8_pieces(channels, conv->row->block), conv->row->block);
    conv->group_weights = n8_mul(conv->taps, conv->group_entries);
    conv->units = n8_mul((size_t)s->batch, units_of(conv));
    plan_border(conv);
    // A row of padding, the copies, which row each of them is, and the row pointers.
    const size_t width = conv->depthwise.whole_rows ? 0 : (size_t)s->in_width;
    const size_t padding = width > conv->depthwise.window ? width : conv->depthwise.window;
    const size_t copies =
        n8_add(n8_mul(n8_mul(height, conv->depthwise.window), channels), N8_SLACK);
    const size_t rows = n8_mul(height, sizeof(int64_t) + sizeof(int8_t *));
    conv->depthwise.padding_size = n8_add(n8_mul(padding, channels), N8_SLACK);
    conv->scratch_size = n8_add(n8_add(n8_round_up(conv->depthwise.padding_size, N8_CONV_ALIGN),
                                       n8_round_up(copies, N8_CONV_ALIGN)),
                                rows);
}

// [C][taps] to [C / block][taps][block].
void n8_conv_pack_depthwise(const struct n8_conv *conv, const int8_t *weights, void *memory) {
    int8_t *out = memory;
    const size_t channels = (size_t)conv->shape.out_channels;
    const size_t block = conv->row->block;
    for (size_t c = 0; c < channels; c++) {
        int8_t *to = out + c / block * conv->taps * block + c % block;
        for (size_t t = 0; t < conv->taps; t++) {
            to[t * block] = weights[c * conv->taps + t];
        }
    }
}

struct depthwise {
    const struct n8_conv *conv;
    const struct n8_conv_io *io;
    int8_t *padding;     // a row of zero points
    int8_t *copies;      // [seen][window][channels]
    int64_t *held;       // [seen]: whole rows: the row of the batch that is there, or -1
    const int8_t **rows; // [seen]
    int32_t seen;        // rows by a unit
    struct n8_depthwise_args args;
};

// `count` bytes, each `times`: 2 is what networks have, or one channel as often as they like.
static void repeat(const int8_t *in, size_t count, size_t times, int8_t *to) {
    size_t c = 0;
    for (; times == 2 && c + 4 <= count; c += 4) {
        uint32_t four;
        memcpy(&four, in + c, sizeof four);
        uint64_t wide = four;
        wide = (wide | wide << 16) & UINT64_C(0x0000ffff0000ffff);
        wide = (wide | wide << 8) & UINT64_C(0x00ff00ff00ff00ff);
        wide |= wide << 8;
        memcpy(to + 2 * c, &wide, sizeof wide);
    }
    for (to += c * times; c < count; c++, to += times) {
        const uint64_t eight = (uint8_t)in[c] * UINT64_C(0x0101010101010101);
        size_t t = 0;
        for (; t + sizeof eight <= times; t += sizeof eight) {
            memcpy(to + t, &eight, sizeof eight);
        }
        for (; t < times; t++) {
            to[t] = in[c];
        }
    }
}

// Copies `pixels` of the input to what the kernel sees, with its padding of channels.
static void copy_pixels(const struct depthwise *d, const int8_t *in, size_t pixels, int8_t *to) {
    const size_t channels = d->args.channels;
    const size_t count = (size_t)d->conv->shape.in_channels;
    const size_t times = d->conv->group_out;
    if (times == 1 && d->io->in_stride == (ptrdiff_t)channels) {
        memcpy(to, in, pixels * channels);
        return;
    }
    for (size_t i = 0; i < pixels; i++, in += d->io->in_stride, to += channels) {
        if (times == 1) {
            memcpy(to, in, channels);
            continue;
        }
        memset(to + channels - N8_PIXEL, 0, N8_PIXEL);
        repeat(in, count, times, to);
    }
}

// Copies row `y` of the image, of which columns [x, x + window) are seen, into `to`.
static void copy_padded(const struct depthwise *d, const int8_t *image, int64_t y, int64_t x,
                        size_t window, int8_t *to) {
    const struct n8_conv2d_shape *s = &d->conv->shape;
    const size_t channels = d->args.channels;
    const int64_t end = x + (int64_t)window;
    const int64_t from = x < 0 ? 0 : x;
    const int64_t stop = end > s->in_width ? s->in_width : end;
    if (from >= stop) {
        memset(to, d->conv->in_zero_point, window * channels);
        return;
    }
    const int8_t *in = image + (ptrdiff_t)(y * s->in_width + from) * d->io->in_stride;
    const size_t left = (size_t)(from - x) * channels;
    const size_t inside = (size_t)(stop - from);
    memset(to, d->conv->in_zero_point, left);
    to += left;
    copy_pixels(d, in, inside, to);
    memset(to + inside * channels, d->conv->in_zero_point, (size_t)(end - stop) * channels);
}

// The kernel, apart for blocks of channels of which (5d) is proved and those between. Moves the
// rows.
static void run_kernel(struct depthwise *d) {
    const struct n8_conv *conv = d->conv;
    if (conv->start == NULL || !conv->mixed) {
        conv->row->depthwise(&d->args);
        return;
    }
    const struct n8_depthwise_args all = d->args;
    const size_t block = conv->row->block;
    size_t some = block;
    for (size_t c = 0; c < all.channels; c += some, some = block) {
        const bool fused = conv->start[c] != 0;
        while (c + some < all.channels && (conv->start[c + some] != 0) == fused) {
            some += block;
        }
        d->args.channels = n8_smaller(some, all.channels - c);
        d->args.out = all.out + c;
        d->args.weights = all.weights + c * conv->taps;
        d->args.bias = all.bias + c;
        d->args.start = fused ? all.start + c : NULL;
        d->args.multiplier = all.multiplier + c;
        d->args.addend = all.addend + c;
        conv->row->depthwise(&d->args);
        for (int32_t ky = 0; ky < d->seen; ky++) {
            d->rows[ky] += d->args.channels;
        }
    }
    d->args = all;
}

// Outputs [from, to) of a unit whose windows may leave the image: what they see is copied, with
// padding. Where a copy is a whole row, it also serves the next unit.
static void run_border(struct depthwise *d, size_t n, int64_t oy, int64_t from, int64_t to) {
    const struct n8_conv *conv = d->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const int8_t *image = d->io->in + (ptrdiff_t)n * s->in_height * s->in_width * d->io->in_stride;
    const ptrdiff_t out_row = (ptrdiff_t)n * s->out_height + (ptrdiff_t)oy;
    const size_t channels = d->args.channels;
    d->args.tap_stride = n8_strides((ptrdiff_t)channels, s->dilation_width);
    d->args.step = n8_strides((ptrdiff_t)channels, s->stride_width);
    d->args.left = 0;
    d->args.right = 0;
    for (int64_t ox = from; ox < to; ox += (int64_t)conv->depthwise.block) {
        const int64_t rest = to - ox;
        d->args.pixels =
            rest < (int64_t)conv->depthwise.block ? (size_t)rest : conv->depthwise.block;
        const size_t window = n8_depthwise_window(s, d->args.pixels);
        const int64_t x = n8_tap_at(ox, s->stride_width, 0, s->dilation_width, s->pad_left);
        for (int32_t ky = 0; ky < d->seen; ky++) {
            const int64_t y = n8_tap_at(oy, s->stride_height, ky, s->dilation_height, s->pad_top);
            if (y < 0 || y >= s->in_height) {
                d->rows[ky] = d->padding;
                continue;
            }
            const int64_t row = (int64_t)n * s->in_height + y;
            const int64_t slot = s->dilation_height == 1 ? y % d->seen : ky;
            int8_t *copy = d->copies + (size_t)slot * conv->depthwise.window * channels;
            d->rows[ky] = copy;
            if (!conv->depthwise.whole_rows || d->held[slot] != row) {
                copy_padded(d, image, y, x, window, copy);
                d->held[slot] = row;
            }
        }
        d->args.out = (int8_t *)d->io->out + (out_row * s->out_width + ox) * d->io->out_stride;
        run_kernel(d);
    }
}

// Outputs [from, to) of a unit whose windows leave the image above or below at most.
static void run_inner(struct depthwise *d, size_t n, int64_t oy, int64_t from, int64_t to) {
    const struct n8_conv2d_shape *s = &d->conv->shape;
    const int8_t *image = d->io->in + (ptrdiff_t)n * s->in_height * s->in_width * d->io->in_stride;
    const ptrdiff_t out_row = (ptrdiff_t)n * s->out_height + (ptrdiff_t)oy;
    d->args.left = from == 0 && s->pad_left > 0;
    d->args.right = to == s->out_width && beyond_right(s) > 0;
    const int64_t x =
        n8_tap_at(from, s->stride_width, d->args.left, s->dilation_width, s->pad_left);
    for (int32_t ky = 0; ky < d->seen; ky++) {
        const int64_t y = n8_tap_at(oy, s->stride_height, ky, s->dilation_height, s->pad_top);
        d->rows[ky] = y >= 0 && y < s->in_height
                          ? image + (ptrdiff_t)(y * s->in_width + x) * d->io->in_stride
                          : d->padding;
    }
    d->args.tap_stride = n8_strides(d->io->in_stride, s->dilation_width);
    d->args.step = n8_strides(d->io->in_stride, s->stride_width);
    d->args.pixels = (size_t)(to - from);
    d->args.out = (int8_t *)d->io->out + (out_row * s->out_width + from) * d->io->out_stride;
    run_kernel(d);
}

void n8_conv_run_depthwise(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin,
                           size_t end, void *scratch) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t channels = channels_of(conv);
    const size_t height = rows_seen(conv);
    const size_t copies = height * conv->depthwise.window * channels + N8_SLACK;
    struct depthwise d = {.conv = conv, .io = io, .padding = scratch, .seen = (int32_t)height};
    d.copies = d.padding + n8_round_up(conv->depthwise.padding_size, N8_CONV_ALIGN);
    d.held = (int64_t *)(void *)(d.copies + n8_round_up(copies, N8_CONV_ALIGN));
    d.rows = (const int8_t **)(void *)(d.held + height);
    d.args = (struct n8_depthwise_args){
        .out_stride = io->out_stride,
        .rows = d.rows,
        .weights = conv->weights,
        .channels = channels,
        .bias = e->bias,
        .start = conv->start,
        .multiplier = e->multiplier,
        .slope = e->slope,
        .addend = e->bias_f32,
        .block = conv->row->block,
        .small = conv->small == (N8_SMALL_RESULTS | N8_SMALL_SUMS),
        .zero_point = e->zero_point,
        .lo = e->lo,
        .hi = e->hi,
        .kernel_height = s->kernel_height,
        .kernel_width = s->kernel_width,
        .outputs = conv->row->outputs,
        .in_zero_point = conv->in_zero_point,
    };
    memset(d.padding, conv->in_zero_point, conv->depthwise.padding_size);
    for (size_t ky = 0; ky < height; ky++) {
        d.held[ky] = -1;
    }

    int64_t from = 0;
    int64_t to = 0;
    find_inside(conv, &from, &to);
    widen_border(conv, &from, &to);
    // The row of padding has the stride of a dense tensor.
    const bool dense = io->in_stride == (ptrdiff_t)channels;
    const size_t units = units_of(conv);
    for (size_t unit = begin; unit < end; unit++) {
        const int64_t oy = (int64_t)(unit % units) * conv->row->outputs;
        const size_t n = unit / units;
        const int64_t top = n8_tap_at(oy, s->stride_height, 0, s->dilation_height, s->pad_top);
        const int64_t bottom =
            n8_tap_at(oy, s->stride_height, d.seen - 1, s->dilation_height, s->pad_top);
        // A row of the last unit may lie below the image.
        const bool whole = oy + conv->row->outputs <= s->out_height;
        d.args.out_row_stride = whole ? s->out_width * io->out_stride : 0;
        const bool inner = to > from && (dense || (top >= 0 && bottom < s->in_height));
        if (conv->depthwise.whole_rows || !inner) {
            run_border(&d, n, oy, 0, s->out_width);
            continue;
        }
        run_border(&d, n, oy, 0, from);
        run_inner(&d, n, oy, from, to);
        run_border(&d, n, oy, to, s->out_width);
    }
}
