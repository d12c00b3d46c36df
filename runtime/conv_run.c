// SPDX-License-Identifier: Apache-2.0
#include "conv.h"

#include "size.h"

#include <string.h>

// Where one tap of a window falls.
static inline int64_t tap_at(int64_t out, int32_t stride, int32_t tap, int32_t dilation,
                             int32_t pad) {
    return out * stride + (int64_t)tap * dilation - pad;
}

// Implicit GEMM ------------------------------------------------------------------------

// What a unit of implicit GEMM works on: pixels [first, first + count) of an image, and one
// slice of the channels or all of them.
struct igemm {
    const struct n8_conv *conv;
    const struct n8_conv_io *io;
    int8_t *windows;       // copied, or
    const int8_t *padding; // the row of zero points that stands for all outside the image
    const int8_t **table;
    int8_t *packed; // the rows that the table names, where the kernel wants them so
    size_t pointed; // the block and group that the table and the packed rows belong to
    int32_t *sums;  // [count][channels], where they are requantized in integers
    size_t image, first, count;
};

// Writes the pointers of one output pixel, whose window begins at row y0 and column x0, one for
// each tap, mr entries apart.
static void point_pixel(const struct igemm *it, const int8_t *image, int64_t y0, int64_t x0,
                        const int8_t **table) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t mr = it->conv->row->tile.mr;
    for (int32_t ky = 0; ky < s->kernel_height; ky++) {
        const int64_t y = y0 + (int64_t)ky * s->dilation_height;
        const bool row_inside = y >= 0 && y < s->in_height;
        for (int32_t kx = 0; kx < s->kernel_width; kx++, table += mr) {
            const int64_t x = x0 + (int64_t)kx * s->dilation_width;
            *table = row_inside && x >= 0 && x < s->in_width
                         ? image + (ptrdiff_t)(y * s->in_width + x) * it->io->in_stride
                         : it->padding;
        }
    }
}

// The same for a tile of pixels whose windows lie inside the image, `at` bytes from its beginning.
static void point_tile(const struct igemm *it, const int8_t *image, const ptrdiff_t *at,
                       const int8_t **table) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t mr = it->conv->row->tile.mr;
    const ptrdiff_t across = s->dilation_width * it->io->in_stride;
    const ptrdiff_t down = (ptrdiff_t)s->dilation_height * s->in_width * it->io->in_stride;
    for (int32_t ky = 0; ky < s->kernel_height; ky++) {
        const int8_t *tap = image + ky * down;
        for (int32_t kx = 0; kx < s->kernel_width; kx++, table += mr, tap += across) {
            for (size_t m = 0; m < mr; m++) {
                table[m] = tap + at[m];
            }
        }
    }
}

// Copies `count` channels of one tap; up to 8 bytes are read and written.
static inline void copy_tap(int8_t *to, const int8_t *from, size_t count) {
    if (count <= 4) {
        memcpy(to, from, 4);
    } else {
        memcpy(to, from, 8);
    }
}

// A row of a window inside the image. The bytes that a tap writes beyond its channels are those
// of the next one.
static inline int8_t *copy_row(int8_t *to, const int8_t *from, int32_t taps, ptrdiff_t across,
                               size_t channels) {
#pragma GCC unroll 4
    for (int32_t kx = 0; kx < taps; kx++, from += across, to += channels) {
        copy_tap(to, from, channels);
    }
    return to;
}

// A tap after the other of the window that begins at row y0 and column x0.
static void copy_window(const struct igemm *it, const int8_t *image, int64_t y0, int64_t x0,
                        int8_t *to) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t channels = (size_t)(s->in_channels / s->groups);
    for (int32_t ky = 0; ky < s->kernel_height; ky++) {
        const int64_t y = y0 + (int64_t)ky * s->dilation_height;
        for (int32_t kx = 0; kx < s->kernel_width; kx++, to += channels) {
            const int64_t x = x0 + (int64_t)kx * s->dilation_width;
            if (y >= 0 && y < s->in_height && x >= 0 && x < s->in_width) {
                copy_tap(to, image + (ptrdiff_t)(y * s->in_width + x) * it->io->in_stride,
                         channels);
            } else {
                memset(to, it->conv->in_zero_point, channels);
            }
        }
    }
}

