// SPDX-License-Identifier: Apache-2.0
#include "igemm_rows.h"

#include <string.h>

// Writes the pointers of `count` pixels of a tile, whose windows begin `at` bytes from the image's
// beginning: one for each tap, mr entries apart. As integers, since some may lie outside the image.
static inline __attribute__((always_inline)) void point_pixels(const struct n8_igemm_rows *it,
                                                               uintptr_t image, const ptrdiff_t *at,
                                                               size_t count, const int8_t **table) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t mr = it->conv->row->tile.mr;
    const uintptr_t across = (uintptr_t)n8_strides(it->io->in_stride, s->dilation_width);
    const uintptr_t down =
        (uintptr_t)n8_strides(it->io->in_stride * s->in_width, s->dilation_height);
    for (int32_t ky = 0; ky < s->kernel_height; ky++, image += down) {
        uintptr_t tap[N8_MAX_MR];
#pragma GCC unroll 4
        for (size_t i = 0; i < count; i++) {
            tap[i] = image + (uintptr_t)at[i];
        }
        for (int32_t kx = 0; kx < s->kernel_width; kx++, table += mr) {
#pragma GCC unroll 4
            for (size_t i = 0; i < count; i++) {
                table[i] = (const int8_t *)tap[i];
                tap[i] += across;
            }
        }
    }
}

static void point_tile(const struct n8_igemm_rows *it, const int8_t *image, const ptrdiff_t *at,
                       const int8_t **table) {
    enum { FEW = 4 }; // a constant for speed, nothing depends on it
    const size_t mr = it->conv->row->tile.mr;
    size_t m = 0;
    for (; m + FEW <= mr; m += FEW) {
        point_pixels(it, (uintptr_t)image, at + m, FEW, table + m);
    }
    for (; m < mr; m++) {
        point_pixels(it, (uintptr_t)image, at + m, 1, table + m);
    }
}

// Leads the pointers of a pixel, whose window begins at row y0 and column x0, to the row of padding
// where they lie outside the image.
static void pad_pixel(const struct n8_igemm_rows *it, int64_t y0, int64_t x0,
                      const int8_t **table) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t mr = it->conv->row->tile.mr;
    const int8_t *const padding = it->padding; // which no pointer that is written changes
    uint64_t y = (uint64_t)y0;                 // what is negative lies beyond the image, too
    for (int32_t ky = 0; ky < s->kernel_height; ky++, y += (uint64_t)s->dilation_height) {
        const uint64_t width = y < (uint64_t)s->in_height ? (uint64_t)s->in_width : 0;
        uint64_t x = (uint64_t)x0;
        for (int32_t kx = 0; kx < s->kernel_width; kx++, table += mr) {
            *table = x < width ? *table : padding;
            x += (uint64_t)s->dilation_width;
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

// A tap after the other of the window that begins at row y0 and column x0, `at` bytes from the
// image's beginning.
static void copy_window(const struct n8_igemm_rows *it, const int8_t *image, int64_t y0, int64_t x0,
                        ptrdiff_t at, int8_t *to) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t channels = n8_igemm_channels_read(it->conv);
    const size_t across = (size_t)n8_strides(it->io->in_stride, s->dilation_width);
    const size_t down = (size_t)n8_strides(it->io->in_stride * s->in_width, s->dilation_height);
    int8_t padding[N8_PIXEL];
    memset(padding, it->conv->in_zero_point, sizeof padding);
    int64_t y = y0;
    size_t row = (size_t)at;
    for (int32_t ky = 0; ky < s->kernel_height; ky++, y += s->dilation_height, row += down) {
        const int64_t width = y >= 0 && y < s->in_height ? s->in_width : 0;
        int64_t x = x0;
        size_t tap = row;
        for (int32_t kx = 0; kx < s->kernel_width; kx++, x += s->dilation_width, tap += across) {
            copy_tap(to, x >= 0 && x < width ? image + tap : padding, channels);
            to += channels;
        }
    }
}

// The same of a window inside the image, `at` bytes from its beginning. The bytes that a tap writes
// beyond its channels are those of the next one.
static void copy_inner_window(const struct n8_igemm_rows *it, const int8_t *image, ptrdiff_t at,
                              int8_t *to) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t channels = n8_igemm_channels_read(it->conv);
    const ptrdiff_t across = n8_strides(it->io->in_stride, s->dilation_width);
    const ptrdiff_t down = n8_strides(it->io->in_stride * s->in_width, s->dilation_height);
    const int8_t *from = image + at;
    for (int32_t ky = 0; ky < s->kernel_height; ky++, from += down) {
        const int8_t *tap = from;
#pragma GCC unroll 8
        for (int32_t kx = 0; kx < s->kernel_width; kx++, tap += across, to += channels) {
            copy_tap(to, tap, channels);
        }
    }
}

