// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM for one pixel, as of a fully connected layer, 16 channels at a time: igemm_s8_s32,
// igemm_s8_f32 and igemm_s8_s8 of runtime/kernel.h, which has the equations and the layout of all arrays.
//
//   void n8_igemm_s8_..._neon_1x16(const struct n8_igemm_args *args);
//
//   acc''[n] = bias[n] + sum over taps t and bytes k of rows[t][k] * w[n][t][k]             (3)(12)
//
//                       w d8  d9  d10  d11    2 bytes of 16 channels; d12-d15: the next 2
//                  a d0   q8  q9  q10  q11    2 bytes of the pixel, in all lanes; d1-d3: the next 6
//
// As in igemm_4x8.S, each accumulator has its lane from the first product on. Products are in
// q12-q15 and are added only during the loads of the next ones.
//
// Bounds: |a| <= 128 and |w| + |w'| <= 255 for two weights of a channel (11), so the products that
//   share an int16 lane reach at most 32640; vpadal empties it before a third. int32 is proved by
//   (12).
// Registers: below; the accumulators are q8-q11. Between the parts, all other vector registers are
//   free, and ptr, cursor, left, taps_left.
// Stack: 100 bytes, callee-saved registers.
#include "asm.h"

        registers r, 0, args, ptr, weights, cursor, left, taps_left, taps, steps
        // steps: of 8 bytes in a tap
        registers r, 8, channels, out, offset, rows
        // channels: left, over 16 where more follow; out: of these channels
        // offset: 4 * the first channel

.macro  multiply_pairs first, second
        vmull.s8 q12, \first, d8
        vmull.s8 q13, \first, d9
        vmull.s8 q14, \first, d10
        vmull.s8 q15, \first, d11
        vmlal.s8 q12, \second, d12
        vmlal.s8 q13, \second, d13
        vmlal.s8 q14, \second, d14
        vmlal.s8 q15, \second, d15
.endm

// Adds products, between loads of the weights of the next ones.
.macro  next_weights
        vld1.8  {d8-d11}, [weights]!
        vpadal.s16 q8, q12
        vpadal.s16 q9, q13
        vld1.8  {d12-d15}, [weights]!
        vpadal.s16 q10, q14
        vpadal.s16 q11, q15
.endm

.macro  step
        vld4.16 {d0[], d1[], d2[], d3[]}, [ptr]!
        next_weights
        multiply_pairs d0, d1
        next_weights
        multiply_pairs d2, d3
.endm

// Entry.
.macro  begin
        push_all
        ldr     out, [args, #N8_OFF_IG_OUT]
        ldr     rows, [args, #N8_OFF_IG_ROWS]
        ldr     weights, [args, #N8_OFF_IG_WEIGHTS]
        ldr     channels, [args, #N8_OFF_IG_CHANNELS]
        ldr     taps, [args, #N8_OFF_IG_TAPS]
        ldr     steps, [args, #N8_OFF_IG_DEPTH]
        lsr     steps, steps, #3
        mov     offset, #0
.endm

// What an array of 32-bit values has for these 16 channels, to q0-q3.
.macro  load_channels array
        ldr     ptr, [args, #\array]
        add     ptr, ptr, offset
        vldmia  ptr, {q0-q3}
.endm

// The accumulators of 16 channels.
.macro  accumulate
        ldr     ptr, [args, #N8_OFF_IG_BIAS]
        add     ptr, ptr, offset
        vldmia  ptr, {q8-q11}
        fill    vmov.i32, #0, q12, q13, q14, q15
        mov     cursor, rows
        mov     taps_left, taps

        // One tap, two steps at a time; an odd number begins with the second.
1:      ldr     ptr, [cursor], #4
        add     left, steps, #1
        lsr     left, left, #1
        tst     steps, #1
        bne     3f
2:      step
3:      subs    left, left, #1
        step
        bne     2b
        subs    taps_left, taps_left, #1
        bne     1b
        vpadal.s16 q8, q12
        vpadal.s16 q9, q13
        vpadal.s16 q10, q14
        vpadal.s16 q11, q15
.endm

// An operation for each accumulator with the value of its channel in q0-q3.
.macro  by_channel operation
        \operation q8, q8, q0
        \operation q9, q9, q1
        \operation q10, q10, q2
        \operation q11, q11, q3
.endm

// To floats: fmul((float) acc'', multiplier[n]).
.macro  scale_channels
        load_channels N8_OFF_IG_MULTIPLIER
        to_float q8, q9, q10, q11
        by_channel vmul.f32
.endm

// On to the next 16 channels, whose weights begin where those of the last ones end; `hi` if there
// are any. The stores have moved `out`.
.macro  next_channels
        add     offset, offset, #64
        subs    channels, channels, #16
.endm

// \finish: what becomes of the accumulators before exactly the channels that exist are stored.
.macro  words   finish
        begin
9:      accumulate
        \finish
        cmp     channels, #16
        blo     4f
        vst1.32 {d16-d19}, [out]!
        vst1.32 {d20-d23}, [out]!
        b       8f
4:      tst     channels, #8
        beq     5f
        vst1.32 {d16-d19}, [out]!
        vmov    q8, q10
        vmov    q9, q11
5:      store_last32 out, channels
8:      next_channels
        bhi     9b
        pop_all
.endm

func    n8_igemm_s8_s32_neon_1x16
        words
endfunc n8_igemm_s8_s32_neon_1x16

.macro  to_f32
        scale_channels
        load_channels N8_OFF_IG_BIAS_F32
        by_channel vadd.f32
.endm

func    n8_igemm_s8_f32_neon_1x16
        words   to_f32
endfunc n8_igemm_s8_f32_neon_1x16

func    n8_igemm_s8_s8_neon_1x16
        begin
.Lchannels_s8:
        accumulate
        scale_channels
        ldr     ptr, [args, #N8_OFF_IG_SLOPE]
        cmp     ptr, #0
        beq     4f
        add     ptr, ptr, offset
        vldmia  ptr, {q0-q3}
        leaky   q0, q12, q13, q8
        leaky   q1, q12, q13, q9
        leaky   q2, q12, q13, q10
        leaky   q3, q12, q13, q11
4:      load_limits N8_OFF_IG, ptr
        round16
        cmp     channels, #16
        blo     5f
        vst1.8  {d16-d17}, [out]!
        b       6f
5:      store_last out, channels
6:      next_channels
        bhi     .Lchannels_s8
        pop_all
endfunc n8_igemm_s8_s8_neon_1x16