// The same of a window inside the image, `at` bytes from its beginning.
static void copy_inner_window(const struct igemm *it, const int8_t *image, ptrdiff_t at,
                              int8_t *to) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t channels = (size_t)(s->in_channels / s->groups);
    const ptrdiff_t across = s->dilation_width * it->io->in_stride;
    const ptrdiff_t down = (ptrdiff_t)s->dilation_height * s->in_width * it->io->in_stride;
    const int8_t *from = image + at;
    for (int32_t ky = 0; ky < s->kernel_height; ky++, from += down) {
        // The usual distances as constants, for speed; nothing depends on it.
        if (across == N8_PIXEL && channels == 3) {
            to = copy_row(to, from, s->kernel_width, N8_PIXEL, 3);
        } else if (across == N8_PIXEL && channels == 1) {
            to = copy_row(to, from, s->kernel_width, N8_PIXEL, 1);
        } else {
            to = copy_row(to, from, s->kernel_width, across, channels);
        }
    }
}

// Whether output pixel i reads input pixel i and no other.
static bool is_pointwise(const struct n8_conv2d_shape *s) {
    return s->kernel_height == 1 && s->kernel_width == 1 && s->stride_height == 1 &&
           s->stride_width == 1 && s->pad_top == 0 && s->pad_left == 0 &&
           s->out_width == s->in_width && s->out_height <= s->in_height;
}

// The pointer table of such a layer's unit; the last tile repeats the last pixel.
static void point_pixels(const struct igemm *it, const int8_t *image) {
    const size_t mr = it->conv->row->tile.mr;
    const size_t end = n8_pieces(it->count, mr) * mr;
    const int8_t *pixel = image + (ptrdiff_t)it->first * it->io->in_stride;
    for (size_t p = 0; p < it->count; p++, pixel += it->io->in_stride) {
        it->table[p] = pixel;
    }
    for (size_t p = it->count; p < end; p++) {
        it->table[p] = it->table[it->count - 1];
    }
}

// Writes the pointer table of a unit; the last tile repeats the last pixel.
static void point_unit(const struct igemm *it, const int8_t *image) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t mr = conv->row->tile.mr;
    const int64_t last_y = s->in_height - 1 - (int64_t)(s->kernel_height - 1) * s->dilation_height;
    const int64_t last_x = s->in_width - 1 - (int64_t)(s->kernel_width - 1) * s->dilation_width;
    int64_t oy = (int64_t)it->first / s->out_width, ox = (int64_t)it->first % s->out_width;
    for (size_t p = 0; p < it->count; p += mr) {
        int64_t y[N8_MAX_MR], x[N8_MAX_MR];
        ptrdiff_t at[N8_MAX_MR];
        bool inside = true;
        for (size_t m = 0; m < mr; m++) {
            y[m] = tap_at(oy, s->stride_height, 0, s->dilation_height, s->pad_top);
            x[m] = tap_at(ox, s->stride_width, 0, s->dilation_width, s->pad_left);
            at[m] = (ptrdiff_t)(y[m] * s->in_width + x[m]) * it->io->in_stride;
            inside = inside && y[m] >= 0 && y[m] <= last_y && x[m] >= 0 && x[m] <= last_x;
            if (p + m + 1 < it->count && ++ox == s->out_width) {
                ox = 0;
                oy++;
            }
        }
        const int8_t **table = it->table + p * conv->taps;
        for (size_t m = 0; conv->unfolded && m < mr; m++) {
            int8_t *to = it->windows + (p + m) * conv->window;
            table[m] = to;
            if (inside) {
                copy_inner_window(it, image, at[m], to);
            } else {
                copy_window(it, image, y[m], x[m], to);
            }
        }
        if (conv->unfolded) {
            continue;
        }
        if (inside) {
            point_tile(it, image, at, table);
            continue;
        }
        for (size_t m = 0; m < mr; m++) {
            point_pixel(it, image, y[m], x[m], table + m);
        }
    }
}

// One tap of a tile of rows, `kr` bytes of each at a time.
static inline int8_t *pack_tap(int8_t *to, const int8_t *const *rows, size_t depth, size_t mr,
                               size_t kr) {
    const int8_t *from[N8_MAX_MR];
#pragma GCC unroll 8
    for (size_t m = 0; m < mr; m++) {
        from[m] = rows[m];
    }
    for (size_t k = 0; k < depth; k += kr) {
#pragma GCC unroll 8
        for (size_t m = 0; m < mr; m++, to += kr) {
            memcpy(to, from[m] + k, kr);
        }
    }
    return to;
}

