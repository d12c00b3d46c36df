// SPDX-License-Identifier: Apache-2.0
#include "transpose.h"

#include <string.h>

enum {
    GROUP = 8,         // channels that a kernel takes at once
    AT_ONCE = 1 << 14, // bytes of the pixels that every group of channels passes over
    LEAST = 64,        // pixels of a pass
};

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

// Pixels that stay in the first cache while all their channels are moved.
static size_t pixels_of_pass(size_t stride) {
    const size_t pixels = AT_ONCE / stride;
    return pixels > LEAST ? pixels : LEAST;
}

// All groups of channels of a few pixels.
static void interleave_bytes(const struct n8_kernels *kernels, uint8_t *to, size_t to_stride,
                             size_t room, const uint8_t *from, size_t from_stride, size_t channels,
                             size_t pixels) {
    for (size_t c = 0; c < channels; c += GROUP) {
        const uint8_t *planes = from + c * from_stride;
        const size_t count = least(channels - c, GROUP);
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

void n8_interleave(const struct n8_kernels *kernels, uint8_t *to, size_t to_stride, size_t room,
                   const uint8_t *from, size_t from_stride, size_t channels, size_t pixels,
                   size_t size) {
    const size_t pass = pixels_of_pass(to_stride);
    for (size_t p = 0; p < pixels; p += pass) {
        const size_t count = least(pixels - p, pass);
        if (size == 1) {
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
        const size_t count = least(pixels - p, pass);
        const uint8_t *pixel = from + p * from_stride;
        if (size != 1) {
            kernels->transpose_f32(to + p * size, to_stride, pixel, from_stride, count, channels);
            continue;
        }
        for (size_t c = 0; c < channels; c += GROUP) {
            kernels->deinterleave_s8((int8_t *)to + c * to_stride + p, to_stride,
                                     (const int8_t *)pixel + c, from_stride,
                                     least(channels - c, GROUP), count);
        }
    }
}
