// SPDX-License-Identifier: Apache-2.0
//
// The kernels that a model may use, from kernels.inc: of each plain slot the one it does use,
// and all rows for convolutions, among which choose.h chooses for each layer.
#ifndef N8_DISPATCH_H
#define N8_DISPATCH_H

#include "cpu.h"
#include "include/neon8.h"
#include "kernel.h"

struct n8_kernels {
    enum n8_isa isa;           // no kernel is of a higher level
    enum n8_core core;         // that kernels should be ordered for
    size_t cache;              // bytes of a second-level cache
    bool frugal;               // weights are not made larger in order to be faster
    n8_winograd_gemm_fn *gemm; // the best one, for int16 whatever it is of
    const char *gemm_name;
    size_t gemm_width;
#define N8_MEMBER(slot, type)                                                                      \
    type *slot;                                                                                    \
    const char *slot##_name;
    N8_PLAIN_SLOTS(N8_MEMBER)
#undef N8_MEMBER
};

enum n8_conv_slot {
#define N8_NUMBER(slot, type) N8_SLOT_##slot,
    N8_CONV_SLOTS(N8_NUMBER)
#undef N8_NUMBER
};

// The kernels of a row N8_WINOGRAD.
struct n8_winograd16 {
    n8_winograd_input_fn *input;
    n8_winograd_gemm_fn *gemm;
    n8_winograd_output_fn *output;
};

enum n8_conv_kind { N8_CONV_IGEMM, N8_CONV_DEPTHWISE, N8_CONV_WINOGRAD16 };

// A row N8_GEMM, N8_DEPTHWISE or N8_WINOGRAD of kernels.inc. There are many: what can be is a byte,
// and names, which a library that may lie anywhere would have to relocate, lie in one place.
struct n8_conv_row {
    union {
        n8_igemm_fn *igemm;
        n8_depthwise_fn *depthwise;
        const struct n8_winograd16 *winograd16;
    };
    uint16_t name;                // n8_conv_row_name
    uint8_t kind;                 // enum n8_conv_kind: which of the union
    uint8_t slot, level, core;    // enum n8_conv_slot, n8_isa, n8_core
    struct n8_tile tile;          // igemm; winograd16: nr, the width of a panel
    uint8_t block;                // depthwise, with the size that it serves, or 0
    uint8_t height, width, ratio; // of stride and dilation
    uint8_t outputs;              // depthwise: rows of them at once
};

#pragma GCC visibility push(hidden)
extern const struct n8_conv_row n8_conv_rows[];
extern const size_t n8_conv_row_count;
#pragma GCC visibility pop

// The symbol of its kernel.
const char *n8_conv_row_name(const struct n8_conv_row *row);

// Fills `out` with the best kernels up to level `isa`. N8_ISA_AUTO reads the environment
// variable N8_ISA. N8_E_UNSUPPORTED: this processor lacks the level, or N8_ISA is no level.
enum n8_status n8_kernels_select(enum n8_isa isa, struct n8_kernels *out);

#endif // N8_DISPATCH_H
