// SPDX-License-Identifier: Apache-2.0
//
// out[i] = in[i] >= first ? table[in[i] - first] : rest                                       (30)
//
//   void n8_top_s8_neon(int8_t *out, const int8_t *in, size_t count, const int8_t *table,
//                       int32_t first, int32_t rest);
//
// Sixteen values at a time; what is left is sixteen that end with the last and were loaded first, as
// `out` may be `in`. Fewer than sixteen go one by one.
//
// Bounds: no value is above first + 127. One below `first` is 128 to 255 after the subtraction,
//   modulo 256, and vtbx leaves `rest` there, as it does in a quarter of the table what belongs to
//   another. Reads and writes exactly `count` bytes, and reads 128 of the table.
// Registers: below; q0 values, q1 results, q2 first, q3 rest, q4 32, q5 the last values, q8-q15 the
//   table.
// Stack: 48 bytes, what it preserves.
#include "asm.h"

        registers r, 0, out, in, count, table, first, rest, value
left    .req r12

        // q0 to q1.
.macro  look_up
        vsub.i8 q0, q0, q2
        vmov    q1, q3
        vtbx.8  d2, {d16-d19}, d0
        vtbx.8  d3, {d16-d19}, d1
        vsub.i8 q0, q0, q4
        vtbx.8  d2, {d20-d23}, d0
        vtbx.8  d3, {d20-d23}, d1
        vsub.i8 q0, q0, q4
        vtbx.8  d2, {d24-d27}, d0
        vtbx.8  d3, {d24-d27}, d1
        vsub.i8 q0, q0, q4
        vtbx.8  d2, {d28-d31}, d0
        vtbx.8  d3, {d28-d31}, d1
.endm

func    n8_top_s8_neon
        save    r4, r5, r6, lr
        save_double d8, d9, d10, d11
        ldr     first, [sp, #48]
        ldr     rest, [sp, #52]
        subs    left, count, #16
        blo     3f
        vld1.8  {d16-d19}, [table]!
        vld1.8  {d20-d23}, [table]!
        vld1.8  {d24-d27}, [table]!
        vld1.8  {d28-d31}, [table]
        vdup.8  q2, first
        vdup.8  q3, rest
        vmov.i8 q4, #32
        add     value, in, left
        vld1.8  {d10-d11}, [value]
1:      vld1.8  {d0-d1}, [in]!
        look_up
        subs    left, left, #16
        vst1.8  {d2-d3}, [out]!
        bhs     1b
        adds    left, left, #16
        beq     5f
        vmov    q0, q5
        look_up
        add     out, out, left
        sub     out, out, #16
        vst1.8  {d2-d3}, [out]
        b       5f

3:      cmp     count, #0
        beq     5f
4:      ldrsb   value, [in], #1
        subs    value, value, first
        ldrsbge value, [table, value]
        movlt   value, rest
        strb    value, [out], #1
        subs    count, count, #1
        bne     4b
5:      restore_double d8, d9, d10, d11
        restore r4, r5, r6, lr
        bx      lr
endfunc n8_top_s8_neon