enum { MOST_ROWS = 7 }; // of columns that are copied at once

// Columns of an image, of which a window sees `rows` pixels each, one below the other: those of a
// column lie together, so that windows are their columns one after the other and overlap as they do
// in the image. Of a pixel, `size` bytes are read and written, those beyond its channels before the
// next one's. In-order cores wait for what they load: a column is loaded, then stored.
static inline __attribute__((always_inline)) void
copy_columns(int8_t *restrict to, const int8_t *restrict from, ptrdiff_t across, ptrdiff_t down,
             size_t channels, size_t size, size_t rows, size_t count) {
    for (; count > 0; count--, from += across) {
        uint64_t pixels[MOST_ROWS];
        const int8_t *pixel = from;
#pragma GCC unroll 7
        for (size_t i = 0; i < rows; i++, pixel += down) {
            memcpy(&pixels[i], pixel, size);
        }
#pragma GCC unroll 7
        for (size_t i = 0; i < rows; i++, to += channels) {
            memcpy(to, &pixels[i], size);
        }
    }
}

// The same of a column that lies outside of the image, at least in part.
static void copy_outer_column(const struct n8_igemm_rows *it, const int8_t *image, int64_t y,
                              int64_t x, int8_t *to) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const size_t channels = n8_igemm_channels_read(it->conv);
    int8_t padding[N8_PIXEL];
    memset(padding, it->conv->in_zero_point, sizeof padding);
    for (const int64_t end = y + s->kernel_height; y < end; y++, to += channels) {
        const bool inside = y >= 0 && y < s->in_height && x >= 0 && x < s->in_width;
        const ptrdiff_t at = n8_strides(it->io->in_stride, y * s->in_width + x);
        copy_tap(to, inside ? image + at : padding, channels);
    }
}

// Copies the columns [x, end) of the windows whose first row is y.
static void make_columns(const struct n8_igemm_rows *it, const int8_t *image, int64_t y, int64_t x,
                         int64_t end, int8_t *to) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const ptrdiff_t across = it->io->in_stride, down = n8_strides(across, s->in_width);
    const size_t rows = (size_t)s->kernel_height, channels = n8_igemm_channels_read(conv);
    const bool inside = y >= 0 && y + s->kernel_height <= s->in_height;
    while (x < end) {
        if (!inside || x < 0 || x >= s->in_width) {
            copy_outer_column(it, image, y, x++, to);
            to += conv->igemm.column;
            continue;
        }
        const int64_t last = end < s->in_width ? end : s->in_width;
        const size_t count = (size_t)(last - x);
        const int8_t *from = image + n8_strides(across, y * s->in_width + x);
        // Those of 3 channels, 3x3, 6x6 and 7x7, as constants, for speed; nothing depends on it.
        if (channels == 3 && rows == 3) {
            copy_columns(to, from, across, down, 3, 4, 3, count);
        } else if (channels == 3 && rows == 6) {
            copy_columns(to, from, across, down, 3, 4, 6, count);
        } else if (channels == 3 && rows == 7) {
            copy_columns(to, from, across, down, 3, 4, 7, count);
        } else {
            enum { FEW = 4 };
            const size_t most = rows / FEW * FEW;
            for (size_t i = 0; i < count; i++, from += across) {
                int8_t *column = to + i * conv->igemm.column;
                copy_columns(column, from, FEW * down, down, channels, 8, FEW, rows / FEW);
                copy_columns(column + most * channels, from + (ptrdiff_t)most * down, down, 0,
                             channels, 8, 1, rows % FEW);
            }
        }
        to += count * conv->igemm.column;
        x = last;
    }
}

// The columns of a unit's windows and their table; the last tile repeats the last window.
static void copy_unit(const struct n8_igemm_rows *it, const int8_t *image) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t width = (size_t)s->out_width, mr = conv->row->tile.mr;
    const size_t stride = (size_t)s->stride_width * conv->igemm.column;
    size_t oy = it->at.first / width, ox = it->at.first % width, p = 0;
    int8_t *window = it->windows;
    for (; p < it->at.count; oy++, ox = 0) {
        const size_t count = n8_smaller(it->at.count - p, width - ox);
        const int64_t y = n8_tap_at((int64_t)oy, s->stride_height, 0, 1, s->pad_top);
        const int64_t x = n8_tap_at((int64_t)ox, s->stride_width, 0, 1, s->pad_left);
        const int64_t last = x + (int64_t)(count - 1) * s->stride_width;
        make_columns(it, image, y, x, last + s->kernel_width, window);
        for (const size_t end = p + count; p < end; p++, window += stride) {
            it->table[p] = window;
        }
        window += conv->group_in - stride; // what the last one sees of columns after its first
    }
    for (; p % mr != 0; p++) {
        it->table[p] = it->windows;
    }
}

