// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
//
// Requantizes 4 outputs of 8 channels of whatever size, sum0-sum3 v22-v29, to v18 and v20. What
// depthwise kernels call in the place of depthwise_s8_round4.inc for the layers, and they are few,
// whose values are not small (kernel.h): args x0, multiplier x14, slope x15. Only v18-v29, x16 and
// the flags change.
//
// Bounds: fcvtns saturates to 32 bits, everything after it to 16 and then 8, so nothing
//   wraps and the clamp sees the right side; NaN becomes 0.
#include "asm.h"
#include "kernel.h"

#define args            x0
#define multiplier      x14
#define slope           x15
#define temp0           x16

#define scales          v18
#define slopes          v19
#define negative        v20
#define scaled          v21

.macro  to_integers     sum
        scvtf   \sum\().4s, \sum\().4s
        fmul    \sum\().4s, \sum\().4s, scales.4s
        fcmlt   negative.4s, \sum\().4s, #0.0
        fmul    scaled.4s, \sum\().4s, slopes.4s
        bit     \sum\().16b, scaled.16b, negative.16b
        fcvtns  \sum\().4s, \sum\().4s
.endm

func    n8_depthwise_round4
        fmov    slopes.4s, #1.0
        cbz     slope, 1f
        ld1     {slopes.4s}, [slope]
1:      ld1     {scales.4s}, [multiplier]
        to_integers v22
        to_integers v24
        to_integers v26
        to_integers v28
        cbz     slope, 2f
        add     temp0, slope, #16
        ld1     {slopes.4s}, [temp0]
2:      add     temp0, multiplier, #16
        ld1     {scales.4s}, [temp0]
        to_integers v23
        to_integers v25
        to_integers v27
        to_integers v29

        // Low bytes of the int32 limits are the int8 limits.
        add     temp0, args, #N8_OFF_DW_ZERO_POINT
        ld1r    {v21.8h}, [temp0]
        sqxtn   v22.4h, v22.4s
        sqxtn   v24.4h, v24.4s
        sqxtn   v26.4h, v26.4s
        sqxtn   v28.4h, v28.4s
        sqxtn2  v22.8h, v23.4s
        sqxtn2  v24.8h, v25.4s
        sqxtn2  v26.8h, v27.4s
        sqxtn2  v28.8h, v29.4s
        sqadd   v22.8h, v22.8h, v21.8h
        sqadd   v24.8h, v24.8h, v21.8h
        sqadd   v26.8h, v26.8h, v21.8h
        sqadd   v28.8h, v28.8h, v21.8h
        add     temp0, args, #N8_OFF_DW_LO
        ld1r    {v19.16b}, [temp0]
        add     temp0, args, #N8_OFF_DW_HI
        ld1r    {v21.16b}, [temp0]
        sqxtn   v18.8b, v22.8h
        sqxtn   v20.8b, v26.8h
        sqxtn2  v18.16b, v24.8h
        sqxtn2  v20.16b, v28.8h
        smax    v18.16b, v18.16b, v19.16b
        smax    v20.16b, v20.16b, v19.16b
        smin    v18.16b, v18.16b, v21.16b
        smin    v20.16b, v20.16b, v21.16b
        ret
endfunc n8_depthwise_round4
