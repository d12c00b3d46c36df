// SPDX-License-Identifier: Apache-2.0
//
// A convolution, planned and packed: what every layer with weights runs on.
//
// A layer is computed by one of several algorithms, which algorithm.h lists.
#ifndef N8_CONV_H
#define N8_CONV_H

#include "cpu/dispatch.h"
#include "include/neon8.h"
#include "limits.h"

enum {
    N8_WINOGRAD_REACH = 1 << 25, // (13): beyond all its sums
    N8_CONV_ALIGN = 64,          // of packed weights, arrays and parts of scratch memory
    N8_PIXEL = 8, // the channels of an int8 or int16 pixel are padded to a multiple of this
};

// What decided on a kernel, in words.
struct n8_conv_reasons {
    const char *chosen; // why this one or, where there is none, why not the last candidate
    const char *passed; // one that would be preferred to it, or NULL
    const char *lack;   // why it was not taken
};

// What each algorithm plans for itself.
struct n8_igemm_plan {
    bool unfolded;      // few channels: each window is copied and is a single tap
    size_t bundle;      // groups of the layer that are packed as one
    size_t block;       // output pixels of a unit
    size_t marks;       // where in a group's packed weights those of GROUPS lie
    size_t window;      // bytes of a copied window
    size_t column;      // of a window, where these are copied by columns; 0: by rows
    size_t tables;      // blocks whose pointers are kept: all, or one
    size_t packed_rows; // bytes of a unit's rows, where the kernel reads packed ones, or 0
    size_t rows_size;   // bytes of the copied windows of a unit, or of a row of padding
};

struct n8_igemm_s16_plan {
    n8_winograd_gemm_fn *gemm; // of panels of `panel` channels
    size_t panel;
    size_t block;  // output pixels of a unit
    size_t window; // bytes of a copied window
};

struct n8_depthwise_plan {       // of int8 and of int16
    n8_depthwise_s16_fn *kernel; // of int16
    bool whole_rows;             // a copy is a row of the input
    size_t block;                // output pixels that one copy serves
    size_t window;               // columns of a copy
    size_t padding_size;         // int8: bytes of a row of padding
};

struct n8_winograd8_plan {
    n8_winograd_fn *transform; // makes the rows of (23)
    uint32_t form;             // of (23), as in the certificate
    size_t block;              // output rows of a unit
    size_t tiles;              // of a row
    size_t row_size, plane;    // bytes of a row of tiles, and from one plane to the next
    size_t panel;              // bytes of the packed weights of one panel
};

struct n8_winograd16_plan {
    n8_planes_fn *interleave; // of weights, to be packed
    n8_winograd_weights_fn *transform;
    bool transforms; // in each run: weights are packed as they are
    size_t block;    // tiles of a unit
};

// What is claimed of a layer's weights. The plan relies on it, n8_conv_prove checks it.
struct n8_conv_certificate {
    uint32_t int16_depth; // (11): products that int16 holds, at least 2
    uint64_t acc_bound;   // (12): no sum is larger
    uint32_t winograd;    // (23): N8_OP_WINOGRAD_WHOLE, N8_OP_WINOGRAD_HALF or 0
};

// How a convolution is computed: one file has each.
#define N8_CONV_ALGORITHMS(X)                                                                      \
    X(igemm)                                                                                       \
    X(igemm_s16)                                                                                   \
    X(depthwise)                                                                                   \
    X(depthwise_s16)                                                                               \
    X(winograd8)                                                                                   \
    X(winograd16)
enum n8_conv_algorithm {
#define N8_NUMBER(symbol) N8_ALGORITHM_##symbol,
    N8_CONV_ALGORITHMS(N8_NUMBER)
#undef N8_NUMBER
};

struct n8_conv {
    struct n8_conv2d_shape shape;
    struct n8_conv2d_epilogue epilogue; // its arrays point into the packed memory
    int32_t in_zero_point;
    int32_t in_lo, in_hi;                // of the values of an int8 input, in_zero_point among them
    enum n8_type in_type, residual_type; // int8 or int16
    bool weights_s16;                    // in the file; else they are int8
    uint32_t reach;                      // of the input: no |q| is more, for (12)
    const struct n8_conv_row *row;       // the kernel, with its geometry; NULL: the algorithm's own
    enum n8_conv_algorithm algorithm;
    const char *kernel_name;
    struct n8_conv_reasons reasons;
    struct n8_conv_certificate certificate;
    size_t taps;     // kernel_height * kernel_width, or what the algorithm makes of them
    size_t groups;   // packed one by one; a depthwise kernel takes all as one
    size_t group_in; // channels of one group, times the taps of an unfolded window
    size_t group_out;
    size_t depth;         // bytes or values of one tap, group_in rounded up to the kernel's step
    size_t group_weights; // packed bytes of one group
    size_t group_entries; // entries of one group in each of the epilogue's arrays
    bool passing;         // weights are packed in each run, which pays for no proof of groups
    bool accumulates;     // kernels leave int32 accumulators in scratch memory, for these:
    n8_output_fn *output;
    n8_dequantize_acc_fn *dequantize;
    const int8_t *weights;
    int32_t small;        // of n8_conv_proof
    const int32_t *start; // (5d), with the epilogue's bias_f32, or NULL
    bool mixed;           // some of its panels begin with 0: (5d) is not proved of these
    size_t slices;        // units that share a block's channels, the same number a group
    size_t slice;         // channels of one slice, at most; packed panels begin there
    size_t cached;        // slices that stay cached and run together, block by block; 0: all
    size_t units;         // of work; each may run on another thread
    size_t packed_size;   // bytes that n8_conv_pack fills
    size_t scratch_size;  // bytes of one thread
    union {
        struct n8_igemm_plan igemm;
        struct n8_igemm_s16_plan igemm_s16;
        struct n8_depthwise_plan depthwise;
        struct n8_winograd8_plan winograd8;
        struct n8_winograd16_plan winograd16;
    };
};

