// SPDX-License-Identifier: Apache-2.0
//
// One kernel call as data, so that a call can be repeated, made through the register
// checking shim, or made from another thread. Assembly includes this header too.
#ifndef N8_CHECKASM_CALL_H
#define N8_CHECKASM_CALL_H

#define CALL_FN          0
#define CALL_X           8
#define CALL_V0          72
#define CALL_FLAGS       80
#define CALL_SAVED       88
#define CALL_SAVED_SP    248
#define CALL_BEFORE      256
#define CALL_BEFORE_SP   408
#define CALL_BEFORE_FPCR 416
#define CALL_AFTER       424
#define CALL_AFTER_SP    576
#define CALL_AFTER_FPCR  584

#ifndef __ASSEMBLER__
#include <stdint.h>

enum signature {
    SIGNATURE_QUANTIZE,
    SIGNATURE_DEQUANTIZE,
    SIGNATURE_DEQUANTIZE_ACC,
    SIGNATURE_REQUANTIZE_ACC,
    SIGNATURE_REQUANTIZE_FIXED,
    SIGNATURE_IGEMM,
    SIGNATURE_DEPTHWISE,
    SIGNATURE_WINOGRAD,
    SIGNATURE_WINOGRAD_GEMM,
    SIGNATURE_WINOGRAD_INPUT,
    SIGNATURE_WINOGRAD_OUTPUT,
    SIGNATURE_POINTWISE,
    SIGNATURE_POOL,
    SIGNATURE_BLEND,
    SIGNATURE_SOFTMAX,
    SIGNATURE_TABLE,
    SIGNATURE_AFFINE,
    SIGNATURE_LRN,
    SIGNATURE_PLANES,
    SIGNATURE_TRANSPOSE,
    SIGNATURE_QUANTIZE_S16,
    SIGNATURE_DEQUANTIZE_S16,
    SIGNATURE_ADD_S16,
    SIGNATURE_OUTPUT,
    SIGNATURE_DEPTHWISE_S16,
};

typedef void any_fn(void);

// x19 to x29 and d8 to d15.
enum { CALL_GENERAL = 11, CALL_VECTOR = 8, CALL_PRESERVED = CALL_GENERAL + CALL_VECTOR };

// What a callee must leave as it was.
struct call_state {
    uint64_t registers[CALL_PRESERVED];
    uint64_t sp, fpcr;
};

struct call {
    any_fn *fn;
    uint64_t x[8]; // integer and pointer arguments, upper halves of int32 ones are noise
    uint64_t v0;   // the float argument in the low half
    uint64_t flags;
    uint64_t saved[20]; // of the shim itself: x19 to x30 and d8 to d15
    uint64_t saved_sp;
    struct call_state before, after;
    enum signature signature;
};

// Calls it the plain way.
void call_plain(const struct call *call);
// Calls it through the shim where there is one. NULL, or what the callee did wrong.
const char *call_checked(struct call *call, uint64_t noise);
#endif

#endif // N8_CHECKASM_CALL_H
