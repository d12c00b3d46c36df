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

        .section .note.GNU-stack, "", %progbits
        .text

#endif // N8_ASM_H
