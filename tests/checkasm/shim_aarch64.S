// SPDX-License-Identifier: Apache-2.0
//
// Calls call->fn with noise in every register that a callee may not rely on and with marks in
// every register that it must preserve, and writes down what it finds afterwards.
//
//   void checkasm_shim(struct call *call);
//
// Registers: whatever the callee left of them, so everything the way back needs is in
//   `call`, which is found through checkasm_current (one checked call at a time).
// Stack: marks alone, which the callee finds above it; sp is restored from `call`.
#include "asm.h"
#include "call.h"

#define call            x9
#define target          x10
#define temp            x11
#define noise           v31

        .bss
        .p2align 3
checkasm_current:
        .skip   8

func    checkasm_shim
        mov     call, x0
        adrp    temp, checkasm_current
        str     call, [temp, :lo12:checkasm_current]

        // The shim's own duties first.
        stp     x19, x20, [call, #CALL_SAVED]
        stp     x21, x22, [call, #CALL_SAVED + 16]
        stp     x23, x24, [call, #CALL_SAVED + 32]
        stp     x25, x26, [call, #CALL_SAVED + 48]
        stp     x27, x28, [call, #CALL_SAVED + 64]
        stp     x29, x30, [call, #CALL_SAVED + 80]
        stp     d8, d9, [call, #CALL_SAVED + 96]
        stp     d10, d11, [call, #CALL_SAVED + 112]
        stp     d12, d13, [call, #CALL_SAVED + 128]
        stp     d14, d15, [call, #CALL_SAVED + 144]
        mov     temp, sp
        str     temp, [call, #CALL_SAVED_SP]
        mrs     temp, fpcr
        str     temp, [call, #CALL_BEFORE_FPCR]

        // Marks, then the noise (quiet NaNs as floats), in the upper halves of v8-v15 too.
        ldp     x19, x20, [call, #CALL_BEFORE_STACK]
        stp     x19, x20, [sp, #-16]!
        mov     temp, sp
        str     temp, [call, #CALL_BEFORE_SP]
        ldp     x19, x20, [call, #CALL_BEFORE]
        ldp     x21, x22, [call, #CALL_BEFORE + 16]
        ldp     x23, x24, [call, #CALL_BEFORE + 32]
        ldp     x25, x26, [call, #CALL_BEFORE + 48]
        ldp     x27, x28, [call, #CALL_BEFORE + 64]
        ldr     x29, [call, #CALL_BEFORE + 80]
        ldp     d8, d9, [call, #CALL_BEFORE + 88]
        ldp     d10, d11, [call, #CALL_BEFORE + 104]
        ldp     d12, d13, [call, #CALL_BEFORE + 120]
        ldp     d14, d15, [call, #CALL_BEFORE + 136]
        mov     temp, #0xa5a5
        movk    temp, #0x7fe5, lsl #16
        movk    temp, #0xa5a5, lsl #32
        movk    temp, #0x7fe5, lsl #48
        dup     noise.2d, temp
        .irp    n, 8, 9, 10, 11, 12, 13, 14, 15
        mov     v\n\().d[1], noise.d[0]
        .endr
        .irp    n, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
        mov     v\n\().16b, noise.16b
        .endr
        .irp    n, 24, 25, 26, 27, 28, 29, 30
        mov     v\n\().16b, noise.16b
        .endr
        mov     v0.16b, noise.16b
        ldr     x0, [call, #CALL_V0]
        mov     v0.d[0], x0
        ldr     x0, [call, #CALL_FLAGS]
        and     x0, x0, #0xf0000000
        msr     nzcv, x0
        mov     x8, temp
        mov     x12, temp
        mov     x13, temp
        mov     x14, temp
        mov     x15, temp
        mov     x17, temp
        ldp     x0, x1, [call, #CALL_WORDS]
        ldp     x2, x3, [call, #CALL_WORDS + 16]
        ldp     x4, x5, [call, #CALL_WORDS + 32]
        ldp     x6, x7, [call, #CALL_WORDS + 48]
        ldr     x16, [call, #CALL_FN]
        mov     call, temp
        mov     target, temp
        blr     x16

        // What is left of the marks.
        adrp    call, checkasm_current
        ldr     call, [call, :lo12:checkasm_current]
        stp     x19, x20, [call, #CALL_AFTER]
        stp     x21, x22, [call, #CALL_AFTER + 16]
        stp     x23, x24, [call, #CALL_AFTER + 32]
        stp     x25, x26, [call, #CALL_AFTER + 48]
        stp     x27, x28, [call, #CALL_AFTER + 64]
        str     x29, [call, #CALL_AFTER + 80]
        str     d8, [call, #CALL_AFTER + 88]
        str     d9, [call, #CALL_AFTER + 96]
        str     d10, [call, #CALL_AFTER + 104]
        str     d11, [call, #CALL_AFTER + 112]
        str     d12, [call, #CALL_AFTER + 120]
        str     d13, [call, #CALL_AFTER + 128]
        str     d14, [call, #CALL_AFTER + 136]
        str     d15, [call, #CALL_AFTER + 144]
        mov     temp, sp
        str     temp, [call, #CALL_AFTER_SP]
        mrs     temp, fpcr
        str     temp, [call, #CALL_AFTER_FPCR]
        ldr     temp, [call, #CALL_BEFORE_SP]
        ldp     x0, x1, [temp]
        str     x0, [call, #CALL_AFTER_STACK]
        str     x1, [call, #CALL_AFTER_STACK + 8]

        ldr     temp, [call, #CALL_SAVED_SP]
        mov     sp, temp
        ldr     temp, [call, #CALL_BEFORE_FPCR]
        msr     fpcr, temp
        ldp     x19, x20, [call, #CALL_SAVED]
        ldp     x21, x22, [call, #CALL_SAVED + 16]
        ldp     x23, x24, [call, #CALL_SAVED + 32]
        ldp     x25, x26, [call, #CALL_SAVED + 48]
        ldp     x27, x28, [call, #CALL_SAVED + 64]
        ldp     x29, x30, [call, #CALL_SAVED + 80]
        ldp     d8, d9, [call, #CALL_SAVED + 96]
        ldp     d10, d11, [call, #CALL_SAVED + 112]
        ldp     d12, d13, [call, #CALL_SAVED + 128]
        ldp     d14, d15, [call, #CALL_SAVED + 144]
        ret
endfunc checkasm_shim
