// SPDX-License-Identifier: Apache-2.0
//
// Frame of every assembly file: symbols, unwinding, BTI and the notes that tell the linker
// that no executable stack is needed and that BTI and PAC may stay on.
#ifndef N8_ASM_H
#define N8_ASM_H

// Debuggers find how to unwind in a section that takes no memory; nothing else unwinds.
        .cfi_sections .debug_frame

// What functions of a level may use: its march in runtime/levels.inc.
#define NEON    armv8-a
#define DOTPROD armv8.2-a+dotprod
#define I8MM    armv8.2-a+dotprod+i8mm

// Opens a global function that is hidden from users of the library. The hint is `bti c`,
// which assemblers accept by that name only above the baseline.
.macro  func    name, march=NEON
        .arch   \march
        .text
        .p2align 4
        .global \name
        .hidden \name
        .type   \name, %function
\name:
        .cfi_startproc
        hint    #34
.endm

// Each of the registers is as the caller had it, from here on.
.macro  restored registers:vararg
        .irp    register, \registers
        .cfi_restore \register
        .endr
.endm

// Closes it.
.macro  endfunc name
        .cfi_endproc
        .size   \name, . - \name
        .arch   NEON
.endm

        .section .note.GNU-stack, "", %progbits

        .section .note.gnu.property, "a"
        .p2align 3
        .word   4                               // size of "GNU\0"
        .word   16                              // size of the description
        .word   5                               // NT_GNU_PROPERTY_TYPE_0
        .asciz  "GNU"
        .word   0xc0000000                      // GNU_PROPERTY_AARCH64_FEATURE_1_AND
        .word   4                               // size of the value
        .word   3                               // BTI | PAC
        .word   0                               // padding to 8 bytes
        .text

#endif // N8_ASM_H
