// SPDX-License-Identifier: Apache-2.0
//
// A file with open dimensions, and the weights that were packed of it: what its models at all
// shapes have in common.
#ifndef N8_ORIGIN_H
#define N8_ORIGIN_H

#include "model/reader.h"

struct n8_origin;

// An origin from the file that was read; its bytes are copied. NULL: out of memory.
struct n8_origin *n8_origin_create(const struct n8_reader *reader);

// NULL is allowed.
void n8_origin_close(struct n8_origin *origin);

// What n8_read_header left in a reader of this file.
void n8_origin_read(const struct n8_origin *origin, struct n8_reader *reader);

// Packs the weights of a planned conv2d, or takes those of another shape that are packed alike.
enum n8_status n8_origin_pack(struct n8_origin *origin, struct n8_reader *reader, size_t step);

#endif // N8_ORIGIN_H
