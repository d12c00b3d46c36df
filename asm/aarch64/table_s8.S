// SPDX-License-Identifier: Apache-2.0
//
// out[i] = table[in[i] + 128]                                                                (8)
//
//   void n8_table_s8_neon(int8_t *out, const int8_t *in, size_t count, const int8_t *table);
//
// Bounds: exactly `count` bytes are read and written, and 256 of the table.
// Registers: x0-x3 the arguments; x4 next quarter of the table, w5 a byte; v0 indices, v1 result,
//   v2 128, v3 64, v16-v31 the table, four quarters of 64 bytes.
// Stack: none.
//
// tbl looks 64 bytes up and gives 0 for an index beyond them; tbx leaves what is there. So the
// indices go down by 64 from quarter to quarter, and each is below 64 for one of the four.
#include "asm.h"

#define out      x0
#define in       x1
#define count    x2
#define table    x3
#define quarter  x4
#define byte     w5
#define byte_x   x5

#define index    v0
#define index_q  q0
#define result   v1
#define result_q q1
#define middle   v2
#define step     v3

func    n8_table_s8_neon
        subs    count, count, #16
        b.lo    2f
        mov     quarter, table
        ld1     {v16.16b-v19.16b}, [quarter], #64
        ld1     {v20.16b-v23.16b}, [quarter], #64
        ld1     {v24.16b-v27.16b}, [quarter], #64
        ld1     {v28.16b-v31.16b}, [quarter]
        movi    middle.16b, #128
        movi    step.16b, #64

1:      ldr     index_q, [in], #16
        eor     index.16b, index.16b, middle.16b        // + 128
        tbl     result.16b, {v16.16b-v19.16b}, index.16b
        sub     index.16b, index.16b, step.16b
        tbx     result.16b, {v20.16b-v23.16b}, index.16b
        sub     index.16b, index.16b, step.16b
        tbx     result.16b, {v24.16b-v27.16b}, index.16b
        sub     index.16b, index.16b, step.16b
        tbx     result.16b, {v28.16b-v31.16b}, index.16b
        str     result_q, [out], #16
        subs    count, count, #16
        b.hs    1b

        // Up to 15 single bytes.
2:      adds    count, count, #16
        b.eq    4f
3:      ldrb    byte, [in], #1
        eor     byte, byte, #128
        ldrb    byte, [table, byte_x]
        strb    byte, [out], #1
        subs    count, count, #1
        b.ne    3b
4:      ret
endfunc n8_table_s8_neon