// Packs the rows of a unit's table, and leaves in the table where they are.
static void pack_rows(const struct igemm *it) {
    const struct n8_conv *conv = it->conv;
    const struct n8_tile *tile = &conv->row->tile;
    const size_t tiles = n8_pieces(it->count, tile->mr);
    int8_t *to = it->packed;
    for (size_t i = 0; i < tiles * conv->taps; i++) {
        const int8_t *const *rows = it->table + i * tile->mr;
        // The usual geometry as constants, for speed; nothing depends on it.
        to = tile->mr == 8 && tile->kr == 8 ? pack_tap(to, rows, conv->depth, 8, 8)
                                            : pack_tap(to, rows, conv->depth, tile->mr, tile->kr);
    }
    it->table[0] = it->packed;
}

// (10) of the sums of a unit.
static void requantize(const struct igemm *it, int8_t *out, size_t channels, size_t entry) {
    const struct n8_conv2d_epilogue *e = &it->conv->epilogue;
    for (size_t p = 0; p < it->count; p++) {
        it->conv->requantize_fixed(out + (ptrdiff_t)p * it->io->out_stride, it->sums + p * channels,
                                   1, channels, e->fixed + 2 * entry, e->zero_point, e->lo, e->hi);
    }
}

// The pointers of a unit of one group, which its slices of channels share.
static void prepare_unit(struct igemm *it, size_t block, size_t group, const int8_t *in) {
    const size_t pointed = block * it->conv->groups + group;
    if (it->pointed == pointed) {
        return;
    }
    if (is_pointwise(&it->conv->shape)) {
        point_pixels(it, in);
    } else {
        point_unit(it, in);
    }
    if (it->conv->packed_rows != 0) {
        pack_rows(it);
    }
    it->pointed = pointed;
}

// Channels [channel, channel + channels) of one group. A slice begins with a panel.
static void run_channels(struct igemm *it, size_t block, size_t group, size_t channel,
                         size_t channels) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv_io *io = it->io;
    const struct n8_conv2d_shape *s = &conv->shape;
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t out_size = e->type == N8_TYPE_S8 ? 1 : 4;
    const ptrdiff_t in_pixels = (ptrdiff_t)s->in_height * s->in_width;
    const size_t out_pixels = (size_t)s->out_height * (size_t)s->out_width;
    const int8_t *in = io->in + (ptrdiff_t)it->image * in_pixels * io->in_stride +
                       (ptrdiff_t)group * (s->in_channels / s->groups);
    prepare_unit(it, block, group, in);
    const ptrdiff_t out_pixel = (ptrdiff_t)(it->image * out_pixels + it->first);
    const size_t out_channel = group * conv->group_out + channel;
    const size_t entry = group * conv->group_entries + channel;
    uint8_t *out = (uint8_t *)io->out + out_pixel * io->out_stride + out_channel * out_size;
    const bool fixed = e->fixed != NULL;
    const struct n8_igemm_args args = {
        .out = fixed ? (void *)it->sums : out,
        .out_stride = fixed ? (ptrdiff_t)(channels * sizeof *it->sums) : io->out_stride,
        .rows = it->table,
        .weights = conv->weights + group * conv->group_weights + channel * conv->taps * conv->depth,
        .pixels = it->count,
        .channels = channels,
        .taps = conv->taps,
        .depth = conv->depth,
        .bias = e->bias + entry,
        .multiplier = fixed ? NULL : e->multiplier + entry,
        .bias_f32 = fixed ? NULL : e->bias_f32 + entry,
        .slope = e->slope == NULL ? NULL : e->slope + entry,
        .residual = io->residual == NULL
                        ? NULL
                        : io->residual + out_pixel * io->residual_stride + out_channel,
        .residual_stride = io->residual_stride,
        .tile = &conv->row->tile,
        .residual_scale = e->residual_scale,
        .residual_zero_point = e->residual_zero_point,
        .zero_point = e->zero_point,
        .lo = e->lo,
        .hi = e->hi,
    };
    conv->row->igemm(&args);
    if (fixed) {
        requantize(it, (int8_t *)out, channels, entry);
    }
}

