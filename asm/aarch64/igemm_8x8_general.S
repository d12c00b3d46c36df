// SPDX-License-Identifier: Apache-2.0
//
// What tiles of 8 x 8 need where values are not small (kernel.h): parts of the kernels, which
// igemm_8x8_scale.inc and igemm_8x8_round8.inc call with the registers of igemm_8x8_begin.inc.
#include "asm.h"
#include "kernel.h"

#define args    x0
#define array   x4
#define offset  x23

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
