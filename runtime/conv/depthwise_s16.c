// SPDX-License-Identifier: Apache-2.0
//
// Depthwise layers that read or make int16, or have such weights. The kernel sees a copy of the
// rows under an output row, as int16, with their padding and, where a channel of the input has
// several of the output, each as often; a row that the next output row sees, too, is copied once.
#include "algorithm.h"

#include "move/widen.h"

#include <string.h>

enum {
    ACC_BYTES = 8192
}; // of accumulators that stay in a first-level cache until they are outputs

static size_t channels_of(const struct n8_conv *conv) {
    return n8_round_up((size_t)conv->shape.out_channels, N8_PIXEL);
}

// Outputs whose accumulators are made at once.
static size_t piece_of(const struct n8_conv *conv) {
    const size_t fit = ACC_BYTES / sizeof(int32_t) / channels_of(conv);
    return fit < 1 ? 1 : fit < conv->depthwise.block ? fit : conv->depthwise.block;
}

// Parts of a thread's scratch memory, once the sizes are known not to overflow.
struct parts {
    size_t copies, acc, held, rows, size;
};

static struct parts parts_of(const struct n8_conv *conv) {
    const size_t height = (size_t)conv->shape.kernel_height, channels = channels_of(conv);
    const size_t row = n8_mul(n8_mul(conv->depthwise.window, channels), sizeof(int16_t));
    struct parts parts = {.copies = n8_round_up(row, N8_CONV_ALIGN)}; // after a row of padding
    parts.acc = n8_add(parts.copies, n8_round_up(n8_mul(height, row), N8_CONV_ALIGN));
    parts.held = n8_add(parts.acc, n8_mul(n8_mul(piece_of(conv), channels), sizeof(int32_t)));
    parts.rows = n8_add(parts.held, n8_mul(height, sizeof(int64_t)));
    parts.size = n8_add(parts.rows, n8_mul(height, sizeof(int16_t *)));
    return parts;
}

void n8_conv_plan_depthwise_s16(struct n8_conv *conv, const struct n8_kernels *kernels,
                                const struct n8_conv_certificate *certificate) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t channels = channels_of(conv);
    conv->groups = 1;
    conv->group_entries = channels;
    conv->group_weights = n8_mul(n8_mul(conv->taps, channels), sizeof(int16_t));
    conv->units = n8_mul((size_t)s->batch, (size_t)s->out_height);
    conv->depthwise.kernel = kernels->depthwise_s16_s32;
    conv->depthwise.whole_rows = true;
    n8_depthwise_fit(conv, (size_t)s->out_width,
                     n8_mul(n8_mul((size_t)s->kernel_height, channels), sizeof(int16_t)));
    conv->scratch_size = parts_of(conv).size;
}

// [C][taps] to [C / 8][taps][8].
void n8_conv_pack_depthwise_s16(const struct n8_conv *conv, const int8_t *weights, void *memory) {
    int16_t *out = memory;
    for (size_t c = 0; c < (size_t)conv->shape.out_channels; c++) {
        int16_t *to = out + c / N8_PIXEL * conv->taps * N8_PIXEL + c % N8_PIXEL;
        for (size_t t = 0; t < conv->taps; t++) {
            to[t * N8_PIXEL] = n8_load_weight(conv, weights, c * conv->taps + t);
        }
    }
}

struct depthwise {
    const struct n8_conv *conv;
    const struct n8_conv_io *io;
    int16_t *padding;     // a row of zero points
    int16_t *copies;      // [kernel_height][window][channels]
    int64_t *held;        // [kernel_height]: whole rows: the row of the batch that is there, or -1
    const int16_t **rows; // [kernel_height]
    size_t channels, piece;
    struct n8_depthwise_s16_args args;
};

static void fill(int16_t *to, int32_t value, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[i] = (int16_t)value;
    }
}

// The channels of a pixel, each as often as it has outputs.
static void copy_pixel(const struct depthwise *d, const uint8_t *in, int16_t *to) {
    const struct n8_conv *conv = d->conv;
    const size_t count = (size_t)conv->shape.in_channels, times = conv->group_out;
    if (times == 1) {
        n8_widen(to, in, count, conv->in_type);
        return;
    }
    for (size_t c = 0; c < count; c++) {
        int16_t value;
        n8_widen(&value, in + c * (conv->in_type == N8_TYPE_S16 ? sizeof value : 1), 1,
                 conv->in_type);
        fill(to + c * times, value, times);
    }
}

// Columns [x, x + window) of row `y` of the image.
static void copy_row(const struct depthwise *d, const uint8_t *image, int64_t y, int64_t x,
                     size_t window, int16_t *to) {
    const struct n8_conv2d_shape *s = &d->conv->shape;
    const int64_t end = x + (int64_t)window;
    for (; x < end; x++, to += d->channels) {
        if (x < 0 || x >= s->in_width) {
            fill(to, d->conv->in_zero_point, d->channels);
        } else {
            copy_pixel(d, image + (ptrdiff_t)(y * s->in_width + x) * d->io->in_stride, to);
        }
    }
}

