// SPDX-License-Identifier: Apache-2.0
//
// An opened model: immutable, shared by its sessions, and one allocation.
#ifndef N8_MODEL_H
#define N8_MODEL_H

#include "conv.h"
#include "include/neon8.h"
#include "include/neon8_format.h"
#include "kernels.h"

#include <stdbool.h>

enum { N8_ALIGN = 64 };

struct n8_tensor {
    const char *name;
    enum n8_type type;
    int32_t rank;
    int32_t dims[4]; // N C H W
    float scale;
    int32_t zero_point, lo, hi;
    size_t pixels;       // N * H * W
    size_t pixel_stride; // bytes: C rounded up to 8 for S8, 4 * C for F32
    size_t bytes;        // of the buffer, N8_SLACK included; 0 for a float input
    size_t offset;       // in the arena
    size_t born, dies;   // steps between which the buffer is in use, both included
    int32_t input;       // number of the graph input that it is, or -1
};

struct n8_step {
    enum n8_op kind;
    const char *name;
    const uint32_t *inputs; // tensor numbers
    size_t input_count;
    uint32_t output;
    int32_t kernel[2], stride[2], dilation[2], pad[2], pad_end[2];
    bool count_pad;
    int32_t axis;
    int32_t lo, hi;
    float scale, residual_scale, slope;
    struct n8_conv conv;
    const char *kernel_name;
    size_t scratch_size; // of one thread
    uint64_t macs;
};

struct n8_model {
    struct n8_kernels kernels;
    struct n8_tensor *tensors;
    struct n8_step *steps;
    uint32_t *links;
    size_t tensor_count, step_count, input_count, output_count;
    const uint32_t *inputs, *outputs; // into links
    size_t arena_size;
    size_t scratch_size; // of one thread
};

// The file's parts after reader.c has checked where they are.
struct n8_file {
    const uint8_t *bytes;
    struct n8_file_header header;
    uint64_t taken; // bytes of the arrays that were read; see n8_read_array
};

// Bytes of the tensor in a buffer of the caller: N C H W, no padding.
size_t n8_tensor_io_size(const struct n8_tensor *tensor);

// reader.c: header, checksum and table bounds.
enum n8_status n8_read_header(const void *bytes, size_t size, struct n8_file *out);
// reader.c: row `index` of a table. No check is left to do on the position.
void n8_read_tensor(const struct n8_file *file, size_t index, struct n8_file_tensor *out);
void n8_read_op(const struct n8_file *file, size_t index, struct n8_file_op *out);
// reader.c: the array of `count` entries of `entry` bytes at `offset` of the file, or NULL if
// it does not lie in the data section or is misaligned. NULL, too, once all arrays together
// are larger than the section: they overlap then, and packed copies of one array would let
// a small file ask for any amount of memory.
const void *n8_read_array(struct n8_file *file, uint64_t offset, size_t count, size_t entry);
// reader.c: the name at `offset`, or NULL.
const char *n8_read_name(const struct n8_file *file, uint32_t offset);

// reader_steps.c: checks one row against the tensors and plans it; packs nothing.
enum n8_status n8_read_step(struct n8_file *file, const struct n8_file_op *op,
                            const struct n8_model *model, struct n8_step *step);

// plan.c: lifetimes and arena offsets; N8_E_FORMAT: a tensor is used before it is made, made
// twice, or never.
enum n8_status n8_plan_arena(struct n8_model *model);

#endif // N8_MODEL_H
