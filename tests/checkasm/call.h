// SPDX-License-Identifier: Apache-2.0
//
// One kernel call as data, so that a call can be repeated, made through the register
// checking shim, or made from another thread. Assembly includes this header too.
#ifndef N8_CHECKASM_CALL_H
#define N8_CHECKASM_CALL_H

// What a callee must preserve, in units of 64 bits.
#if defined(__aarch64__)
#define CALL_GENERAL 11 // x19 to x29
#else
#define CALL_GENERAL 4 // r4 to r11, two in each
#endif
#define CALL_VECTOR    8 // d8 to d15
#define CALL_STACK     2 // above its arguments
#define CALL_PRESERVED (CALL_GENERAL + CALL_VECTOR + CALL_STACK)

#define CALL_FN           0
#define CALL_WORDS        8
#define CALL_V0           72
#define CALL_FLAGS        80
#define CALL_SAVED        88
#define CALL_SAVED_SP     (CALL_SAVED + 8 * (CALL_GENERAL + 1 + CALL_VECTOR))
#define CALL_BEFORE       (CALL_SAVED_SP + 8)
#define CALL_BEFORE_STACK (CALL_BEFORE + 8 * (CALL_GENERAL + CALL_VECTOR))
#define CALL_BEFORE_SP    (CALL_BEFORE + 8 * CALL_PRESERVED)
#define CALL_BEFORE_FPCR  (CALL_BEFORE_SP + 8)
#define CALL_AFTER        (CALL_BEFORE_FPCR + 8)
#define CALL_AFTER_STACK  (CALL_AFTER + 8 * (CALL_GENERAL + CALL_VECTOR))
#define CALL_AFTER_SP     (CALL_AFTER + 8 * CALL_PRESERVED)
#define CALL_AFTER_FPCR   (CALL_AFTER_SP + 8)

#ifndef __ASSEMBLER__
#include <stdint.h>

// Calls whose argument is a struct of arguments.
#define CALL_STRUCTS(STRUCT)                                                                       \
    STRUCT(IGEMM, igemm)                                                                           \
    STRUCT(DEPTHWISE, depthwise)                                                                   \
    STRUCT(WINOGRAD, winograd)                                                                     \
    STRUCT(WINOGRAD_GEMM, winograd_gemm)                                                           \
    STRUCT(WINOGRAD_OUTPUT, winograd_output)                                                       \
    STRUCT(POINTWISE, pointwise)                                                                   \
    STRUCT(ADD_S16, add_s16)                                                                       \
    STRUCT(INTERPOLATE, interpolate)                                                               \
    STRUCT(OUTPUT, output)                                                                         \
    STRUCT(DEPTHWISE_S16, depthwise_s16)                                                           \
    STRUCT(POOL, pool)                                                                             \
    STRUCT(BLEND, blend)                                                                           \
    STRUCT(AFFINE, affine)                                                                         \
    STRUCT(NORMALIZE, normalize)                                                                   \
    STRUCT(LRN, lrn)

enum signature {
    SIGNATURE_QUANTIZE,
    SIGNATURE_DEQUANTIZE,
    SIGNATURE_DEQUANTIZE_ACC,
    SIGNATURE_REQUANTIZE_ACC,
    SIGNATURE_WINOGRAD_INPUT,
    SIGNATURE_WINOGRAD_WEIGHTS,
    SIGNATURE_SOFTMAX,
    SIGNATURE_TABLE,
    SIGNATURE_TABLES,
    SIGNATURE_SUMS,
    SIGNATURE_POWERS,
    SIGNATURE_TOP,
    SIGNATURE_PLANES,
    SIGNATURE_TRANSPOSE,
    SIGNATURE_QUANTIZE_S16,
    SIGNATURE_DEQUANTIZE_S16,
#define SIGNATURE(signature, name) SIGNATURE_##signature,
    CALL_STRUCTS(SIGNATURE)
#undef SIGNATURE
};

typedef void any_fn(void);

enum { CALL_WORD_COUNT = 8 };

// What a callee must leave as it was.
struct call_state {
    uint64_t preserved[CALL_PRESERVED];
    uint64_t sp, fpcr; // the control bits of FPSCR where there is no FPCR
};

// Everything has 64 bits, of which a 32-bit machine looks at the low ones.
struct call {
    _Alignas(8) any_fn *fn;
    // What the shim passes, in registers and then on the stack: x, noise after it, and the float
    // argument among it where the calling convention has it there.
    _Alignas(8) uint64_t words[CALL_WORD_COUNT];
    uint64_t v0;                                    // the float argument in the low half
    uint64_t flags;                                 // noise
    uint64_t saved[CALL_GENERAL + 1 + CALL_VECTOR]; // of the shim itself, with its way back
    uint64_t saved_sp;
    struct call_state before, after;
    uint64_t x[CALL_WORD_COUNT]; // integers and pointers, the upper halves of int32 ones are noise
    enum signature signature;
};

// Calls it the plain way.
void call_plain(const struct call *call);
// Calls it through the shim where there is one. NULL, or what the callee did wrong.
const char *call_checked(struct call *call, uint64_t noise);
#endif

#endif // N8_CHECKASM_CALL_H