// What the outputs [ox, ox + count) of a row see.
static void copy_rows(struct depthwise *d, size_t n, int64_t oy, int64_t ox, size_t count) {
    const struct n8_conv2d_shape *s = &d->conv->shape;
    const size_t area = (size_t)s->in_height * (size_t)s->in_width;
    const uint8_t *image = (const uint8_t *)d->io->in + (ptrdiff_t)(n * area) * d->io->in_stride;
    const int64_t x = n8_tap_at(ox, s->stride_width, 0, s->dilation_width, s->pad_left);
    for (int32_t ky = 0; ky < s->kernel_height; ky++) {
        const int64_t y = n8_tap_at(oy, s->stride_height, ky, s->dilation_height, s->pad_top);
        if (y < 0 || y >= s->in_height) {
            d->rows[ky] = d->padding;
            continue;
        }
        const int64_t row = (int64_t)n * s->in_height + y;
        const int64_t slot = s->dilation_height == 1 ? y % s->kernel_height : ky;
        int16_t *copy = d->copies + (size_t)slot * d->conv->depthwise.window * d->channels;
        d->rows[ky] = copy;
        if (!d->conv->depthwise.whole_rows || d->held[slot] != row) {
            copy_row(d, image, y, x, n8_depthwise_window(s, count), copy);
            d->held[slot] = row;
        }
    }
}

// The outputs of a row of which everything is copied, `count` from pixel `pixel` on.
static void run_pieces(struct depthwise *d, size_t pixel, size_t count) {
    const struct n8_conv *conv = d->conv;
    struct n8_conv_accumulators it = {
        .acc = d->args.sums,
        .stride = (ptrdiff_t)(d->channels * sizeof(int32_t)),
        .channels = (size_t)conv->shape.out_channels,
    };
    for (size_t done = 0; done < count; done += it.pixels) {
        it.pixel = pixel + done;
        it.pixels = count - done < d->piece ? count - done : d->piece;
        d->args.pixels = it.pixels;
        conv->depthwise.kernel(&d->args);
        n8_conv_output(conv, d->io, &it);
        for (int32_t ky = 0; ky < conv->shape.kernel_height; ky++) {
            d->rows[ky] += (ptrdiff_t)it.pixels * d->args.step / (ptrdiff_t)sizeof(int16_t);
        }
    }
}

void n8_conv_run_depthwise_s16(const struct n8_conv *conv, const struct n8_conv_io *io,
                               size_t begin, size_t end, void *memory) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const struct parts parts = parts_of(conv);
    uint8_t *scratch = memory;
    struct depthwise d = {
        .conv = conv,
        .io = io,
        .padding = memory,
        .copies = (int16_t *)(void *)(scratch + parts.copies),
        .held = (int64_t *)(void *)(scratch + parts.held),
        .rows = (const int16_t **)(void *)(scratch + parts.rows),
        .channels = channels_of(conv),
        .piece = piece_of(conv),
    };
    const size_t pixel = d.channels * sizeof(int16_t);
    d.args = (struct n8_depthwise_s16_args){
        .sums = (int32_t *)(void *)(scratch + parts.acc),
        .rows = d.rows,
        .weights = (const int16_t *)(const void *)conv->weights,
        .bias = conv->epilogue.bias,
        .tap_stride = n8_strides((ptrdiff_t)pixel, s->dilation_width),
        .step = n8_strides((ptrdiff_t)pixel, s->stride_width),
        .channels = d.channels,
        .kernel_height = (size_t)s->kernel_height,
        .kernel_width = (size_t)s->kernel_width,
    };
    fill(d.padding, conv->in_zero_point, conv->depthwise.window * d.channels);
    memset(d.copies, 0, parts.acc - parts.copies); // the channels that pad a pixel
    for (int32_t ky = 0; ky < s->kernel_height; ky++) {
        d.held[ky] = -1;
    }
    for (size_t unit = begin; unit < end; unit++) {
        const size_t n = unit / (size_t)s->out_height, oy = unit % (size_t)s->out_height;
        const size_t first = unit * (size_t)s->out_width;
        for (size_t ox = 0; ox < (size_t)s->out_width; ox += conv->depthwise.block) {
            const size_t rest = (size_t)s->out_width - ox;
            const size_t count = rest < conv->depthwise.block ? rest : conv->depthwise.block;
            copy_rows(&d, n, (int64_t)oy, (int64_t)ox, count);
            run_pieces(&d, first + ox, count);
        }
    }
}
