// SPDX-License-Identifier: Apache-2.0
//
// Frame of every assembly file: symbols, unwinding, and the note that tells the linker that no
// executable stack is needed. Kernels are A32 code; linkers turn the calls of Thumb code into blx, and
// `bx lr` goes back to it.
#ifndef N8_ASM_H
#define N8_ASM_H

        .syntax unified
        .arm

// Debuggers find how to unwind in a section that takes no memory; nothing else unwinds.
        .cfi_sections .debug_frame

// Opens a global function that is hidden from users of the library.
.macro  func    name
        .text
        .p2align 4
        .global \name
        .hidden \name
        .type   \name, %function
\name:
        .cfi_startproc
.endm

// Closes it.
.macro  endfunc name
        .cfi_endproc
        .size   \name, . - \name
.endm

// Preserves all that a function must, in 100 bytes of the stack.
.macro  push_all
        push    {r4-r11, lr}
        .cfi_def_cfa_offset 36
        vpush   {d8-d15}
        .cfi_def_cfa_offset 100
        .set    n8_place, -100
    .irp    register, d8, d9, d10, d11, d12, d13, d14, d15
        .cfi_offset \register, n8_place
        .set    n8_place, n8_place + 8
    .endr
    .irp    register, r4, r5, r6, r7, r8, r9, r10, r11, lr
        .cfi_offset \register, n8_place
        .set    n8_place, n8_place + 4
    .endr
.endm

// Gives it back and returns.
.macro  pop_all
        vpop    {d8-d15}
        .cfi_def_cfa_offset 36
    .irp    register, d8, d9, d10, d11, d12, d13, d14, d15
        .cfi_restore \register
    .endr
        pop     {r4-r11, pc}
.endm

// The float argument that comes after three of one word: s0 gets it, r3 the integer behind it, and what
// follows that is on the stack, from FOLLOWING on. Comes before anything is pushed.
#ifdef __ARM_PCS_VFP
#define FOLLOWING 0
.macro  take_float
.endm
#else
#define FOLLOWING 4
.macro  take_float
        vmov    s0, r3
        ldr     r3, [sp]
.endm
#endif

        .section .note.GNU-stack, "", %progbits
        .text

#endif // N8_ASM_H
