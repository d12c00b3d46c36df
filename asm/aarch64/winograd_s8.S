// SPDX-License-Identifier: Apache-2.0
//
// What int8 Winograd along a row multiplies, of tiles of four columns d0 .. d3          (23)
//
//      V1 = d1 + d2 - offset | V2 = d2 - d1 | V0 = d0 - d2 | V3 = d3 - d1
//
//   void n8_winograd_s8_neon(const struct n8_winograd_args *args);
//
// Bounds: all modulo 2^8, as the contract says.
// Registers: x0 args; x1-x4 where the tile's planes go; x5 plane; x6 columns; x7 tiles left;
//   x8 bytes left; x9 depth; x10-x13 the columns; x14 from 8 bytes of a tile to the next 8;
//   x15 the tile in the first plane; x16 from tile to tile, x17 the same after an odd one.
// Stack: none. runtime/conv proves what kernel.h demands.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out1, out2, out0, out3, plane, columns, tiles
        registers x, 8, left, depth, from0, from1, from2, from3, step, tile
        registers x, 16, next, after_odd
        registers v, 0, d0_, d1_, d2_, d3_, offset

func    n8_winograd_s8_neon
        ldp     tile, plane, [args, #N8_OFF_WG_OUT]
        ldp     columns, tiles, [args, #N8_OFF_WG_COLUMNS]
        ldr     depth, [args, #N8_OFF_WG_DEPTH]
        add     out1, args, #N8_OFF_WG_OFFSET
        ldr     w8, [args, #N8_OFF_WG_PAIRS]
        ld1r    {offset.8b}, [out1]

        // In pairs the second tile begins 8 bytes after the first, and their bytes alternate.
        mov     step, #8
        mov     next, depth
        mov     after_odd, depth
        cbz     left, 1f
        mov     step, #16
        mov     next, #8
        lsl     after_odd, depth, #1
        sub     after_odd, after_odd, #8

        // A tile.
1:      ldp     from0, from1, [columns]
        ldp     from2, from3, [columns, #16]
        add     columns, columns, #16
        mov     out1, tile
        add     out2, tile, plane
        add     out0, out2, plane
        add     out3, out0, plane
        mov     left, depth

        // 8 bytes of it.
2:      ldr     d0, [from0], #8
        ldr     d1, [from1], #8
        ldr     d2, [from2], #8
        ldr     d3, [from3], #8
        subs    left, left, #8
        add     v5.8b, d1_.8b, d2_.8b
        sub     v6.8b, d2_.8b, d1_.8b
        sub     d0_.8b, d0_.8b, d2_.8b
        sub     d3_.8b, d3_.8b, d1_.8b
        sub     v5.8b, v5.8b, offset.8b
        st1     {v6.8b}, [out2], step
        st1     {d0_.8b}, [out0], step
        st1     {d3_.8b}, [out3], step
        st1     {v5.8b}, [out1], step
        b.ne    2b

        // The next one.
        add     tile, tile, next
        mov     left, next
        mov     next, after_odd
        mov     after_odd, left
        subs    tiles, tiles, #1
        b.ne    1b
        ret
endfunc n8_winograd_s8_neon
