// SPDX-License-Identifier: Apache-2.0
#include "call.h"
#include "kernel.h"

#include <stddef.h>
#include <string.h>

static void *pointer(uint64_t x) {
    return (void *)(uintptr_t)x;
}

static float single(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

void call_plain(const struct call *call) {
    const uint64_t *x = call->x;
    switch (call->signature) {
#define CASE(signature, name)                                                                      \
    case SIGNATURE_##signature:                                                                    \
        ((n8_##name##_fn *)call->fn)(pointer(x[0]));                                               \
        break;
        CALL_STRUCTS(CASE)
#undef CASE
    case SIGNATURE_QUANTIZE:
        ((n8_quantize_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2], single(call->v0),
                                     (int32_t)x[3], (int32_t)x[4], (int32_t)x[5]);
        break;
    case SIGNATURE_DEQUANTIZE:
        ((n8_dequantize_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2], single(call->v0),
                                       (int32_t)x[3]);
        break;
    case SIGNATURE_DEQUANTIZE_ACC:
        ((n8_dequantize_acc_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2], (size_t)x[3],
                                           pointer(x[4]), pointer(x[5]));
        break;
    case SIGNATURE_REQUANTIZE_ACC:
        ((n8_requantize_acc_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2], (size_t)x[3],
                                           pointer(x[4]), (int32_t)x[5], (int32_t)x[6],
                                           (int32_t)x[7]);
        break;
    case SIGNATURE_WINOGRAD_INPUT:
        ((n8_winograd_input_fn *)call->fn)(pointer(x[0]), (size_t)x[1], pointer(x[2]),
                                           (ptrdiff_t)x[3], (ptrdiff_t)x[4], (size_t)x[5]);
        break;
    case SIGNATURE_WINOGRAD_WEIGHTS:
        ((n8_winograd_weights_fn *)call->fn)(pointer(x[0]), (size_t)x[1], pointer(x[2]),
                                             (size_t)x[3], (size_t)x[4], (size_t)x[5]);
        break;
    case SIGNATURE_SOFTMAX:
        ((n8_softmax_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2]);
        break;
    case SIGNATURE_TABLE:
        ((n8_table_fn *)call->fn)(pointer(x[0]), (size_t)x[1], pointer(x[2]), (size_t)x[3],
                                  (size_t)x[4], (size_t)x[5], pointer(x[6]));
        break;
    case SIGNATURE_TABLES:
        ((n8_tables_fn *)call->fn)(pointer(x[0]), (size_t)x[1], pointer(x[2]), (size_t)x[3],
                                   (size_t)x[4], pointer(x[5]));
        break;
    case SIGNATURE_SUMS:
        ((n8_sums_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2]);
        break;
    case SIGNATURE_POWERS:
        ((n8_powers_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2], pointer(x[3]));
        break;
    case SIGNATURE_TOP:
        ((n8_top_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2], pointer(x[3]),
                                (int32_t)x[4], (int32_t)x[5]);
        break;
    case SIGNATURE_PLANES:
        ((n8_planes_fn *)call->fn)(pointer(x[0]), (size_t)x[1], pointer(x[2]), (size_t)x[3],
                                   (size_t)x[4], (size_t)x[5]);
        break;
    case SIGNATURE_QUANTIZE_S16:
        ((n8_quantize_s16_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2],
                                         single(call->v0), (int32_t)x[3], (int32_t)x[4],
                                         (int32_t)x[5]);
        break;
    case SIGNATURE_DEQUANTIZE_S16:
        ((n8_dequantize_s16_fn *)call->fn)(pointer(x[0]), pointer(x[1]), (size_t)x[2],
                                           single(call->v0), (int32_t)x[3]);
        break;
    case SIGNATURE_TRANSPOSE:
        ((n8_transpose_fn *)call->fn)(pointer(x[0]), (size_t)x[1], pointer(x[2]), (size_t)x[3],
                                      (size_t)x[4], (size_t)x[5]);
        break;
    }
}

#if defined(__aarch64__) || defined(__arm__)
_Static_assert(offsetof(struct call, fn) == CALL_FN, "fn");
_Static_assert(offsetof(struct call, words) == CALL_WORDS, "words");
_Static_assert(offsetof(struct call, v0) == CALL_V0, "v0");
_Static_assert(offsetof(struct call, flags) == CALL_FLAGS, "flags");
_Static_assert(offsetof(struct call, saved) == CALL_SAVED, "saved");
_Static_assert(offsetof(struct call, saved_sp) == CALL_SAVED_SP, "saved_sp");
_Static_assert(offsetof(struct call, before) == CALL_BEFORE, "before");
_Static_assert(offsetof(struct call, before.sp) == CALL_BEFORE_SP, "before.sp");
_Static_assert(offsetof(struct call, before.fpcr) == CALL_BEFORE_FPCR, "before.fpcr");
_Static_assert(offsetof(struct call, after) == CALL_AFTER, "after");
_Static_assert(offsetof(struct call, after.sp) == CALL_AFTER_SP, "after.sp");
_Static_assert(offsetof(struct call, after.fpcr) == CALL_AFTER_FPCR, "after.fpcr");

#if defined(__aarch64__)
#define GENERAL "one of x19 to x29 changed"
#define CONTROL "FPCR changed"
enum { CONTROL_BITS = -1 };
#else
#define GENERAL "one of r4 to r11 changed"
#define CONTROL "the control bits of FPSCR changed"
// Conditions and cumulative flags come back as they like.
enum { CONTROL_BITS = 0x07ffff60 };
#endif

enum { FLOAT_ARGUMENT = 3 }; // its number where there is one

// How many members of x a kernel has: the struct of its arguments unless it is listed.
static size_t count_of(enum signature signature) {
    switch (signature) {
    case SIGNATURE_SOFTMAX:
    case SIGNATURE_SUMS:
        return 3;
    case SIGNATURE_DEQUANTIZE:
    case SIGNATURE_DEQUANTIZE_S16:
    case SIGNATURE_POWERS:
        return 4;
    case SIGNATURE_QUANTIZE:
    case SIGNATURE_QUANTIZE_S16:
    case SIGNATURE_DEQUANTIZE_ACC:
    case SIGNATURE_WINOGRAD_INPUT:
    case SIGNATURE_WINOGRAD_WEIGHTS:
    case SIGNATURE_PLANES:
    case SIGNATURE_TABLES:
    case SIGNATURE_TRANSPOSE:
    case SIGNATURE_TOP:
        return 6;
    case SIGNATURE_TABLE:
        return 7;
    case SIGNATURE_REQUANTIZE_ACC:
        return 8;
    default:
        return 1;
    }
}

// Never 0 in any half: a callee that clears one must be noticed.
static uint64_t mark(uint64_t *noise) {
    *noise = *noise * 6364136223846793005u + 1442695040888963407u;
    return *noise | 0x8000000180000001u;
}

static void set_words(struct call *call, uint64_t *noise) {
    const size_t count = count_of(call->signature);
    for (size_t i = 0; i < CALL_WORD_COUNT; i++)
        call->words[i] = i < count ? call->x[i] : mark(noise);
#if defined(__arm__) && !defined(__ARM_PCS_VFP)
    switch (call->signature) {
    case SIGNATURE_QUANTIZE:
    case SIGNATURE_QUANTIZE_S16:
    case SIGNATURE_DEQUANTIZE:
    case SIGNATURE_DEQUANTIZE_S16:
        memcpy(call->words + FLOAT_ARGUMENT + 1, call->x + FLOAT_ARGUMENT,
               (count - FLOAT_ARGUMENT) * sizeof call->x[0]);
        call->words[FLOAT_ARGUMENT] = call->v0;
        break;
    default:
        break;
    }
#endif
}

void checkasm_shim(struct call *call);

const char *call_checked(struct call *call, uint64_t noise) {
    set_words(call, &noise);
    for (size_t i = 0; i < CALL_PRESERVED; i++)
        call->before.preserved[i] = mark(&noise);
    call->flags = mark(&noise);
    checkasm_shim(call);
    if (call->after.sp != call->before.sp)
        return "sp changed";
    if ((call->after.fpcr ^ call->before.fpcr) & (uint64_t)CONTROL_BITS)
        return CONTROL;
    for (size_t i = 0; i < CALL_PRESERVED; i++) {
        if (call->after.preserved[i] != call->before.preserved[i])
            return i < CALL_GENERAL                 ? GENERAL
                   : i < CALL_GENERAL + CALL_VECTOR ? "one of d8 to d15 changed"
                                                    : "the stack of its caller changed";
    }
    return NULL;
}
#else
const char *call_checked(struct call *call, uint64_t noise) {
    (void)noise;
    call_plain(call);
    return NULL;
}
#endif
