// SPDX-License-Identifier: Apache-2.0
//
// out[c * out_stride + p] = in[p * in_stride + c], for c < channels
//
//   void n8_deinterleave_s8_neon(int8_t *out, size_t out_stride, const int8_t *in,
//                                size_t in_stride, size_t channels, size_t pixels);
//
// Bounds: reads 8 bytes of each pixel, writes `pixels` bytes of each plane. The last of 16 pixels
//   or more are a whole tile, too, which begins among those that are done.
// Registers: x0-x5 the arguments, x5 pixels left less 16; x6 scratch; x8-x15 the planes: those
//   behind the last one are the last one again, and are written before it; v0-v7, v16-v23 a tile.
// Stack: none.
// The caller proves 1 <= channels <= 8 and in_stride >= 8.
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

#include "planes_s8.inc"

        // Two pixels of eight bytes each.
.macro  load_pair pair
        ld1     {\pair\().d}[0], [in], in_stride
        ld1     {\pair\().d}[1], [in], in_stride
.endm

func    n8_deinterleave_s8_neon
        cbz     left, 5f
        find_planes out, out_stride
        subs    left, left, #16
        b.lo    3f
        cmp     channels, #4
        ccmp    in_stride, #8, #0, ls
        b.eq    2f

        // Tiles of 16 pixels and 8 planes: three rounds of uzps part the channels of a pixel, those
        // that are 1, 2 and 4 apart.
1:      load_pair v16
        load_pair v17
        load_pair v18
        load_pair v19
        load_pair v20
        load_pair v21
        load_pair v22
        load_pair v23
        uzp1    v0.16b, v16.16b, v17.16b
        uzp2    v1.16b, v16.16b, v17.16b
        uzp1    v2.16b, v18.16b, v19.16b
        uzp2    v3.16b, v18.16b, v19.16b
        uzp1    v4.16b, v20.16b, v21.16b
        uzp2    v5.16b, v20.16b, v21.16b
        uzp1    v6.16b, v22.16b, v23.16b
        uzp2    v7.16b, v22.16b, v23.16b
        uzp1    v16.16b, v0.16b, v2.16b
        uzp2    v18.16b, v0.16b, v2.16b
        uzp1    v17.16b, v4.16b, v6.16b
        uzp2    v19.16b, v4.16b, v6.16b
        uzp1    v20.16b, v1.16b, v3.16b
        uzp2    v22.16b, v1.16b, v3.16b
        uzp1    v21.16b, v5.16b, v7.16b
        uzp2    v23.16b, v5.16b, v7.16b
        uzp1    v0.16b, v16.16b, v17.16b
        uzp2    v4.16b, v16.16b, v17.16b
        uzp1    v2.16b, v18.16b, v19.16b
        uzp2    v6.16b, v18.16b, v19.16b
        uzp1    v1.16b, v20.16b, v21.16b
        uzp2    v5.16b, v20.16b, v21.16b
        uzp1    v3.16b, v22.16b, v23.16b
        uzp2    v7.16b, v22.16b, v23.16b
        subs    left, left, #16
        str     q7, [plane7], #16
        str     q6, [plane6], #16
        str     q5, [plane5], #16
        str     q4, [plane4], #16
        str     q3, [plane3], #16
        str     q2, [plane2], #16
        str     q1, [plane1], #16
        str     q0, [plane0], #16
        b.hs    1b
        cmn     left, #16
        b.eq    5f
        step_back in, in_stride
        b       1b

        // 16 adjacent pixels, of which the lower words hold all channels.
2:      ld2     {v16.4s, v17.4s}, [in], #32
        ld2     {v18.4s, v19.4s}, [in], #32
        ld2     {v20.4s, v21.4s}, [in], #32
        ld2     {v22.4s, v23.4s}, [in], #32
        uzp1    v4.16b, v16.16b, v18.16b
        uzp2    v5.16b, v16.16b, v18.16b
        uzp1    v6.16b, v20.16b, v22.16b
        uzp2    v7.16b, v20.16b, v22.16b
        uzp1    v0.16b, v4.16b, v6.16b
        uzp2    v2.16b, v4.16b, v6.16b
        uzp1    v1.16b, v5.16b, v7.16b
        uzp2    v3.16b, v5.16b, v7.16b
        subs    left, left, #16
        str     q3, [plane3], #16
        str     q2, [plane2], #16
        str     q1, [plane1], #16
        str     q0, [plane0], #16
        b.hs    2b
        cmn     left, #16
        b.eq    5f
        step_back in, in_stride
        b       2b

        // 1 to 15 pixels, one by one.
3:      add     left, left, #16
4:      ld1     {v0.8b}, [in], in_stride
        st1     {v0.b}[7], [plane7], #1
        st1     {v0.b}[6], [plane6], #1
        st1     {v0.b}[5], [plane5], #1
        st1     {v0.b}[4], [plane4], #1
        st1     {v0.b}[3], [plane3], #1
        st1     {v0.b}[2], [plane2], #1
        st1     {v0.b}[1], [plane1], #1
        st1     {v0.b}[0], [plane0], #1
        subs    left, left, #1
        b.ne    4b
5:      ret
endfunc n8_deinterleave_s8_neon
