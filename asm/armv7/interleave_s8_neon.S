// SPDX-License-Identifier: Apache-2.0
//
// out[p * out_stride + c] = c < channels ? in[c * in_stride + p] : 0, for c = 0 .. 7
//
//   void n8_interleave_s8_neon(int8_t *out, size_t out_stride, const int8_t *in,
//                              size_t in_stride, size_t channels, size_t pixels);
//
// Bounds: reads `pixels` bytes of each plane, writes 8 bytes of each pixel. The last of 16 pixels
//   or more are a whole tile, too, which begins among those that are done.
// Registers: planes_s8.inc; planes behind the last one are the last one again; q12-q15 masks of the
//   pairs of channels that there are, of which d24 is first one of all.
// Stack: 36 bytes, what it preserves.
// The caller proves 1 <= channels <= 8 and out_stride >= 8.
#include "asm.h"

#define out        r0
#define out_stride r1
#define in         r2
#define in_stride  r3

#include "planes_s8.inc"

func    n8_interleave_s8_neon
        push    {r4-r11, lr}
        .cfi_def_cfa_offset 36
        .cfi_offset lr, -4
        ldr     channels, [sp, #36]
        ldr     left, [sp, #40]
        cmp     left, #0
        beq     5f
        find_planes in, in_stride
        // 8 * channels ones, of 64.
        lsl     in, channels, #3
        sub     in, in, #64
        vdup.8  d25, in
        vmov.i8 d24, #0xff
        vshl.u64 d24, d24, d25
        subs    left, left, #16
        blo     3f
        vdup.16 q15, d24[3]
        vdup.16 q14, d24[2]
        vdup.16 q13, d24[1]
        vdup.16 q12, d24[0]
        cmp     out_stride, #8
        cmpeq   channels, #4
        bls     2f

1:      vld1.8  {d0-d1}, [plane0]!
        vld1.8  {d16-d17}, [plane1]!
        vld1.8  {d2-d3}, [plane2]!
        vld1.8  {d18-d19}, [plane3]!
        vld1.8  {d4-d5}, [plane4]!
        vld1.8  {d20-d21}, [plane5]!
        vld1.8  {d6-d7}, [plane6]!
        vld1.8  {d22-d23}, [plane7]!
        vzip.8  q0, q8
        vzip.8  q1, q9
        vzip.8  q2, q10
        vzip.8  q3, q11
        vand    q0, q0, q12
        vand    q8, q8, q12
        vand    q1, q1, q13
        vand    q9, q9, q13
        vand    q2, q2, q14
        vand    q10, q10, q14
        vand    q3, q3, q15
        vand    q11, q11, q15
        subs    left, left, #16
        sixteen_pixels vst4.16, out, out_stride
        bhs     1b
        cmn     left, #16
        beq     5f
        step_back out, out_stride
        b       1b

        // Up to 4 planes and adjacent pixels, of which the upper halves are 0.
2:      vmov.i8 q2, #0
        vmov.i8 q3, #0
        vmov.i8 q10, #0
        vmov.i8 q11, #0
6:      vld1.8  {d0-d1}, [plane0]!
        vld1.8  {d16-d17}, [plane1]!
        vld1.8  {d2-d3}, [plane2]!
        vld1.8  {d18-d19}, [plane3]!
        vzip.8  q0, q8
        vzip.8  q1, q9
        vand    q0, q0, q12
        vand    q8, q8, q12
        vand    q1, q1, q13
        vand    q9, q9, q13
        subs    left, left, #16
        sixteen_adjacent vst4.16, out
        bhs     6b
        cmn     left, #16
        beq     5f
        step_back out, out_stride
        b       6b

        // 1 to 15 pixels, one by one.
3:      add     left, left, #16
4:      vld1.8  {d0[0]}, [plane0]!
        vld1.8  {d0[1]}, [plane1]!
        vld1.8  {d0[2]}, [plane2]!
        vld1.8  {d0[3]}, [plane3]!
        vld1.8  {d0[4]}, [plane4]!
        vld1.8  {d0[5]}, [plane5]!
        vld1.8  {d0[6]}, [plane6]!
        vld1.8  {d0[7]}, [plane7]!
        subs    left, left, #1
        vand    d0, d0, d24
        vst1.8  {d0}, [out], out_stride
        bne     4b
5:      pop     {r4-r11, pc}
endfunc n8_interleave_s8_neon
