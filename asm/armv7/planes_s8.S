// SPDX-License-Identifier: Apache-2.0
//
// Up to eight planes of bytes to pixels of eight bytes, and back:
//
// out[p * out_stride + c] = c < channels ? in[c * in_stride + p] : 0, for c = 0 .. 7
//
//   void n8_interleave_s8_neon(int8_t *out, size_t out_stride, const int8_t *in,
//                              size_t in_stride, size_t channels, size_t pixels);
//
// out[c * out_stride + p] = in[p * in_stride + c], for c < channels
//
//   void n8_deinterleave_s8_neon(int8_t *out, size_t out_stride, const int8_t *in,
//                                size_t in_stride, size_t channels, size_t pixels);
//
// A tile is 16 pixels, eight in q0-q3, the others in q8-q11. As pairs, q0 and q8 hold the bytes of
// planes 0 and 1 for each pixel, q1 and q9 those of 2 and 3, and so on: a pixel is one such pair of
// each. vzip makes pairs in q0 and q8 from planes 0 and 1, vuzp planes from pairs. Of 16 pixels or
// more, the last ones are a whole tile, too, which begins among those that are done.
//
// Bounds: touches `pixels` bytes of each plane and 8 bytes of each pixel.
// Registers: below; q12-q15 masks of the channels that exist, of a pair each; at first d24 is that
//   of all. Planes after the last one are the last one again, and are written before it.
// Stack: 36 bytes, what it preserves.
// The caller proves 1 <= channels <= 8 and a stride of 8 or more from pixel to pixel.
#include "asm.h"

        registers r, 0, out, out_stride, in, in_stride, plane0, plane1, plane2, plane3
        // out: of `out` and `in`, the one with the pixels moves
        registers r, 8, plane4, plane5, plane6, plane7, channels
left    .req lr                 // pixels

// Entry; 5 is the end.
.macro  begin   planes, stride
        save    r4, r5, r6, r7, r8, r9, r10, r11, lr
        ldr     channels, [sp, #36]
        ldr     left, [sp, #40]
        cmp     left, #0
        beq     5f
        mov     plane0, \planes
        next_plane plane1, plane0, 1, \stride
        next_plane plane2, plane1, 2, \stride
        next_plane plane3, plane2, 3, \stride
        next_plane plane4, plane3, 4, \stride
        next_plane plane5, plane4, 5, \stride
        next_plane plane6, plane5, 6, \stride
        next_plane plane7, plane6, 7, \stride
.endm

// \plane is the next plane, or the one before again where there is none.
.macro  next_plane plane, before, number, stride
        cmp     channels, #\number
        mov     \plane, \before
        addhi   \plane, \before, \stride
.endm

// After a tile, back to \tile while there are pixels. After the whole tiles `left` is -16, or up to
// -1: then the last 16 pixels are one more.
.macro  next_tile tile, pixels, stride
        bhs     \tile
        cmn     left, #16
        beq     5f
        mla     \pixels, left, \stride, \pixels
        each    add, left, plane0, plane1, plane2, plane3, plane4, plane5, plane6, plane7
        mov     left, #0
        b       \tile
.endm

// Four pixels, of half a register of pairs each: `operation` is vst4.16 or vld4.16.
.macro  four_pixels operation, a, b, c, d, pixels, stride
        \operation {\a[0], \b[0], \c[0], \d[0]}, [\pixels], \stride
        \operation {\a[1], \b[1], \c[1], \d[1]}, [\pixels], \stride
        \operation {\a[2], \b[2], \c[2], \d[2]}, [\pixels], \stride
        \operation {\a[3], \b[3], \c[3], \d[3]}, [\pixels], \stride
.endm

// A tile of pixels that are `stride` bytes apart.
.macro  sixteen_pixels operation, pixels, stride
        four_pixels \operation, d0, d2, d4, d6, \pixels, \stride
        four_pixels \operation, d1, d3, d5, d7, \pixels, \stride
        four_pixels \operation, d16, d18, d20, d22, \pixels, \stride
        four_pixels \operation, d17, d19, d21, d23, \pixels, \stride
.endm

// A tile of adjacent pixels.
.macro  sixteen_adjacent operation, pixels
        \operation {d0, d2, d4, d6}, [\pixels]!
        \operation {d1, d3, d5, d7}, [\pixels]!
        \operation {d16, d18, d20, d22}, [\pixels]!
        \operation {d17, d19, d21, d23}, [\pixels]!
.endm

func    n8_interleave_s8_neon
        begin   in, in_stride
        // 8 * channels ones in 64 bits.
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
        each    vand, q12, q0, q8
        each    vand, q13, q1, q9
        each    vand, q14, q2, q10
        each    vand, q15, q3, q11
        subs    left, left, #16
        sixteen_pixels vst4.16, out, out_stride
        next_tile 1b, out, out_stride

        // Up to 4 planes and adjacent pixels, of which the upper halves are 0.
2:      fill    vmov.i8, #0, q2, q3, q10, q11
6:      vld1.8  {d0-d1}, [plane0]!
        vld1.8  {d16-d17}, [plane1]!
        vld1.8  {d2-d3}, [plane2]!
        vld1.8  {d18-d19}, [plane3]!
        vzip.8  q0, q8
        vzip.8  q1, q9
        each    vand, q12, q0, q8
        each    vand, q13, q1, q9
        subs    left, left, #16
        sixteen_adjacent vst4.16, out
        next_tile 6b, out, out_stride

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

func    n8_deinterleave_s8_neon
        begin   out, out_stride
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
        next_tile 1b, in, in_stride

        // Adjacent pixels, of which the lower halves hold all channels.
2:      sixteen_adjacent vld4.16, in
        subs    left, left, #16
        vuzp.8  q1, q9
        vuzp.8  q0, q8
        vst1.8  {d18-d19}, [plane3]!
        vst1.8  {d2-d3}, [plane2]!
        vst1.8  {d16-d17}, [plane1]!
        vst1.8  {d0-d1}, [plane0]!
        next_tile 2b, in, in_stride

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
