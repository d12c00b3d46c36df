// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the selftest: n8_quantize_f32_s8_c with one bad habit each (bare register names
// are the point here).
//
//   void sample_*(int8_t *out, const float *in, size_t count, float inverse,
//                 int32_t zero_point, int32_t lo, int32_t hi);
#include "asm.h"

        .fpu    neon

// The honest kernel with all that may be arguments on the stack, whether `inverse` is in s0 or
// among them; sp is where it was, lr is what it was.
.macro  honest
        push    {r4, lr}
        .cfi_def_cfa_offset 8
        .cfi_offset r4, -8
        .cfi_offset lr, -4
        ldr     r12, [sp, #16]
        ldr     lr, [sp, #20]
        push    {r12, lr}
        ldr     r12, [sp, #16]
        ldr     lr, [sp, #20]
        push    {r12, lr}
        .cfi_adjust_cfa_offset 16
        bl      n8_quantize_f32_s8_c
        add     sp, sp, #16
        .cfi_adjust_cfa_offset -16
        pop     {r4, lr}
        .cfi_adjust_cfa_offset -8
        .cfi_restore r4
        .cfi_restore lr
.endm

// Each of the first group runs `\code` after it.
.macro  sample  name, code:vararg
func    \name
        honest
        \code
        bx      lr
endfunc \name
.endm

        sample  sample_clobbers_r4, mov r4, #0
        sample  sample_clobbers_r9, add r9, r9, #1
        sample  sample_clobbers_r11, mov r11, #0
        sample  sample_clobbers_s16, vmov.f32 s16, #1.0
        sample  sample_clobbers_s17, vmov.f32 s17, #1.0
        sample  sample_clobbers_d15, vmov.i32 d15, #0
        sample  sample_changes_sp, sub sp, sp, #8
        sample  sample_writes_callers_stack, str sp, [sp, #16]
        sample  sample_returns_in_a32, bic lr, lr, #1

// Allowed: all that the procedure call standard calls temporary, arguments on the stack too.
func    sample_uses_all_it_may
        honest
        .irp    n, 0, 1, 2, 3, 12
        mov     r\n, #\n
        .endr
        .irp    n, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15
        vmov.i32 q\n, #0
        .endr
        stm     sp, {r0-r3}
        vmrs    r0, fpscr
        bic     r0, r0, #0xf8000000
        bic     r0, r0, #0x9f
        vmsr    fpscr, r0
        msr     APSR_nzcvqg, r1
        bx      lr
endfunc sample_uses_all_it_may

// Rounding towards zero from here on.
func    sample_changes_rounding
        honest
        vmrs    r0, fpscr
        orr     r0, r0, #0xc00000
        vmsr    fpscr, r0
        bx      lr
endfunc sample_changes_rounding

func    sample_flushes_to_zero
        honest
        vmrs    r0, fpscr
        orr     r0, r0, #0x1000000
        vmsr    fpscr, r0
        bx      lr
endfunc sample_flushes_to_zero

// A value below sp survives until the next signal: waits for one and gives a wrong first byte
// if the value is gone. The wait has an end, should no timer run.
func    sample_stores_below_sp
        push    {r4-r6, lr}
        .cfi_def_cfa_offset 16
        .cfi_offset r4, -16
        .cfi_offset r5, -12
        .cfi_offset r6, -8
        .cfi_offset lr, -4
        movw    r4, #0x1234
        str     r4, [sp, #-16]
        movw    r5, #:lower16:check_ticks - (1f + 8)
        movt    r5, #:upper16:check_ticks - (1f + 8)
1:      add     r5, r5, pc
        ldr     r6, [r5]
        mov     r12, #0x4000000
2:      ldr     lr, [r5]
        cmp     lr, r6
        bne     3f
        subs    r12, r12, #1
        bne     2b
3:      ldr     lr, [sp, #-16]
        cmp     lr, r4
        pop     {r4-r6, lr}
        .cfi_def_cfa_offset 0
        beq     n8_quantize_f32_s8_c
        bx      lr                              // nothing written
endfunc sample_stores_below_sp

// Whose loads fault where floats lie at a multiple of 4 and bytes anywhere: on processors, and under
// qemu from 7.0 on.
func    sample_trusts_a_hint
        cmp     r2, #2
        blo     n8_quantize_f32_s8_c
        vld1.32 {d16}, [r1 :64]
        b       n8_quantize_f32_s8_c
endfunc sample_trusts_a_hint

func    sample_loads_bytes_as_words
        cmp     r2, #4
        blo     n8_quantize_f32_s8_c
        vldr    s1, [r0]
        b       n8_quantize_f32_s8_c
endfunc sample_loads_bytes_as_words

// The rest does nothing where it was given noise.
func    sample_trusts_vectors
        vmov.32 r12, d20[0]
        cmp     r12, #0
        beq     n8_quantize_f32_s8_c
        bx      lr
endfunc sample_trusts_vectors

func    sample_trusts_r12
        cmp     r12, #0
        beq     n8_quantize_f32_s8_c
        bx      lr
endfunc sample_trusts_r12

func    sample_trusts_s1
        vmov    r12, s1
        cmp     r12, #0
        beq     n8_quantize_f32_s8_c
        bx      lr
endfunc sample_trusts_s1
