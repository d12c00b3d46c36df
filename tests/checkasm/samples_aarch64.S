// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the selftest: n8_quantize_f32_s8_c with one bad habit each (bare register names
// are the point here).
//
//   void sample_*(int8_t *out, const float *in, size_t count, float inverse,
//                 int32_t zero_point, int32_t lo, int32_t hi);
#include "asm.h"

// Each of the first group runs `\code` after the honest kernel.
.macro  sample  name, code:vararg
func    \name
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        bl      n8_quantize_f32_s8_c
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        \code
        ret
endfunc \name
.endm

        sample  sample_clobbers_x19, mov x19, #0
        sample  sample_clobbers_x28, add x28, x28, #1
        sample  sample_clobbers_x29, mov x29, #0
        sample  sample_clobbers_s8, mov v8.s[0], wzr
        sample  sample_clobbers_d8, mov v8.s[1], wzr
        sample  sample_clobbers_d15, movi v15.2d, #0
        sample  sample_changes_sp, sub sp, sp, #16
        sample  sample_writes_callers_stack, str xzr, [sp, #8]

// Allowed: all that the procedure call standard calls temporary.
func    sample_uses_all_it_may
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        bl      n8_quantize_f32_s8_c
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17
        mov     x\n, #\n
        .endr
        .irp    n, 8, 9, 10, 11, 12, 13, 14, 15
        mov     v\n\().d[1], xzr
        .endr
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
        movi    v\n\().2d, #0
        .endr
        .irp    n, 24, 25, 26, 27, 28, 29, 30, 31
        movi    v\n\().2d, #0
        .endr
        cmp     x0, x0
        ret
endfunc sample_uses_all_it_may

// Rounding towards zero from here on.
func    sample_changes_fpcr
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        bl      n8_quantize_f32_s8_c
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        mrs     x9, fpcr
        orr     x9, x9, #0xc00000
        msr     fpcr, x9
        ret
endfunc sample_changes_fpcr

// A value below sp survives until the next signal: waits for one and gives a wrong zero point
// if the value is gone. The wait has an end, should no timer run.
func    sample_stores_below_sp
        mov     x9, #0x1234
        str     x9, [sp, #-16]
        adrp    x10, check_ticks
        ldr     x11, [x10, :lo12:check_ticks]
        mov     x12, #0x4000000
1:      ldr     x13, [x10, :lo12:check_ticks]
        cmp     x13, x11
        b.ne    2f
        subs    x12, x12, #1
        b.ne    1b
2:      ldr     x13, [sp, #-16]
        cmp     x13, x9
        cinc    w3, w3, ne
        b       n8_quantize_f32_s8_c
endfunc sample_stores_below_sp

// AAPCS64 leaves the upper 32 bits of a 32-bit argument undefined.
func    sample_trusts_upper_half
        lsr     x9, x3, #32
        cmp     x9, #0
        cinc    w3, w3, ne
        b       n8_quantize_f32_s8_c
endfunc sample_trusts_upper_half

func    sample_trusts_vectors
        fmov    w9, s20
        cmp     w9, #0
        cinc    w3, w3, ne
        b       n8_quantize_f32_s8_c
endfunc sample_trusts_vectors
