// SPDX-License-Identifier: Apache-2.0
//
// out[i] = table[in[i] + 128]                                                                (8)
//
//   void n8_table_s8_neon(int8_t *out, const int8_t *in, size_t count, const int8_t *table);
//
// 48 values at a time: vtbl looks up 32 bytes and gives 0 for an index beyond them; vtbx leaves
// what is there. So 32 is subtracted from the indices after each eighth of the table, and each
// index is below 32 for one of the eight. The second half of the table takes the place of the first
// one, an eighth as soon as all 48 values have been looked up in it.
//
// Bounds: exactly `count` bytes are read and written, and 256 of the table.
// Registers: below; q0-q2 48 indices, q3-q5 results, q6 32, q7 128, q8-q15 half of the table.
// Stack: 64 bytes, what it preserves.
#include "asm.h"

#define out      r0
#define in       r1
#define count    r2
#define table    r3                             // its middle after the loop over 48 values
#define eighth   r12                            // the next one
// Eight values: their bytes, the indices, and what the table has there.
#define low      r4
#define high     r5
#define byte0    r6
#define byte1    r7
#define byte2    r8
#define byte4    r9
#define byte5    r12
#define byte6    lr

// 48 values in an eighth of the table, which is in the registers \first to \last.
.macro  look_up operation, first, last
        \operation d6, {\first-\last}, d0
        \operation d7, {\first-\last}, d1
        \operation d8, {\first-\last}, d2
        \operation d9, {\first-\last}, d3
        \operation d10, {\first-\last}, d4
        \operation d11, {\first-\last}, d5
.endm

func    n8_table_s8_neon
        subs    count, count, #48
        blo     2f
        save_double d8, d9, d10, d11, d12, d13, d14, d15
        vmov.i8 q6, #32
        vmov.i8 q7, #128

1:      vld1.8  {d0-d3}, [in]!
        vld1.8  {d4-d5}, [in]!
        mov     eighth, table
        vld1.8  {d16-d19}, [eighth]!
        vld1.8  {d20-d23}, [eighth]!
        each    veor, q7, q0, q1, q2            // + 128
        vld1.8  {d24-d27}, [eighth]!
        vld1.8  {d28-d31}, [eighth]!
        look_up vtbl.8, d16, d19
        each    vsub.i8, q6, q0, q1, q2
        vld1.8  {d16-d19}, [eighth]!
        look_up vtbx.8, d20, d23
        each    vsub.i8, q6, q0, q1, q2
        vld1.8  {d20-d23}, [eighth]!
        look_up vtbx.8, d24, d27
        each    vsub.i8, q6, q0, q1, q2
        vld1.8  {d24-d27}, [eighth]!
        look_up vtbx.8, d28, d31
        each    vsub.i8, q6, q0, q1, q2
        vld1.8  {d28-d31}, [eighth]
        look_up vtbx.8, d16, d19
        each    vsub.i8, q6, q0, q1, q2
        look_up vtbx.8, d20, d23
        each    vsub.i8, q6, q0, q1, q2
        look_up vtbx.8, d24, d27
        each    vsub.i8, q6, q0, q1, q2
        look_up vtbx.8, d28, d31
        subs    count, count, #48
        vst1.8  {d6-d9}, [out]!
        vst1.8  {d10-d11}, [out]!
        bhs     1b
        restore_double d8, d9, d10, d11, d12, d13, d14, d15

        // Up to 47, eight at a time in two words, which the last look-up of each overwrites.
2:      add     table, table, #128
        adds    count, count, #40
        bmi     4f
        save    r4, r5, r6, r7, r8, r9, lr
3:      ldr     low, [in], #4
        ldr     high, [in], #4
        subs    count, count, #8
        sxtb    byte0, low
        sxtb    byte1, low, ror #8
        sxtb    byte2, low, ror #16
        sxtb    byte4, high
        ldrb    byte0, [table, byte0]
        sxtb    byte5, high, ror #8
        ldrb    byte1, [table, byte1]
        sxtb    byte6, high, ror #16
        ldrb    byte2, [table, byte2]
        ldrb    low, [table, low, asr #24]
        ldrb    byte4, [table, byte4]
        orr     byte0, byte0, byte1, lsl #8
        ldrb    byte5, [table, byte5]
        orr     byte0, byte0, byte2, lsl #16
        ldrb    byte6, [table, byte6]
        orr     byte0, byte0, low, lsl #24
        ldrb    high, [table, high, asr #24]
        orr     byte4, byte4, byte5, lsl #8
        orr     byte4, byte4, byte6, lsl #16
        str     byte0, [out], #4
        orr     byte4, byte4, high, lsl #24
        str     byte4, [out], #4
        bhs     3b
        restore r4, r5, r6, r7, r8, r9, lr

        // Up to 7 single bytes.
4:      adds    count, count, #8
        bxeq    lr
5:      ldrsb   r12, [in], #1
        subs    count, count, #1
        ldrb    r12, [table, r12]
        strb    r12, [out], #1
        bne     5b
        bx      lr
endfunc n8_table_s8_neon