static void run_igemm(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin,
                      size_t end, uint8_t *scratch) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t out_pixels = (size_t)s->out_height * (size_t)s->out_width;
    const size_t blocks_of_image = n8_pieces(out_pixels, conv->block);
    const size_t slices_of_group = conv->slices / conv->groups;
    struct igemm it = {
        .conv = conv,
        .io = io,
        .windows = (int8_t *)scratch,
        .padding = (const int8_t *)scratch,
        .packed = (int8_t *)scratch + n8_round_up(conv->rows_size, N8_CONV_ALIGN),
        .pointed = SIZE_MAX,
    };
    const size_t rows =
        n8_round_up(conv->rows_size, N8_CONV_ALIGN) + n8_round_up(conv->packed_rows, N8_CONV_ALIGN);
    it.table = (const int8_t **)(void *)(scratch + rows);
    const size_t pointers = n8_round_up(conv->block, conv->row->tile.mr) * conv->taps;
    const size_t used = rows + pointers * sizeof(int8_t *);
    it.sums = (int32_t *)(void *)(scratch + n8_round_up(used, N8_CONV_ALIGN));
    memset(scratch, conv->in_zero_point, conv->rows_size);
    for (size_t unit = begin; unit < end; unit++) {
        const size_t block = unit / conv->slices;
        it.image = block / blocks_of_image;
        it.first = block % blocks_of_image * conv->block;
        it.count = out_pixels - it.first < conv->block ? out_pixels - it.first : conv->block;
        if (conv->slices == 1) {
            for (size_t g = 0; g < conv->groups; g++) {
                run_channels(&it, block, g, 0, conv->group_out);
            }
            continue;
        }
        const size_t slice = unit % conv->slices;
        const size_t channel = slice % slices_of_group * conv->slice;
        const size_t rest = conv->group_out - channel;
        run_channels(&it, block, slice / slices_of_group, channel,
                     rest < conv->slice ? rest : conv->slice);
    }
}

// Depthwise ----------------------------------------------------------------------------

struct depthwise {
    const struct n8_conv *conv;
    const struct n8_conv_io *io;
    int8_t *padding; // a row of zero points
    int8_t *copies;  // [kernel_height][window][channels]
    int64_t *held;   // [kernel_height]: whole rows: the row of the batch that is there, or -1
    const int8_t **rows;
    struct n8_depthwise_args args;
};

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
    if (d->io->in_stride == (ptrdiff_t)channels) {
        memcpy(to, in, inside * channels);
    } else {
        for (size_t i = 0; i < inside; i++) {
            memcpy(to + i * channels, in + (ptrdiff_t)i * d->io->in_stride, channels);
        }
    }
    memset(to + inside * channels, d->conv->in_zero_point, (size_t)(end - stop) * channels);
}

// Outputs [from, to) of a row whose windows may leave the image: what they see is copied, with
// padding. Where a copy is a whole row, it also serves the next rows of outputs.
static void run_border(struct depthwise *d, size_t n, int64_t oy, int64_t from, int64_t to) {
    const struct n8_conv *conv = d->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const int8_t *image = d->io->in + (ptrdiff_t)n * s->in_height * s->in_width * d->io->in_stride;
    const ptrdiff_t out_row = (ptrdiff_t)n * s->out_height + oy;
    const size_t channels = d->args.channels;
    d->args.tap_stride = s->dilation_width * (ptrdiff_t)channels;
    d->args.step = s->stride_width * (ptrdiff_t)channels;
    for (int64_t ox = from; ox < to; ox += (int64_t)conv->block) {
        const int64_t rest = to - ox;
        d->args.pixels = rest < (int64_t)conv->block ? (size_t)rest : conv->block;
        const size_t window = n8_depthwise_window(s, d->args.pixels);
        const int64_t x = tap_at(ox, s->stride_width, 0, s->dilation_width, s->pad_left);
        for (int32_t ky = 0; ky < s->kernel_height; ky++) {
            const int64_t y = tap_at(oy, s->stride_height, ky, s->dilation_height, s->pad_top);
            if (y < 0 || y >= s->in_height) {
                d->rows[ky] = d->padding;
                continue;
            }
            const int64_t row = (int64_t)n * s->in_height + y;
            const int64_t slot = s->dilation_height == 1 ? y % s->kernel_height : ky;
            int8_t *copy = d->copies + (size_t)slot * conv->window * channels;
            d->rows[ky] = copy;
            if (!conv->whole_rows || d->held[slot] != row) {
                copy_padded(d, image, y, x, window, copy);
                d->held[slot] = row;
            }
        }
        d->args.out = (int8_t *)d->io->out + (out_row * s->out_width + ox) * d->io->out_stride;
        conv->row->depthwise(&d->args);
    }
}