// All pixels are aligned to their type.
struct n8_conv_io {
    void *out;
    ptrdiff_t out_stride; // bytes between pixels, as all strides here
    const int8_t *in;
    ptrdiff_t in_stride;
    const int8_t *residual;
    ptrdiff_t residual_stride;
};

// What a convolution reads.
struct n8_conv_input {
    int32_t zero_point;
    enum n8_type type, residual; // int8 or int16; `residual` means nothing where there is none
    uint32_t reach;              // 128, or of int16 the largest |q| of its range
    bool weights_s16;            // it meets weights of int16
};

// Checks everything but the arrays, chooses the kernel and computes the sizes. `epilogue`'s
// pointers are only looked at for being NULL. N8_E_FORMAT: a field is out of range;
// N8_E_UNSUPPORTED: no kernel.
enum n8_status n8_conv_plan(struct n8_conv *conv, const struct n8_conv2d_shape *shape,
                            const struct n8_conv_input *input,
                            const struct n8_conv2d_epilogue *epilogue,
                            const struct n8_conv_certificate *certificate,
                            const struct n8_kernels *kernels);

// Whether a planned layer's weights are packed larger than they are in order to be faster, for
// which there is another plan: `out`, with the same results.
bool n8_conv_plan_frugal(const struct n8_conv *conv, const struct n8_kernels *kernels,
                         struct n8_conv *out);

// What a kernel may round by adding 1.5 * 2^23, and narrow to int16 without saturating, with a zero
// point; 1 less for the rounding of (6).
enum { N8_SMALL_SUM = 1 << 22, N8_SMALL_RESULT = 32638 };

// What is small (kernel.h) where neither sums nor results go beyond these.
static inline int32_t n8_small(uint64_t sum, double result) {
    return (result < (double)N8_SMALL_RESULT ? N8_SMALL_RESULTS : 0) |
           (sum < N8_SMALL_SUM ? N8_SMALL_SUMS : 0);
}

// What the arrays of a convolution prove, over all output channels.
struct n8_conv_proof {
    uint64_t acc_bound;             // (12): the largest sum |w| * reach + |bias|
    int32_t weights_lo, weights_hi; // the smallest and the largest weight
    int32_t small; // N8_SMALL_RESULTS, which no slope follows, and N8_SMALL_SUMS (kernel.h)
};

// Checks the arrays of a planned convolution, which may be aligned to nothing; `weights` are int16
// where the plan says so, here and in n8_conv_pack. N8_E_FORMAT: a
// multiplier, bias or slope out of range, or weights of which conv->certificate does not hold (two
// products always fit int16, but for those of -128); N8_E_OVERFLOW: a sum can exceed int32.
// `error` is told the reason.
enum n8_status n8_conv_prove(const struct n8_conv *conv, const int8_t *weights,
                             struct n8_conv_proof *out, struct n8_model_error *error);

// What the weights prove, of a layer whose plan was accepted with a certificate that claims less.
struct n8_conv_certificate n8_conv_certify(const struct n8_conv *conv, const int8_t *weights);

// Packs checked arrays into `memory`, packed_size zeroed bytes, aligned to 64.
void n8_conv_pack(struct n8_conv *conv, const int8_t *weights, const struct n8_conv_proof *proof,
                  void *memory);

// Whether what was packed of one planned layer serves another one of the same weights, which
// differs in the sizes of its input at most; and lets it.
bool n8_conv_packs_alike(const struct n8_conv *a, const struct n8_conv *b);
void n8_conv_adopt(struct n8_conv *conv, const struct n8_conv *packed);

// Runs units [begin, end). `scratch`: scratch_size bytes of this thread, aligned to 64.
void n8_conv_run(const struct n8_conv *conv, const struct n8_conv_io *io, size_t begin, size_t end,
                 void *scratch);

#endif // N8_CONV_H
