// SPDX-License-Identifier: Apache-2.0
#include "planes.h"

#include "size.h"

#include <string.h>

enum {
    GROUP = 8,         // channels that a kernel takes at once
    AT_ONCE = 1 << 14, // bytes of the pixels that every group of channels passes over
    LEAST = 64,        // pixels of a pass
};

// Pixels that stay in the first cache while all their channels are moved.
static size_t pixels_of_pass(size_t stride) {
    return n8_larger(AT_ONCE / stride, LEAST);
}

// All groups of channels of a few pixels.
static void interleave_bytes(const struct n8_kernels *kernels, uint8_t *to, size_t to_stride,
                             size_t room, const uint8_t *from, size_t from_stride, size_t channels,
                             size_t pixels) {
    for (size_t c = 0; c < channels; c += GROUP) {
        const uint8_t *planes = from + c * from_stride;
        const size_t count = n8_smaller(channels - c, GROUP);
        if (room - c >= GROUP) {
            kernels->interleave_s8((int8_t *)to + c, to_stride, (const int8_t *)planes, from_stride,
                                   count, pixels);
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            for (size_t p = 0; p < pixels; p++) {
                to[p * to_stride + c + i] = planes[i * from_stride + p];
            }
        }
    }
}

// Rows of int16 to columns.
static void transpose_s16(uint8_t *to, size_t to_stride, const uint8_t *from, size_t from_stride,
                          size_t rows, size_t columns) {
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < columns; c++) {
            memcpy(to + c * to_stride + r * sizeof(int16_t),
                   from + r * from_stride + c * sizeof(int16_t), sizeof(int16_t));
        }
    }
}

void n8_interleave(const struct n8_kernels *kernels, uint8_t *to, size_t to_stride, size_t room,
                   const uint8_t *from, size_t from_stride, size_t channels, size_t pixels,
                   size_t size) {
    const size_t pass = pixels_of_pass(to_stride);
    for (size_t p = 0; p < pixels; p += pass) {
        const size_t count = n8_smaller(pixels - p, pass);
        if (size == sizeof(int16_t)) {
            transpose_s16(to + p * to_stride, to_stride, from + p * size, from_stride, channels,
                          count);
        } else if (size == 1) {
            interleave_bytes(kernels, to + p * to_stride, to_stride, room, from + p, from_stride,
                             channels, count);
        } else {
            kernels->transpose_f32(to + p * to_stride, to_stride, from + p * size, from_stride,
                                   channels, count);
        }
    }
}

void n8_deinterleave(const struct n8_kernels *kernels, uint8_t *to, size_t to_stride,
                     const uint8_t *from, size_t from_stride, size_t channels, size_t pixels,
                     size_t size) {
    if (channels == 1 && from_stride == size) {
        memcpy(to, from, pixels * size);
        return;
    }
    const size_t pass = pixels_of_pass(from_stride);
    for (size_t p = 0; p < pixels; p += pass) {
        const size_t count = n8_smaller(pixels - p, pass);
        const uint8_t *pixel = from + p * from_stride;
        if (size == sizeof(int16_t)) {
            transpose_s16(to + p * size, to_stride, pixel, from_stride, count, channels);
        } else if (size == sizeof(float)) {
            kernels->transpose_f32(to + p * size, to_stride, pixel, from_stride, count, channels);
        }
        for (size_t c = 0; size == 1 && c < channels; c += GROUP) {
            kernels->deinterleave_s8((int8_t *)to + c * to_stride + p, to_stride,
                                     (const int8_t *)pixel + c, from_stride,
                                     n8_smaller(channels - c, GROUP), count);
        }
    }
}

enum { WORD = sizeof(uint64_t) };

// In words, of which the last one begins where that before has not ended.
static void move_words(uint8_t *to, const uint8_t *from, size_t bytes) {
    for (size_t i = 0; i + WORD < bytes; i += WORD) {
        memcpy(to + i, from + i, WORD);
    }
    memcpy(to + bytes - WORD, from + bytes - WORD, WORD);
}

// A word for each pixel, whatever of it belongs to the pixel: what it takes from after it is what
// it is given next, or room.
static inline __attribute__((always_inline)) void move_a_word_each(uint8_t *to, size_t to_stride,
                                                                   const uint8_t *from,
                                                                   size_t from_stride,
                                                                   size_t pixels) {
#pragma GCC unroll 8
    for (size_t p = 0; p < pixels; p++) {
        memcpy(to, from, WORD);
        to += to_stride;
        from += from_stride;
    }
}

static void move_words_each(uint8_t *to, size_t to_stride, const uint8_t *from, size_t from_stride,
                            size_t pixels) {
    enum { RGB = 3 };
    // The usual distances as constants, for speed; nothing depends on it.
    if (to_stride == WORD && from_stride == RGB) {
        move_a_word_each(to, WORD, from, RGB, pixels);
    } else if (to_stride == RGB && from_stride == WORD) {
        move_a_word_each(to, RGB, from, WORD, pixels);
    } else {
        move_a_word_each(to, to_stride, from, from_stride, pixels);
    }
}

void n8_move_pixels(const struct n8_kernels *kernels, uint8_t *to, size_t to_stride, size_t room,
                    const uint8_t *from, size_t from_stride, size_t bytes, size_t pixels) {
    if (to_stride == bytes && from_stride == bytes) {
        memcpy(to, from, pixels * bytes);
        return;
    }
    if (bytes == 1 && from_stride == 1 && room >= GROUP) {
        kernels->interleave_s8((int8_t *)to, to_stride, (const int8_t *)from, pixels, 1, pixels);
        return;
    }
    if (bytes == 1 && to_stride == 1 && from_stride >= GROUP) {
        kernels->deinterleave_s8((int8_t *)to, pixels, (const int8_t *)from, from_stride, 1,
                                 pixels);
        return;
    }
    if (bytes >= WORD) {
        for (size_t p = 0; p < pixels; p++) {
            move_words(to + p * to_stride, from + p * from_stride, bytes);
        }
        return;
    }
    size_t done = 0;
    if (room >= WORD || to_stride == bytes) {
        // The last pixels, whose words would end after the last value, have to wait.
        const size_t last = n8_pieces(WORD - bytes, n8_smaller(to_stride, from_stride));
        done = pixels > last ? pixels - last : 0;
        move_words_each(to, to_stride, from, from_stride, done);
    }
    for (size_t p = done; p < pixels; p++) {
        for (size_t i = 0; i < bytes; i++) {
            to[p * to_stride + i] = from[p * from_stride + i];
        }
    }
}
