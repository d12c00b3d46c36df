// SPDX-License-Identifier: Apache-2.0
//
// out[p * out_stride + c] = c < channels ? in[c * in_stride + p] : 0, for c = 0 .. 7
//
//   void n8_interleave_s8_neon(int8_t *out, size_t out_stride, const int8_t *in,
//                              size_t in_stride, size_t channels, size_t pixels);
//
// Bounds: reads `pixels` bytes of each plane, writes 8 bytes of each pixel. The last of 16 pixels
//   or more are a whole tile, too, which begins among those that are done.
// Registers: x0-x5 the arguments, x5 pixels left less 16; x6 scratch; x8-x15 the planes: those
//   behind the last one are the last one again; v31 the mask of the channels that there are;
//   v0-v7, v16-v23 a tile.
// Stack: none.
// The caller proves 1 <= channels <= 8 and out_stride >= 8.
#include "asm.h"

#define out        x0
#define out_stride x1
#define in         x2
#define in_stride  x3
#define channels   x4
#define left       x5
#define scratch    x6
#define plane0     x8
#define plane1     x9
#define plane2     x10
#define plane3     x11
#define plane4     x12
#define plane5     x13
#define plane6     x14
#define plane7     x15

#define mask       v31

#include "planes_s8.inc"

        // Two pixels of eight bytes each.
.macro  store_pair pair
        and     \pair\().16b, \pair\().16b, mask.16b
        st1     {\pair\().d}[0], [out], out_stride
        st1     {\pair\().d}[1], [out], out_stride
.endm

func    n8_interleave_s8_neon
        cbz     left, 6f
        find_planes in, in_stride
        // 8 * channels ones, in both halves.
        mov     scratch, #64
        sub     scratch, scratch, channels, lsl #3
        mov     in, #-1
        lsr     in, in, scratch
        dup     mask.2d, in
        subs    left, left, #16
        b.lo    4f
        cmp     channels, #4
        ccmp    out_stride, #8, #0, ls
        b.eq    2f

        // Tiles of 8 planes and 16 pixels: three rounds of zips bring the channels of a pixel
        // together, those that are 4, 2 and 1 apart.
1:      ldr     q0, [plane0], #16
        ldr     q4, [plane4], #16
        ldr     q2, [plane2], #16
        ldr     q6, [plane6], #16
        ldr     q1, [plane1], #16
        ldr     q5, [plane5], #16
        ldr     q3, [plane3], #16
        ldr     q7, [plane7], #16
        zip1    v16.16b, v0.16b, v4.16b
        zip2    v17.16b, v0.16b, v4.16b
        zip1    v18.16b, v2.16b, v6.16b
        zip2    v19.16b, v2.16b, v6.16b
        zip1    v20.16b, v1.16b, v5.16b
        zip2    v21.16b, v1.16b, v5.16b
        zip1    v22.16b, v3.16b, v7.16b
        zip2    v23.16b, v3.16b, v7.16b
        zip1    v0.16b, v16.16b, v18.16b
        zip2    v2.16b, v16.16b, v18.16b
        zip1    v4.16b, v17.16b, v19.16b
        zip2    v6.16b, v17.16b, v19.16b
        zip1    v1.16b, v20.16b, v22.16b
        zip2    v3.16b, v20.16b, v22.16b
        zip1    v5.16b, v21.16b, v23.16b
        zip2    v7.16b, v21.16b, v23.16b
        zip1    v16.16b, v0.16b, v1.16b
        zip2    v17.16b, v0.16b, v1.16b
        zip1    v18.16b, v2.16b, v3.16b
        zip2    v19.16b, v2.16b, v3.16b
        zip1    v20.16b, v4.16b, v5.16b
        zip2    v21.16b, v4.16b, v5.16b
        zip1    v22.16b, v6.16b, v7.16b
        zip2    v23.16b, v6.16b, v7.16b
        subs    left, left, #16
        store_pair v16
        store_pair v17
        store_pair v18
        store_pair v19
        store_pair v20
        store_pair v21
        store_pair v22
        store_pair v23
        b.hs    1b
        cmn     left, #16
        b.eq    6f
        step_back out, out_stride
        b       1b

        // Up to 4 planes and 16 adjacent pixels: words, of which every other is 0.
2:      dup     mask.4s, mask.s[0]
        movi    v17.16b, #0
        movi    v19.16b, #0
        movi    v21.16b, #0
        movi    v23.16b, #0
        cmp     channels, #1
        b.eq    7f
3:      ldr     q0, [plane0], #16
        ldr     q2, [plane2], #16
        ldr     q1, [plane1], #16
        ldr     q3, [plane3], #16
        zip1    v4.16b, v0.16b, v2.16b
        zip2    v5.16b, v0.16b, v2.16b
        zip1    v6.16b, v1.16b, v3.16b
        zip2    v7.16b, v1.16b, v3.16b
        zip1    v16.16b, v4.16b, v6.16b
        zip2    v18.16b, v4.16b, v6.16b
        zip1    v20.16b, v5.16b, v7.16b
        zip2    v22.16b, v5.16b, v7.16b
        and     v16.16b, v16.16b, mask.16b
        and     v18.16b, v18.16b, mask.16b
        and     v20.16b, v20.16b, mask.16b
        and     v22.16b, v22.16b, mask.16b
        subs    left, left, #16
        st2     {v16.4s, v17.4s}, [out], #32
        st2     {v18.4s, v19.4s}, [out], #32
        st2     {v20.4s, v21.4s}, [out], #32
        st2     {v22.4s, v23.4s}, [out], #32
        b.hs    3b
        cmn     left, #16
        b.eq    6f
        step_back out, out_stride
        b       3b

        // 1 to 15 pixels, one by one.
4:      add     left, left, #16
5:      ld1     {v0.b}[0], [plane0], #1
        ld1     {v0.b}[1], [plane1], #1
        ld1     {v0.b}[2], [plane2], #1
        ld1     {v0.b}[3], [plane3], #1
        ld1     {v0.b}[4], [plane4], #1
        ld1     {v0.b}[5], [plane5], #1
        ld1     {v0.b}[6], [plane6], #1
        ld1     {v0.b}[7], [plane7], #1
        and     v0.8b, v0.8b, mask.8b
        st1     {v0.8b}, [out], out_stride
        subs    left, left, #1
        b.ne    5b
6:      ret

        // A single plane: most of it is zeros.
7:      ldr     q0, [plane0], #16
        zip1    v4.16b, v0.16b, v17.16b
        zip2    v5.16b, v0.16b, v17.16b
        zip1    v16.8h, v4.8h, v17.8h
        zip2    v18.8h, v4.8h, v17.8h
        zip1    v20.8h, v5.8h, v17.8h
        zip2    v22.8h, v5.8h, v17.8h
        subs    left, left, #16
        st2     {v16.4s, v17.4s}, [out], #32
        st2     {v18.4s, v19.4s}, [out], #32
        st2     {v20.4s, v21.4s}, [out], #32
        st2     {v22.4s, v23.4s}, [out], #32
        b.hs    7b
        cmn     left, #16
        b.eq    6b
        step_back out, out_stride
        b       7b
endfunc n8_interleave_s8_neon
