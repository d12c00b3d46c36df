// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of a model file to tensors and steps that are safe to run, whatever the
// numbers mean.
#ifndef N8_READER_H
#define N8_READER_H

#include "model.h"

struct n8_reader {
    const uint8_t *bytes;
    struct n8_file_header header;
    struct n8_model *model;
    struct n8_model_error *error; // never NULL
    uint64_t arrays_end;          // of those that were read; the next one follows
};

// Header, checksum, and where the parts lie.
enum n8_status n8_read_header(struct n8_reader *reader, const void *bytes, size_t size);

// All tables into the model, whose arrays have room for them, and the plan of each step.
// `strings` is where the names go. Packs nothing.
enum n8_status n8_read_tables(struct n8_reader *reader, char *strings);

// The array of `count` entries of `entry` bytes at `offset` of the file. Arrays follow one
// another in the order in which they are read: packed copies of shared ones would let a small
// file ask for any amount of memory.
enum n8_status n8_read_array(struct n8_reader *reader, uint64_t offset, size_t count, size_t entry,
                             const void **out);
// The same of an array that may be missing: offset 0 leaves `out` as it is.
enum n8_status n8_read_optional(struct n8_reader *reader, uint64_t offset, size_t count,
                                size_t entry, const void **out);

// Says why the file is refused as malformed.
static inline enum n8_status n8_malformed(const struct n8_reader *reader, const char *reason) {
    return n8_refuse(reader->error, N8_E_FORMAT, reason);
}

// Says that this step or tensor is what is wrong.
void n8_blame_step(const struct n8_reader *reader, size_t index);
void n8_blame_tensor(const struct n8_reader *reader, size_t index);

#endif // N8_READER_H