// Whether output pixel i reads input pixel i and no other.
static bool is_pointwise(const struct n8_conv2d_shape *s) {
    return s->kernel_height == 1 && s->kernel_width == 1 && s->stride_height == 1 &&
           s->stride_width == 1 && s->pad_top == 0 && s->pad_left == 0 &&
           s->out_width == s->in_width && s->out_height <= s->in_height;
}

// The pointer table of such a layer's unit; the last tile repeats the last pixel.
static void point_unit_of_pixels(const struct n8_igemm_rows *it, const int8_t *image) {
    const size_t mr = it->conv->row->tile.mr, count = it->at.count;
    const size_t end = n8_pieces(count, mr) * mr;
    const ptrdiff_t stride = it->io->in_stride;
    const int8_t *pixel = image + (ptrdiff_t)it->at.first * stride;
    const int8_t **table = it->table;
#pragma GCC unroll 4
    for (size_t p = 0; p < count; p++, pixel += stride) {
        table[p] = pixel;
    }
    for (size_t p = count; p < end; p++) {
        table[p] = table[count - 1];
    }
}

// Where the window of an output pixel begins: its row and column, and the bytes from the image's
// beginning; whether rows of the window lie outside the image.
struct place {
    int64_t y, x;
    size_t at;
    bool outside;
};

static struct place place_of(const struct n8_igemm_rows *it, int64_t oy, int64_t ox) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const int64_t y = n8_tap_at(oy, s->stride_height, 0, s->dilation_height, s->pad_top);
    const int64_t x = n8_tap_at(ox, s->stride_width, 0, s->dilation_width, s->pad_left);
    const int64_t last = s->in_height - 1 - (int64_t)(s->kernel_height - 1) * s->dilation_height;
    return (struct place){.y = y,
                          .x = x,
                          .at = (size_t)n8_strides(it->io->in_stride, y * s->in_width + x),
                          .outside = y < 0 || y > last};
}

// Writes the pointer table of a unit; the last tile repeats the last pixel.
static void point_unit(const struct n8_igemm_rows *it, const int8_t *image) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t mr = conv->row->tile.mr;
    const int64_t last_x = s->in_width - 1 - (int64_t)(s->kernel_width - 1) * s->dilation_width;
    const size_t step = (size_t)n8_strides(it->io->in_stride, s->stride_width);
    size_t oy = it->at.first / (size_t)s->out_width, ox = it->at.first % (size_t)s->out_width;
    struct place place = place_of(it, (int64_t)oy, (int64_t)ox);
    const int64_t across = (int64_t)(mr - 1) * s->stride_width;
    for (size_t p = 0; p < it->at.count; p += mr) {
        int64_t y[N8_MAX_MR], x[N8_MAX_MR];
        ptrdiff_t at[N8_MAX_MR];
        // Most tiles are pixels of one row whose windows lie inside.
        if (!conv->igemm.unfolded && p + mr <= it->at.count && ox + mr < (size_t)s->out_width &&
            !place.outside && place.x >= 0 && place.x + across <= last_x) {
            for (size_t m = 0; m < mr; m++, place.at += step) {
                at[m] = (ptrdiff_t)place.at;
            }
            ox += mr;
            place.x += across + s->stride_width;
            point_tile(it, image, at, it->table + p * conv->taps);
            continue;
        }
        uint32_t outside = 0; // a bit for each pixel that sees padding
        for (size_t m = 0; m < mr; m++) {
            y[m] = place.y;
            x[m] = place.x;
            at[m] = (ptrdiff_t)place.at;
            outside |= (uint32_t)(place.outside || place.x < 0 || place.x > last_x) << m;
            if (p + m + 1 >= it->at.count) {
                continue;
            }
            place.x += s->stride_width;
            place.at += step;
            if (++ox == (size_t)s->out_width) {
                ox = 0;
                place = place_of(it, (int64_t)++oy, 0);
            }
        }
        const int8_t **table = it->table + p * conv->taps;
        if (!conv->igemm.unfolded) {
            point_tile(it, image, at, table);
        }
        for (size_t m = 0; m < mr; m++, outside >>= 1) {
            if (conv->igemm.unfolded) {
                int8_t *to = it->windows + (p + m) * conv->igemm.window;
                table[m] = to;
                if (outside & 1) {
                    copy_window(it, image, y[m], x[m], at[m], to);
                } else {
                    copy_inner_window(it, image, at[m], to);
                }
            } else if (outside & 1) {
                pad_pixel(it, y[m], x[m], table + m);
            }
        }
    }
}

enum { ROWS = 8, STEP = sizeof(uint64_t) }; // of tiles of packed rows

