// SPDX-License-Identifier: Apache-2.0
//
// Parts of the kernels with tiles of 8 x 8, which call them with the registers of
// igemm_8x8_begin.inc: what they need where values are not small (kernel.h), between the two halves
// of (23), and at the edge.
#include "asm.h"
#include "kernel.h"

#define args            x0
#define pixel           x1
#define next            x2
#define array           x4
#define left            x12
#define channels        x16
#define pixels          x19
#define out_stride      x22
#define offset          x23

// Sums of a tile to floats: fmul((float) acc'', multiplier[n]). scvtf rounds to nearest even (7).
// Changes v0, v1 and x4.
func    n8_igemm_8x8_scale
        ldr     array, [args, #N8_OFF_IG_MULTIPLIER]
        .irp    sum, 16, 17, 18, 19
        scvtf   v\sum\().4s, v\sum\().4s
        .endr
        add     array, array, offset
        ldp     q0, q1, [array]
        .irp    sum, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        scvtf   v\sum\().4s, v\sum\().4s
        .endr
        .irp    sum, 16, 18, 20, 22, 24, 26, 28, 30
        fmul    v\sum\().4s, v\sum\().4s, v0.4s
        .endr
        .irp    sum, 17, 19, 21, 23, 25, 27, 29, 31
        fmul    v\sum\().4s, v\sum\().4s, v1.4s
        .endr
        ret
endfunc n8_igemm_8x8_scale

// Floats of a tile to 16 bits, pixel p in v16 + 2 * p: leaky by the slopes if there are any (5b),
// and rounded (5). Changes v12-v15 and x4.
//
// Bounds: fcvtns saturates to 32 bits, sqxtn to 16; NaN becomes 0.
.macro  leaky   sum, slopes
        fmul    v12.4s, v\sum\().4s, \slopes\().4s
        fcmlt   v13.4s, v\sum\().4s, #0.0
        bit     v\sum\().16b, v12.16b, v13.16b
.endm

func    n8_igemm_8x8_round
        ldr     array, [args, #N8_OFF_IG_SLOPE]
        cbz     array, 1f
        add     array, array, offset
        ldp     q14, q15, [array]
        .irp    sum, 16, 18, 20, 22, 24, 26, 28, 30
        leaky   \sum, v14
        .endr
        .irp    sum, 17, 19, 21, 23, 25, 27, 29, 31
        leaky   \sum, v15
        .endr
1:      .irp    sum, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        fcvtns  v\sum\().4s, v\sum\().4s
        .endr
        .irp    pixel, 16, 18, 20, 22, 24, 26, 28, 30
        sqxtn   v\pixel\().4h, v\pixel\().4s
        .endr
        sqxtn2  v16.8h, v17.4s
        sqxtn2  v18.8h, v19.4s
        sqxtn2  v20.8h, v21.4s
        sqxtn2  v22.8h, v23.4s
        sqxtn2  v24.8h, v25.4s
        sqxtn2  v26.8h, v27.4s
        sqxtn2  v28.8h, v29.4s
        sqxtn2  v30.8h, v31.4s
        ret
endfunc n8_igemm_8x8_round

// Between the two halves of the taps of (23): the sums a of the first side and b of the second of
// each tile become a + b and a - b, in the whole form halved. Changes v12-v14 and x7.
//
// Where values are small, sums begin with the bits of 1.5 * 2^23 (igemm_8x8_begin.inc), here those of
// the first side; v14 is these or 0. Both get them from it, and the half of them in the whole form,
// to which the other half is added.
// Bounds: shadd and shsub have a bit more than their operands, which must fit int32 themselves, and
//   do: those bits come with sums below 2^23. All else wraps modulo 2^32, and so does what is added
//   later, until the result fits (12).
.macro  butterfly a0, b0, a1, b1
        add     v12.4s, v\a0\().4s, v\b0\().4s
        add     v13.4s, v\a1\().4s, v\b1\().4s
        sub     v\b0\().4s, v\a0\().4s, v\b0\().4s
        sub     v\b1\().4s, v\a1\().4s, v\b1\().4s
        mov     v\a0\().16b, v12.16b
        mov     v\a1\().16b, v13.16b
.endm

.macro  butterfly_halved a0, b0, a1, b1
        shadd   v12.4s, v\a0\().4s, v\b0\().4s
        shadd   v13.4s, v\a1\().4s, v\b1\().4s
        shsub   v\b0\().4s, v\a0\().4s, v\b0\().4s
        shsub   v\b1\().4s, v\a1\().4s, v\b1\().4s
        add     v\a0\().4s, v12.4s, v14.4s
        add     v\a1\().4s, v13.4s, v14.4s
        add     v\b0\().4s, v\b0\().4s, v14.4s
        add     v\b1\().4s, v\b1\().4s, v14.4s
.endm

func    n8_igemm_8x8_halves
        ldr     w7, [args, #N8_OFF_IG_WHOLE]
        cbz     w7, 1f
        sshr    v14.4s, v14.4s, #1
        butterfly_halved 16, 18, 17, 19
        butterfly_halved 20, 22, 21, 23
        butterfly_halved 24, 26, 25, 27
        butterfly_halved 28, 30, 29, 31
        b       2f
1:      butterfly 16, 18, 17, 19
        butterfly 20, 22, 21, 23
        butterfly 24, 26, 25, 27
        butterfly 28, 30, 29, 31
2:      ret
endfunc n8_igemm_8x8_halves

// Stores a tile that ends before 8 pixels or channels, whose bytes lie as igemm_8x8_store8.inc says,
// from `pixel` on: one pixel after the other moves down to the low half of v16.
// Changes v0, v16, v20, v24, v28, x1, x2 and x12.
func    n8_igemm_8x8_edge
        mov     left, #8
        cmp     pixels, left
        csel    left, pixels, left, lo
1:      cmp     channels, #8
        b.lo    2f
        str     d16, [pixel]
        b       5f
2:      mov     next, pixel
        mov     v0.8b, v16.8b
        tbz     channels, #2, 3f
        st1     {v0.s}[0], [next], #4
        ext     v0.8b, v0.8b, v0.8b, #4
3:      tbz     channels, #1, 4f
        st1     {v0.h}[0], [next], #2
        ext     v0.8b, v0.8b, v0.8b, #2
4:      tbz     channels, #0, 5f
        st1     {v0.b}[0], [next]
5:      ext     v16.16b, v16.16b, v20.16b, #8
        ext     v20.16b, v20.16b, v24.16b, #8
        ext     v24.16b, v24.16b, v28.16b, #8
        ext     v28.16b, v28.16b, v28.16b, #8
        add     pixel, pixel, out_stride
        subs    left, left, #1
        b.ne    1b
        ret
endfunc n8_igemm_8x8_edge
