// SPDX-License-Identifier: Apache-2.0
//
// Parts of the kernels with tiles of 4 x 8, which call them with the registers and the stack of
// igemm_4x8_frame.inc: what they need where tiles are not as usual (igemm_4x8_begin.inc), and the
// residual.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 8
#include "igemm_4x8_frame.inc"

// Sums to floats. Changes q0-q2 and ptr0.
func    n8_igemm_4x8_scale
        add     ptr0, constants, #START_BITS
        vldmia  ptr0, {q2}
        .irp    sum, q8, q9, q10, q11, q12, q13, q14, q15
        vsub.i32 \sum, \sum, q2
        .endr
#include "igemm_4x8_scale.inc"
        bx      lr
endfunc n8_igemm_4x8_scale

// Loads the residual of a tile into d12-d15, of pixels that do not exist from the last one that
// does; the bytes after the last channel are slack. Changes ptr0-ptr2.
func    n8_igemm_4x8_residual
        ldr     ptr0, [sp, #RESIDUAL]
        ldr     ptr1, [sp, #RESIDUAL_STRIDE]
        add     ptr2, ptr0, ptr1, lsl #2
        str     ptr2, [sp, #RESIDUAL]
        vld1.8  {d12}, [ptr0]
        cmp     pixels, #2
        addhs   ptr0, ptr0, ptr1
        vld1.8  {d13}, [ptr0]
        cmp     pixels, #3
        addhs   ptr0, ptr0, ptr1
        vld1.8  {d14}, [ptr0]
        cmp     pixels, #4
        addhs   ptr0, ptr0, ptr1
        vld1.8  {d15}, [ptr0]
        bx      lr
endfunc n8_igemm_4x8_residual

// Adds the residual in d12-d15 to floats: v = fadd(v, fmul((float)(residual[p][n] -
// residual_zero_point), residual_scale)) (6). Changes q0-q7 and ptr0.
.macro  add_residual row, low, high, sum0, sum1
        vaddw.s16 q1, q2, \low
        vaddw.s16 \row, q2, \high
        vsub.f32 q1, q1, q2
        vsub.f32 \row, \row, q2
        vmul.f32 q1, q1, q0
        vmul.f32 \row, \row, q0
        vadd.f32 \sum0, \sum0, q1
        vadd.f32 \sum1, \sum1, \row
.endm

func    n8_igemm_4x8_add
        add     ptr0, constants, #RESIDUAL_SCALE
        vldmia  ptr0, {q0-q1}
        vldr    d4, [constants, #MAGIC]
        vldr    d5, [constants, #MAGIC]
        vsubl.s8 q4, d12, d2
        vsubl.s8 q5, d13, d2
        vsubl.s8 q6, d14, d2
        vsubl.s8 q7, d15, d2
        add_residual q4, d8, d9, q8, q9
        add_residual q5, d10, d11, q10, q11
        add_residual q6, d12, d13, q12, q13
        add_residual q7, d14, d15, q14, q15
        bx      lr
endfunc n8_igemm_4x8_add

// Floats to int8, pixels 0 and 1 in q8, 2 and 3 in q9: leaky by the slopes if there are any (5b),
// rounded, with the zero point, and clamped (5). Changes q0-q5, q10-q15, ptr0 and ptr1.
//
// Bounds: adding C = 1.5 * 2^23 leaves no room for a fraction and rounds half to even; the bits of
//   floats rise with them, so less the bits of C, saturating, what is below 2^22 is the rounded value
//   and what is above is at least 2^22, of its sign. The rest saturates to 16 and then 8 bits, so
//   nothing wraps and the clamp sees the right side. NaN cannot be: kernel.h.
.macro  leaky   sum, slopes
        vmul.f32 q0, \sum, \slopes
        vclt.f32 q1, \sum, #0
        vbit    \sum, q0, q1
.endm

func    n8_igemm_4x8_round
        ldr     ptr0, [sp, #ARGS]
        ldr     ptr1, [sp, #OFFSET]
        ldr     ptr0, [ptr0, #N8_OFF_IG_SLOPE]
        cmp     ptr0, #0
        beq     1f
        add     ptr0, ptr0, ptr1
        vldmia  ptr0, {q4-q5}
        .irp    sum, q8, q10, q12, q14
        leaky   \sum, q4
        .endr
        .irp    sum, q9, q11, q13, q15
        leaky   \sum, q5
        .endr
1:      add     ptr0, constants, #MAGIC
        vldmia  ptr0, {q2-q5}
        .irp    sum, q8, q9, q10, q11, q12, q13, q14, q15
        vadd.f32 \sum, \sum, q2
        .endr
        .irp    sum, q8, q9, q10, q11, q12, q13, q14, q15
        vqsub.s32 \sum, \sum, q2
        .endr
        vqmovn.s32 d16, q8
        vqmovn.s32 d17, q9
        vqmovn.s32 d18, q10
        vqmovn.s32 d19, q11
        vqmovn.s32 d20, q12
        vqmovn.s32 d21, q13
        vqmovn.s32 d22, q14
        vqmovn.s32 d23, q15
        add     ptr0, constants, #ZERO_POINT
        vldmia  ptr0, {q0}
        vqadd.s16 q8, q8, q0
        vqadd.s16 q9, q9, q0
        vqadd.s16 q10, q10, q0
        vqadd.s16 q11, q11, q0
        vqmovn.s16 d16, q8
        vqmovn.s16 d17, q9
        vqmovn.s16 d18, q10
        vqmovn.s16 d19, q11
        vmax.s8 q8, q8, q4
        vmax.s8 q9, q9, q4
        vmin.s8 q8, q8, q5
        vmin.s8 q9, q9, q5
        bx      lr
endfunc n8_igemm_4x8_round

// Stores the bytes in q8 and q9 of the pixels and channels there are. Moves `out`; changes q8, q9,
// ptr0, left and weights.
func    n8_igemm_4x8_edge
        ldr     weights, [sp, #CHANNELS]
        mov     left, pixels
        cmp     left, #4
        movhi   left, #4
1:      cmp     weights, #8
        blo     2f
        vst1.8  {d16}, [out], out_stride
        b       6f
2:      mov     ptr0, out
        tst     weights, #4
        beq     3f
        vst1.32 {d16[0]}, [ptr0]!
        vshr.u64 d16, d16, #32
3:      tst     weights, #2
        beq     4f
        vst1.16 {d16[0]}, [ptr0]!
        vshr.u64 d16, d16, #16
4:      tst     weights, #1
        beq     5f
        vst1.8  {d16[0]}, [ptr0]
5:      add     out, out, out_stride
6:      vmov    d16, d17
        vmov    d17, d18
        vmov    d18, d19
        subs    left, left, #1
        bne     1b
        bx      lr
endfunc n8_igemm_4x8_edge

// The same of 32-bit results in q8-q15. Changes q8-q13, ptr0, left and weights.
func    n8_igemm_4x8_edge32
        ldr     weights, [sp, #CHANNELS]
        mov     left, pixels
        cmp     left, #4
        movhi   left, #4
1:      cmp     weights, #8
        blo     2f
        vst1.32 {d16-d19}, [out], out_stride
        b       6f
2:      mov     ptr0, out
        tst     weights, #4
        beq     3f
        vst1.32 {d16-d17}, [ptr0]!
        vmov    q8, q9
3:      tst     weights, #2
        beq     4f
        vst1.32 {d16}, [ptr0]!
        vmov    d16, d17
4:      tst     weights, #1
        beq     5f
        vst1.32 {d16[0]}, [ptr0]
5:      add     out, out, out_stride
6:      vmov    q8, q10
        vmov    q9, q11
        vmov    q10, q12
        vmov    q11, q13
        vmov    q12, q14
        vmov    q13, q15
        subs    left, left, #1
        bne     1b
        bx      lr
endfunc n8_igemm_4x8_edge32
