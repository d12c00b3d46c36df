// SPDX-License-Identifier: Apache-2.0
//
// Between planes of bytes, of which there are up to eight, and pixels of 8 bytes, in tiles of 16
// pixels:
//
//   interleave     out[p * out_stride + c] = c < channels ? in[c * in_stride + p] : 0, c = 0 .. 7
//   deinterleave   out[c * out_stride + p] = in[p * in_stride + c], c < channels
//
//   void n8_..._s8_neon(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
//                       size_t channels, size_t pixels);
//
// Bounds: `pixels` bytes of each plane are read or written, and 8 bytes of each pixel. The last of
//   16 pixels or more are a whole tile, too, which begins among those that are done.
// Registers: x0-x5 the arguments, x5 pixels left less 16; x6 scratch; x8-x15 the planes: those
//   after the last one are the last one again, and are written before it; v31 the mask of the
//   channels that there are; v0-v7, v16-v23 a tile.
// Stack: none.
// The caller proves 1 <= channels <= 8, and 8 bytes at least from pixel to pixel.
#include "asm.h"

        registers x, 0, out, out_stride, in, in_stride, channels, left, scratch
        registers x, 8, plane0, plane1, plane2, plane3, plane4, plane5, plane6, plane7
mask    .req v31

        // `plane` is the next plane, or the one before again where there is none.
.macro  next_plane plane, before, number, stride
        cmp     channels, #\number
        csel    scratch, \stride, xzr, hi
        add     \plane, \before, scratch
.endm

.macro  find_planes first, stride
        mov     plane0, \first
        next_plane plane1, plane0, 1, \stride
        next_plane plane2, plane1, 2, \stride
        next_plane plane3, plane2, 3, \stride
        next_plane plane4, plane3, 4, \stride
        next_plane plane5, plane4, 5, \stride
        next_plane plane6, plane5, 6, \stride
        next_plane plane7, plane6, 7, \stride
.endm

        // After a loop of whole tiles -15 to -1 are `left`: back to the last 16 pixels.
.macro  step_back pixels, stride
        madd    \pixels, left, \stride, \pixels
        each    add, left, plane0, plane1, plane2, plane3, plane4, plane5, plane6, plane7
        mov     left, #0
.endm

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
        couple  zip, v16.16b, v17.16b, v0.16b, v4.16b
        couple  zip, v18.16b, v19.16b, v2.16b, v6.16b
        couple  zip, v20.16b, v21.16b, v1.16b, v5.16b
        couple  zip, v22.16b, v23.16b, v3.16b, v7.16b
        couple  zip, v0.16b, v2.16b, v16.16b, v18.16b
        couple  zip, v4.16b, v6.16b, v17.16b, v19.16b
        couple  zip, v1.16b, v3.16b, v20.16b, v22.16b
        couple  zip, v5.16b, v7.16b, v21.16b, v23.16b
        couple  zip, v16.16b, v17.16b, v0.16b, v1.16b
        couple  zip, v18.16b, v19.16b, v2.16b, v3.16b
        couple  zip, v20.16b, v21.16b, v4.16b, v5.16b
        couple  zip, v22.16b, v23.16b, v6.16b, v7.16b
        subs    left, left, #16
        .irp    pair, v16, v17, v18, v19, v20, v21, v22, v23
        store_pair \pair
        .endr
        b.hs    1b
        cmn     left, #16
        b.eq    6f
        step_back out, out_stride
        b       1b

        // Up to 4 planes and 16 adjacent pixels: words, of which every other is 0.
2:      dup     mask.4s, mask.s[0]
        fill    movi, #0, v17.16b, v19.16b, v21.16b, v23.16b
        cmp     channels, #1
        b.eq    7f
3:      ldr     q0, [plane0], #16
        ldr     q2, [plane2], #16
        ldr     q1, [plane1], #16
        ldr     q3, [plane3], #16
        couple  zip, v4.16b, v5.16b, v0.16b, v2.16b
        couple  zip, v6.16b, v7.16b, v1.16b, v3.16b
        couple  zip, v16.16b, v18.16b, v4.16b, v6.16b
        couple  zip, v20.16b, v22.16b, v5.16b, v7.16b
        each    and, mask.16b, v16.16b, v18.16b, v20.16b, v22.16b
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
        couple  zip, v4.16b, v5.16b, v0.16b, v17.16b
        couple  zip, v16.8h, v18.8h, v4.8h, v17.8h
        couple  zip, v20.8h, v22.8h, v5.8h, v17.8h
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
1:      .irp    pair, v16, v17, v18, v19, v20, v21, v22, v23
        load_pair \pair
        .endr
        couple  uzp, v0.16b, v1.16b, v16.16b, v17.16b
        couple  uzp, v2.16b, v3.16b, v18.16b, v19.16b
        couple  uzp, v4.16b, v5.16b, v20.16b, v21.16b
        couple  uzp, v6.16b, v7.16b, v22.16b, v23.16b
        couple  uzp, v16.16b, v18.16b, v0.16b, v2.16b
        couple  uzp, v17.16b, v19.16b, v4.16b, v6.16b
        couple  uzp, v20.16b, v22.16b, v1.16b, v3.16b
        couple  uzp, v21.16b, v23.16b, v5.16b, v7.16b
        couple  uzp, v0.16b, v4.16b, v16.16b, v17.16b
        couple  uzp, v2.16b, v6.16b, v18.16b, v19.16b
        couple  uzp, v1.16b, v5.16b, v20.16b, v21.16b
        couple  uzp, v3.16b, v7.16b, v22.16b, v23.16b
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
        couple  uzp, v4.16b, v5.16b, v16.16b, v18.16b
        couple  uzp, v6.16b, v7.16b, v20.16b, v22.16b
        couple  uzp, v0.16b, v2.16b, v4.16b, v6.16b
        couple  uzp, v1.16b, v3.16b, v5.16b, v7.16b
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
