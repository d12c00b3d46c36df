// SPDX-License-Identifier: Apache-2.0
//
// out[i] = in[i] >= first ? table[in[i] - first] : rest                                       (30)
//
//   void n8_top_s8_neon(int8_t *out, const int8_t *in, size_t count, const int8_t *table,
//                       int32_t first, int32_t rest);
//
// Thirty-two values at a time, then sixteen; what is left is sixteen that end with the last and were
// loaded first, as `out` may be `in`. Fewer than sixteen go one by one.
//
// Bounds: no value is above first + 127. One below `first` is 128 to 255 after the subtraction,
//   modulo 256, and tbx leaves `rest` there, as it does in the first half of the table what belongs
//   to the second. Reads and writes exactly `count` bytes, and reads 128 of the table.
// Registers: x0-x3, w4, w5 the arguments; x6 values left, w7 a value; v0, v3 values, v4, v5 results,
//   v1 first, v2 rest, v6 the last values, v7 64, v16-v23 the table.
// Stack: none.
#include "asm.h"

        registers x, 0, out, in, count, table
        registers x, 6, left, value_x
        registers w, 4, first, rest
value   .req w7

.macro  look_up values, result
        mov     \result\().16b, v2.16b
        sub     \values\().16b, \values\().16b, v1.16b
        tbx     \result\().16b, {v16.16b-v19.16b}, \values\().16b
        sub     \values\().16b, \values\().16b, v7.16b
        tbx     \result\().16b, {v20.16b-v23.16b}, \values\().16b
.endm

func    n8_top_s8_neon
        subs    left, count, #16
        b.lo    4f
        ld1     {v16.16b-v19.16b}, [table], #64
        ld1     {v20.16b-v23.16b}, [table]
        movi    v7.16b, #64
        dup     v1.16b, first
        dup     v2.16b, rest
        ldr     q6, [in, left]
        subs    left, count, #32
        b.lo    2f
1:      ldp     q0, q3, [in], #32
        mov     v4.16b, v2.16b
        mov     v5.16b, v2.16b
        sub     v0.16b, v0.16b, v1.16b
        sub     v3.16b, v3.16b, v1.16b
        tbx     v4.16b, {v16.16b-v19.16b}, v0.16b
        tbx     v5.16b, {v16.16b-v19.16b}, v3.16b
        sub     v0.16b, v0.16b, v7.16b
        sub     v3.16b, v3.16b, v7.16b
        tbx     v4.16b, {v20.16b-v23.16b}, v0.16b
        tbx     v5.16b, {v20.16b-v23.16b}, v3.16b
        subs    left, left, #32
        stp     q4, q5, [out], #32
        b.hs    1b
2:      tbz     left, #4, 3f
        ldr     q0, [in], #16
        look_up v0, v4
        str     q4, [out], #16
3:      ands    left, left, #15
        b.eq    6f
        look_up v6, v4
        add     out, out, left
        str     q4, [out, #-16]
        ret

4:      cbz     count, 6f
5:      ldrsb   value, [in], #1
        subs    value, value, first
        csel    value, value, wzr, ge
        ldrsb   value, [table, value_x]
        csel    value, value, rest, ge
        strb    value, [out], #1
        sub     count, count, #1
        cbnz    count, 5b
6:      ret
endfunc n8_top_s8_neon
