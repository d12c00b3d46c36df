// SPDX-License-Identifier: Apache-2.0
//
// The rows that a unit of implicit GEMM multiplies: for a block of output pixels, where the input
// pixel under each tap lies, or the row of padding. Copied are only the windows of layers with so
// few channels that most of a kernel's step would be padding, and the rows for kernels that read
// packed ones. Those that pack them for themselves are told where the windows are.
#ifndef N8_IGEMM_ROWS_H
#define N8_IGEMM_ROWS_H

#include "algorithm.h"

// The rows of the pixels of a unit.
struct n8_igemm_rows {
    const struct n8_conv *conv;
    const struct n8_conv_io *io;
    int8_t *windows;       // copied
    const int8_t *padding; // or the row of zero points that stands for all outside the image
    const int8_t **tables; // of blocks that are kept, or of one
    uint64_t kept;         // a bit for each of these that is made
    const int8_t **table;  // the unit's
    int8_t *packed;        // the rows, where they are packed
    size_t made; // the number of the block and group that the table and the packed rows belong to
    struct n8_conv_unit at;
};

// The channels of an input pixel that a packed group reads.
static inline size_t n8_igemm_channels_read(const struct n8_conv *conv) {
    return (size_t)(conv->shape.in_channels / conv->shape.groups) * conv->igemm.bundle;
}

enum { N8_TAP_BYTES = 16 }; // that may be read or written after a window

// Makes those of the unit's block and group, which all slices of its channels share.
void n8_igemm_make_rows(struct n8_igemm_rows *it);

// The windows from the unit's first pixel on. Copied ones are those of the unit alone.
void n8_igemm_windows(struct n8_igemm_rows *it, struct n8_windows_args *args);

#endif // N8_IGEMM_ROWS_H
