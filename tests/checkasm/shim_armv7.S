// SPDX-License-Identifier: Apache-2.0
//
// Calls call->fn with noise in every register that a callee may not rely on and with marks in
// every register that it must preserve, and writes down what it finds afterwards.
//
//   void checkasm_shim(struct call *call);
//
// Thumb code, as most callers are: a callee that returns in A32 is a trap.
//
// Registers: whatever the callee left of them, so everything the way back needs is in
//   `call`, which is found through checkasm_current (one checked call at a time).
// Stack: the callee's arguments and, above them, marks; sp is restored from `call`.
#include "asm.h"
#include "call.h"

        .fpu    neon

#define call            r0
#define temp            r1
#define target          r12
#define noise           q15

#define MARKS           16                      // above the four words that may be arguments
#define FRAME           32

        .bss
        .p2align 2
checkasm_current:
        .skip   4

        .text
        .thumb
        .p2align 2
        .global checkasm_shim
        .hidden checkasm_shim
        .type   checkasm_shim, %function
checkasm_shim:
        movw    temp, #:lower16:checkasm_current - (1f + 4)
        movt    temp, #:upper16:checkasm_current - (1f + 4)
1:      add     temp, pc
        str     call, [temp]

        // The shim's own duties first.
        add     temp, call, #CALL_SAVED
        stmia   temp!, {r4-r11}
        vstmia  temp!, {d8-d15}
        str     lr, [temp]
        str     sp, [call, #CALL_SAVED_SP]
        sub     sp, sp, #FRAME
        str     sp, [call, #CALL_BEFORE_SP]

        // Conditions, saturation and exceptions are flags, the rest of FPSCR is control.
        ldr     r2, [call, #CALL_FLAGS]
        vmrs    temp, fpscr
        str     temp, [call, #CALL_BEFORE_FPCR]
        and     r3, r2, #0xf8000000
        orr     temp, temp, r3
        orr     temp, temp, #0x9f
        vmsr    fpscr, temp
        msr     APSR_nzcvqg, r2

        // Marks, then the noise (quiet NaNs as floats).
        add     temp, call, #CALL_BEFORE_STACK
        ldmia   temp, {r4-r7}
        add     temp, sp, #MARKS
        stmia   temp, {r4-r7}
        ldr     r4, [call, #CALL_WORDS + 32]
        ldr     r5, [call, #CALL_WORDS + 40]
        ldr     r6, [call, #CALL_WORDS + 48]
        ldr     r7, [call, #CALL_WORDS + 56]
        stmia   sp, {r4-r7}
        add     temp, call, #CALL_BEFORE
        ldmia   temp!, {r4-r11}
        vldmia  temp, {d8-d15}
        movw    temp, #0xa5a5
        movt    temp, #0x7fe5
        vdup.32 noise, temp
        .irp    n, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14
        vmov    q\n, noise
        .endr
        vldr    s0, [call, #CALL_V0]
        ldr     target, [call, #CALL_FN]
        ldr     r1, [call, #CALL_WORDS + 8]
        ldr     r2, [call, #CALL_WORDS + 16]
        ldr     r3, [call, #CALL_WORDS + 24]
        ldr     r0, [call, #CALL_WORDS]
        b       2f

        // A callee that comes back in Thumb goes back four bytes more than the way here; in A32
        // the same halfword is the lower one of an undefined instruction.
        .p2align 2
1:      b.w     3f
        nop
2:      blx     target
        b.n     1b
        .short  0xe7f0

        // What is left of the marks.
3:      movw    call, #:lower16:checkasm_current - (1f + 4)
        movt    call, #:upper16:checkasm_current - (1f + 4)
1:      add     call, pc
        ldr     call, [call]
        str     sp, [call, #CALL_AFTER_SP]
        add     temp, call, #CALL_AFTER
        stmia   temp!, {r4-r11}
        vstmia  temp, {d8-d15}
        vmrs    temp, fpscr
        str     temp, [call, #CALL_AFTER_FPCR]
        ldr     temp, [call, #CALL_BEFORE_SP]
        add     temp, temp, #MARKS
        ldmia   temp, {r4-r7}
        add     temp, call, #CALL_AFTER_STACK
        stmia   temp, {r4-r7}

        ldr     temp, [call, #CALL_SAVED_SP]
        mov     sp, temp
        ldr     temp, [call, #CALL_BEFORE_FPCR]
        vmsr    fpscr, temp
        add     temp, call, #CALL_SAVED
        ldmia   temp!, {r4-r11}
        vldmia  temp!, {d8-d15}
        ldr     pc, [temp]
        .size   checkasm_shim, . - checkasm_shim
