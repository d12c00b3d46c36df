// SPDX-License-Identifier: Apache-2.0
#ifndef N8_TRANSPOSE_H
#define N8_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>

// Value r of row c of `to` is value c of row r of `from`. Values are `size` bytes, 1 or 4, next to
// each other in their row; strides are bytes from row to row. Of each row of `to`, `room` bytes may
// be written, as many as it has values at least; nothing but the values is read. The two do not
// overlap.
void n8_transpose(uint8_t *to, size_t to_stride, size_t room, const uint8_t *from,
                  size_t from_stride, size_t rows, size_t columns, size_t size);

#endif // N8_TRANSPOSE_H