// One tap of a tile of rows. Two steps and rows at once make loads and stores of 16 bytes.
static int8_t *pack_tap(int8_t *to, const int8_t *const *rows, size_t depth) {
    enum { TILE = ROWS * STEP };
    const int8_t *from[ROWS];
#pragma GCC unroll 8
    for (size_t m = 0; m < ROWS; m++) {
        from[m] = rows[m];
    }
    for (; depth >= 2 * STEP; depth -= 2 * STEP, to += 2 * TILE) {
#pragma GCC unroll 4
        for (size_t m = 0; m < ROWS; m += 2) {
            uint64_t a[2], b[2];
            memcpy(a, from[m], sizeof a);
            memcpy(b, from[m + 1], sizeof b);
            memcpy(to + m * STEP, &(const uint64_t[2]){a[0], b[0]}, sizeof a);
            memcpy(to + TILE + m * STEP, &(const uint64_t[2]){a[1], b[1]}, sizeof b);
            from[m] += sizeof a;
            from[m + 1] += sizeof b;
            // Pointers of their own: with one index for all, each half takes a load.
            __asm__("" : "+r"(from[m]), "+r"(from[m + 1]));
        }
    }
    if (depth > 0) {
#pragma GCC unroll 8
        for (size_t m = 0; m < ROWS; m++, to += STEP) {
            memcpy(to, from[m], STEP);
        }
    }
    return to;
}

// Packs the rows of a unit's table, and leaves in the table where they are.
static void pack_rows(const struct n8_igemm_rows *it) {
    const struct n8_conv *conv = it->conv;
    const size_t tiles = n8_pieces(it->at.count, ROWS);
    int8_t *to = it->packed;
    for (size_t i = 0; i < tiles * conv->taps; i++) {
        to = pack_tap(to, it->table + i * ROWS, conv->depth);
    }
    it->table[0] = it->packed;
}

// The first channel of the unit's group in its image.
static const int8_t *image_of(const struct n8_igemm_rows *it) {
    const struct n8_conv2d_shape *s = &it->conv->shape;
    const ptrdiff_t pixels = (ptrdiff_t)s->in_height * s->in_width;
    return it->io->in + (ptrdiff_t)it->at.image * pixels * it->io->in_stride +
           (ptrdiff_t)(it->at.group * n8_igemm_channels_read(it->conv));
}

void n8_igemm_make_rows(struct n8_igemm_rows *it) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    const size_t number = it->at.block * conv->groups + it->at.group;
    if (it->made == number) {
        return;
    }
    it->made = number;
    it->table = it->tables;
    if (conv->igemm.tables > 1) {
        const uint64_t bit = UINT64_C(1) << number;
        it->table += number * conv->igemm.block * conv->taps;
        if ((it->kept & bit) != 0) {
            return;
        }
        it->kept |= bit;
    }
    const int8_t *image = image_of(it);
    if (is_pointwise(s)) {
        point_unit_of_pixels(it, image);
    } else if (conv->igemm.column != 0) {
        copy_unit(it, image);
    } else {
        point_unit(it, image);
    }
    if (conv->row->tile.packing == N8_PACKING_BOTH) {
        pack_rows(it);
    }
}

void n8_igemm_windows(struct n8_igemm_rows *it, struct n8_windows_args *args) {
    const struct n8_conv *conv = it->conv;
    const struct n8_conv2d_shape *s = &conv->shape;
    args->next = NULL;
    args->padding = it->padding;
    args->packed = it->packed;
    args->block = conv->igemm.block;
    if (conv->igemm.unfolded) { // copies, a single tap each, are an image of one row
        n8_igemm_make_rows(it);
        args->image = it->windows;
        args->height = 1;
        args->y = args->x = 0;
        args->tap = args->taps = args->tap_row = args->tap_rows = 1;
        args->left = args->columns = conv->igemm.block;
        args->step = (ptrdiff_t)conv->igemm.window;
        args->width = it->at.count * conv->igemm.window;
        return;
    }
    const ptrdiff_t pixel = it->io->in_stride, row = n8_strides(pixel, s->in_width);
    const size_t columns = (size_t)s->out_width;
    const struct place place =
        place_of(it, (int64_t)(it->at.first / columns), (int64_t)(it->at.first % columns));
    args->image = image_of(it);
    args->height = (size_t)n8_strides(row, s->in_height);
    args->width = (size_t)row;
    args->y = n8_strides(row, place.y);
    args->x = n8_strides(pixel, place.x);
    args->columns = columns;
    args->left = columns - it->at.first % columns;
    args->step = n8_strides(pixel, s->stride_width);
    args->row_step = n8_strides(row, s->stride_height);
    args->tap = n8_strides(pixel, s->dilation_width);
    args->taps = n8_strides(args->tap, s->kernel_width);
    args->tap_row = n8_strides(row, s->dilation_height);
    args->tap_rows = n8_strides(args->tap_row, s->kernel_height);
}
