// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of a model file to tensors and steps that are safe to run, whatever the
// numbers mean.
#ifndef N8_READER_H
#define N8_READER_H

#include "model.h"

// What a file of version 3 leaves open; all zeros in one of version 2.
struct n8_shapes {
    struct n8_file_shapes table;
    int32_t symbols[N8_FORMAT_MAX_SYMBOLS]; // their values
    int32_t *sizes;                         // what follows from them
    uint8_t *arrays;                        // what forms make
    size_t arrays_size, arrays_used;
    uint32_t next_form, next_word;
};

struct n8_reader {
    const uint8_t *bytes;
    struct n8_file_header header;
    struct n8_shapes shapes;
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

// Checks that a part of `count` entries begins where `end` says, aligned to `align`, after nothing
// but zeros, and ends within the file; moves `end` to where it ends.
enum n8_status n8_check_part(const struct n8_reader *reader, uint64_t at, uint64_t count,
                             uint64_t entry, uint64_t align, uint64_t *end);

// Says why the file is refused as malformed.
static inline enum n8_status n8_malformed(const struct n8_reader *reader, const char *reason) {
    return n8_refuse(reader->error, N8_E_FORMAT, reason);
}

// Says that this step or tensor is what is wrong.
void n8_blame_step(const struct n8_reader *reader, size_t index);
void n8_blame_tensor(const struct n8_reader *reader, size_t index);

#endif // N8_READER_H
