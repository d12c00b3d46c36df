// SPDX-License-Identifier: Apache-2.0
//
// The two orders of the values of an image: planes, a row for each channel, and pixels, a row for
// each of them. Rows are `size` bytes a value, 1, 2 or 4, without room between; strides are bytes
// from row to row. What is read and what is written do not overlap.
#ifndef N8_PLANES_H
#define N8_PLANES_H

#include "cpu/dispatch.h"

// From planes to pixels. Of each pixel, `room` bytes may be written, as many as its values take at
// least; nothing but the values is read.
void n8_interleave(const struct n8_kernels *kernels, uint8_t *to, size_t to_stride, size_t room,
                   const uint8_t *from, size_t from_stride, size_t channels, size_t pixels,
                   size_t size);

// From pixels to planes. Up to 7 bytes after the values of a pixel are read, and nothing but the
// values is written.
void n8_deinterleave(const struct n8_kernels *kernels, uint8_t *to, size_t to_stride,
                     const uint8_t *from, size_t from_stride, size_t channels, size_t pixels,
                     size_t size);

// Pixels of `bytes` bytes at other distances, one of which may be `bytes` itself. What pads a pixel
// may be read, but of the last one 7 bytes after its values at most, and of those without room
// between none. `room` is as above; without room between it is `bytes`.
void n8_move_pixels(const struct n8_kernels *kernels, uint8_t *to, size_t to_stride, size_t room,
                    const uint8_t *from, size_t from_stride, size_t bytes, size_t pixels);

#endif // N8_PLANES_H
