// SPDX-License-Identifier: Apache-2.0
//
// out[c * out_stride + p] = in[p * in_stride + c], for c < channels
//
//   void n8_deinterleave_s8_neon(int8_t *out, size_t out_stride, const int8_t *in,
//                                size_t in_stride, size_t channels, size_t pixels);
//
// Bounds: reads 8 bytes of each pixel, writes `pixels` bytes of each plane. The last of 16 pixels
//   or more are a whole tile, too, which begins among those that are done.
// Registers: planes_s8.inc; planes behind the last one are the last one again, and are written before
//   it.
// Stack: 36 bytes, what it preserves.
// The caller proves 1 <= channels <= 8 and in_stride >= 8.
#include "asm.h"

#define out        r0
#define out_stride r1
#define in         r2
#define in_stride  r3

#include "planes_s8.inc"

func    n8_deinterleave_s8_neon
        push    {r4-r11, lr}
        .cfi_def_cfa_offset 36
        .cfi_offset lr, -4
        ldr     channels, [sp, #36]
        ldr     left, [sp, #40]
        cmp     left, #0
        beq     5f
        find_planes out, out_stride
        subs    left, left, #16
        blo     3f
        cmp     in_stride, #8
        cmpeq   channels, #4
        bls     2f

1:      sixteen_pixels vld4.16, in, in_stride
        subs    left, left, #16
        vuzp.8  q3, q11
        vuzp.8  q2, q10
        vuzp.8  q1, q9
        vuzp.8  q0, q8
        vst1.8  {d22-d23}, [plane7]!
        vst1.8  {d6-d7}, [plane6]!
        vst1.8  {d20-d21}, [plane5]!
        vst1.8  {d4-d5}, [plane4]!
        vst1.8  {d18-d19}, [plane3]!
        vst1.8  {d2-d3}, [plane2]!
        vst1.8  {d16-d17}, [plane1]!
        vst1.8  {d0-d1}, [plane0]!
        bhs     1b
        cmn     left, #16
        beq     5f
        step_back in, in_stride
        b       1b

        // Adjacent pixels, of which the lower halves hold all channels.
2:      sixteen_adjacent vld4.16, in
        subs    left, left, #16
        vuzp.8  q1, q9
        vuzp.8  q0, q8
        vst1.8  {d18-d19}, [plane3]!
        vst1.8  {d2-d3}, [plane2]!
        vst1.8  {d16-d17}, [plane1]!
        vst1.8  {d0-d1}, [plane0]!
        bhs     2b
        cmn     left, #16
        beq     5f
        step_back in, in_stride
        b       2b

        // 1 to 15 pixels, one by one.
3:      add     left, left, #16
4:      vld1.8  {d0}, [in], in_stride
        subs    left, left, #1
        vst1.8  {d0[7]}, [plane7]!
        vst1.8  {d0[6]}, [plane6]!
        vst1.8  {d0[5]}, [plane5]!
        vst1.8  {d0[4]}, [plane4]!
        vst1.8  {d0[3]}, [plane3]!
        vst1.8  {d0[2]}, [plane2]!
        vst1.8  {d0[1]}, [plane1]!
        vst1.8  {d0[0]}, [plane0]!
        bne     4b
5:      pop     {r4-r11, pc}
endfunc n8_deinterleave_s8_neon
