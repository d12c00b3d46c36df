// SPDX-License-Identifier: Apache-2.0
//
// A convolution, planned and packed: what every layer with weights runs on.
//
// Two ways. Depthwise layers call a row kernel over channels. All others are an implicit
// GEMM: for a block of output pixels the driver writes down where the input pixel under each
// tap lies (or the padding row), and the kernel multiplies. Copied are only the windows of layers
// with so few channels that most of a kernel's step would be padding, and the rows for kernels
// that read packed ones.
#ifndef N8_CONV_H
#define N8_CONV_H

#include "include/neon8.h"
#include "kernels.h"
#include "limits.h"

enum {
    N8_CONV_ALIGN = 64, // of packed weights, arrays and parts of scratch memory
    N8_PIXEL = 8,       // the channels of an int8 pixel are padded to a multiple of this
};

struct n8_conv {
    struct n8_conv2d_shape shape;
    struct n8_conv2d_epilogue epilogue; // its arrays point into the packed memory
    int32_t in_zero_point;
    const struct n8_conv_row *row; // the kernel, with the geometry of everything below
    const char *kernel_name;
    const char *reason; // why this kernel or, where there is none, why not the last candidate
    bool unfolded;      // igemm: few channels; each window is copied and is a single tap
    size_t taps;        // kernel_height * kernel_width, or 1
    size_t groups;      // packed one by one; a depthwise kernel takes all as one
    size_t group_in;    // channels of one group, times the taps of an unfolded window
    size_t group_out;
    size_t depth;         // igemm: bytes of one tap, group_in rounded up to the packing's step
    size_t group_weights; // packed bytes of one group
    size_t group_entries; // entries of one group in each of the epilogue's arrays
    n8_requantize_fixed_fn *requantize_fixed; // of sums that a kernel left in scratch memory
    const int8_t *weights;
    size_t window;       // igemm: bytes from one copied window to the next;
                         // depthwise: columns of a copy of the border
    size_t packed_rows;  // igemm: bytes of a unit's rows, where the kernel reads packed ones, or 0
    size_t rows_size;    // igemm: of the copied windows of a unit, or of a row of padding;
                         // depthwise: of a row of padding
    size_t block;        // igemm: output pixels of one unit; depthwise: of a copy of the border
    bool whole_rows;     // depthwise: a copy is a row of the input
    bool small;          // depthwise: as in kernel.h
    size_t slices;       // igemm: units that share a block's channels, the same number a group;
                         // 1: a unit has all channels of all groups
    size_t slice;        // igemm: channels of one slice, at most; packed panels begin there
    size_t units;        // of work; each may run on another thread
    size_t packed_size;  // bytes that n8_conv_pack fills
    size_t scratch_size; // bytes of one thread
};

// Depthwise: the columns that `pixels` neighbouring outputs see, from first to last.
size_t n8_depthwise_window(const struct n8_conv2d_shape *shape, size_t pixels);

// Depthwise: outputs whose whole window lies between the left and the right edge: [*from, *to).
void n8_depthwise_inside(const struct n8_conv2d_shape *shape, int64_t *from, int64_t *to);

struct n8_conv_io {
    void *out;
    ptrdiff_t out_stride; // bytes between pixels, as all strides here
    const int8_t *in;
    ptrdiff_t in_stride;
    const int8_t *residual;
    ptrdiff_t residual_stride;
};

// Checks everything but the arrays, chooses the kernel and computes the sizes. `epilogue`'s
// pointers are only looked at for being NULL. `int16_depth`: products that int16 was proved to
// hold (11), at least 2. N8_E_FORMAT: a field is out of range; N8_E_UNSUPPORTED: no kernel.
enum n8_status n8_conv_plan(struct n8_conv *conv, const struct n8_conv2d_shape *shape,
                            int32_t in_zero_point, const struct n8_conv2d_epilogue *epilogue,
                            uint32_t int16_depth, const struct n8_kernels *kernels);

// What the arrays of a convolution prove, over all output channels.
struct n8_conv_proof {
    uint64_t acc_bound;             // (12): the largest sum |w| * 128 + |bias|
    int32_t weights_lo, weights_hi; // the smallest and the largest weight
};

// Checks the arrays of a planned convolution, which may be aligned to nothing. N8_E_FORMAT: a
// multiplier, bias or slope out of range, or `int16_depth` products that can leave int16 (11), two
// of them where a weight is -128; N8_E_OVERFLOW: (12). `error` is told the reason.
enum n8_status n8_conv_prove(const struct n8_conv *conv, const int8_t *weights,
                             uint32_t int16_depth, struct n8_conv_proof *out,
                             struct n8_model_error *error);

// Packs checked arrays into `memory`, packed_size zeroed bytes, aligned to 64.
void n8_conv_pack(struct n8_conv *conv, const int8_t *weights, void *memory);

// Runs units [begin, end). `scratch`: scratch_size bytes of this thread, aligned to 64.
void n8_conv_run(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin, size_t end,
                 void *scratch);

#endif // N8_CONV_H