// Outputs [from, to) of a row whose windows leave the image above or below at most.
static void run_inner(struct depthwise *d, size_t n, int64_t oy, int64_t from, int64_t to) {
    const struct n8_conv2d_shape *s = &d->conv->shape;
    const int8_t *image = d->io->in + (ptrdiff_t)n * s->in_height * s->in_width * d->io->in_stride;
    const ptrdiff_t out_row = (ptrdiff_t)n * s->out_height + oy;
    const int64_t x = tap_at(from, s->stride_width, 0, s->dilation_width, s->pad_left);
    for (int32_t ky = 0; ky < s->kernel_height; ky++) {
        const int64_t y = tap_at(oy, s->stride_height, ky, s->dilation_height, s->pad_top);
        d->rows[ky] = y >= 0 && y < s->in_height
                          ? image + (ptrdiff_t)(y * s->in_width + x) * d->io->in_stride
                          : d->padding;
    }
    d->args.tap_stride = d->io->in_stride * s->dilation_width;
    d->args.step = d->io->in_stride * s->stride_width;
    d->args.pixels = (size_t)(to - from);
    d->args.out = (int8_t *)d->io->out + (out_row * s->out_width + from) * d->io->out_stride;
    d->conv->row->depthwise(&d->args);
}

static void run_depthwise(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin,
                          size_t end, uint8_t *scratch) {
    const struct n8_conv2d_shape *s = &conv->shape;
    const struct n8_conv2d_epilogue *e = &conv->epilogue;
    const size_t channels = n8_round_up((size_t)s->in_channels, N8_PIXEL);
    const size_t height = (size_t)s->kernel_height;
    const size_t copies = height * conv->window * channels + N8_SLACK;
    struct depthwise d = {.conv = conv, .io = io, .padding = (int8_t *)scratch};
    d.copies = d.padding + n8_round_up(conv->rows_size, N8_CONV_ALIGN);
    d.held = (int64_t *)(void *)(d.copies + n8_round_up(copies, N8_CONV_ALIGN));
    d.rows = (const int8_t **)(void *)(d.held + height);
    d.args = (struct n8_depthwise_args){
        .out_stride = io->out_stride,
        .rows = d.rows,
        .weights = conv->weights,
        .channels = channels,
        .bias = e->bias,
        .multiplier = e->multiplier,
        .slope = e->slope,
        .block = conv->row->block,
        .small = conv->small,
        .zero_point = e->zero_point,
        .lo = e->lo,
        .hi = e->hi,
        .kernel_height = s->kernel_height,
        .kernel_width = s->kernel_width,
    };
    memset(d.padding, conv->in_zero_point, conv->rows_size);
    for (size_t ky = 0; ky < height; ky++) {
        d.held[ky] = -1;
    }

    int64_t from = 0;
    int64_t to = 0;
    n8_depthwise_inside(s, &from, &to);
    // The row of padding has the stride of a dense tensor.
    const bool dense = io->in_stride == (ptrdiff_t)channels;
    for (size_t unit = begin; unit < end; unit++) {
        const int64_t oy = (int64_t)(unit % (size_t)s->out_height);
        const size_t n = unit / (size_t)s->out_height;
        const int64_t top = tap_at(oy, s->stride_height, 0, s->dilation_height, s->pad_top);
        const int64_t bottom =
            tap_at(oy, s->stride_height, s->kernel_height - 1, s->dilation_height, s->pad_top);
        const bool inner = to > from && (dense || (top >= 0 && bottom < s->in_height));
        if (conv->whole_rows || !inner) {
            run_border(&d, n, oy, 0, s->out_width);
            continue;
        }
        run_border(&d, n, oy, 0, from);
        run_inner(&d, n, oy, from, to);
        run_border(&d, n, oy, to, s->out_width);
    }
}

void n8_conv_run(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin, size_t end,
                 void *scratch) {
    if (conv->row->depthwise != NULL) {
        run_depthwise(conv, io, begin, end, scratch);
    } else {
        run_igemm(conv, io, begin, end, scratch);
    }
}
