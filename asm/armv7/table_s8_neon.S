// SPDX-License-Identifier: Apache-2.0
//
// out[i] = table[in[i] + 128]                                                                (8)
//
//   void n8_table_s8_neon(int8_t *out, const int8_t *in, size_t count, const int8_t *table);
//
// Bounds: exactly `count` bytes are read and written, and 256 of the table.
// Registers: r0 out, r1 in, r2 count, r3 the middle of the table, r4-r5 eight bytes, r6-r9, r12, lr
//   indices, and what the table has there.
// Stack: 28 bytes, what it preserves.
//
// No vector: vtbl looks 32 bytes up and takes three or four cycles for eight values, eight times for a
// table of 256, which does not fit the registers either. Single loads take one.
#include "asm.h"

#define out      r0
#define in       r1
#define count    r2
#define table    r3
#define low      r4
#define high     r5
#define byte0    r6
#define byte1    r7
#define byte2    r8
#define byte4    r9
#define byte5    r12
#define byte6    lr

func    n8_table_s8_neon
        add     table, table, #128
        subs    count, count, #8
        blo     2f
        push    {r4-r9, lr}
        .cfi_def_cfa_offset 28
        .cfi_offset lr, -4

        // Eight values in two words, which are used up for their highest byte.
1:      ldr     low, [in], #4
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
        bhs     1b
        pop     {r4-r9, lr}
        .cfi_restore lr
        .cfi_def_cfa_offset 0

        // Up to 7 single bytes.
2:      adds    count, count, #8
        bxeq    lr
3:      ldrsb   r12, [in], #1
        subs    count, count, #1
        ldrb    r12, [table, r12]
        strb    r12, [out], #1
        bne     3b
        bx      lr
endfunc n8_table_s8_neon
