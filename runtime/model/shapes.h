// SPDX-License-Identifier: Apache-2.0
//
// Open dimensions: what a file of version 3 leaves to whoever runs it, and what follows from that.
#ifndef N8_SHAPES_H
#define N8_SHAPES_H

#include "reader.h"

// Where the parts lie, which follow the strings; `end` is that of the last one. Checks them, and
// that each form has words.
enum n8_status n8_read_shapes(struct n8_reader *reader, uint64_t *end);

// Values of the symbols: from the dimensions of the inputs, eight each of which an input's rank
// counts, or, if `shapes` is NULL, the largest or the usual ones. N8_E_SHAPE: they are outside
// their bounds, two inputs disagree, or a dimension that is not open has another value.
enum n8_status n8_bind_shapes(struct n8_reader *reader, const int32_t (*shapes)[8], bool largest);

// What dimension `axis` of an input may be; N8_E_ARGUMENT: there is none.
enum n8_status n8_read_bounds(struct n8_reader *reader, size_t index, size_t axis,
                              struct n8_dimension *out);

// The sizes, into reader->shapes.sizes, which has room for them; and how many bytes the arrays of
// the forms take, in shapes.arrays_size.
enum n8_status n8_evaluate_sizes(struct n8_reader *reader);

// Numbers of a row that may stand for sizes.
enum n8_status n8_resolve(const struct n8_reader *reader, int32_t *numbers, size_t count);

// As n8_read_array, of `size` bytes that a form makes.
enum n8_status n8_make_array(struct n8_reader *reader, uint64_t form, size_t size,
                             const void **out);

#endif // N8_SHAPES_H
