// SPDX-License-Identifier: Apache-2.0
#include "vector.h"

enum { BYTES = 4 * N8_LANES, ROW = 16, ROWS = 256 / ROW };

#if defined(__x86_64__)
// The table's rows of 16 bytes, each in every 128 bits of a register: that is how far a shuffle
// reaches.
struct rows {
    n8_mm row[ROWS];
};

N8_INLINE struct rows rows_of(const int8_t *table) {
    struct rows all;
    for (int k = 0; k < ROWS; k++) {
        const __m128i row = _mm_loadu_si128((const __m128i *)(const void *)(table + k * ROW));
#if N8_LANES == 16
        all.row[k] = _mm512_broadcast_i32x4(row);
#elif N8_LANES == 8
        all.row[k] = _mm256_broadcastsi128_si256(row);
#else
        all.row[k] = row;
#endif
    }
    return all;
}

// What the rows have for bytes 0 .. 255, one row after the other.
N8_INLINE n8_mm look_up(n8_mm at, const struct rows *all) {
#if N8_LANES == 16
    const n8_mm high = _mm512_and_si512(_mm512_srli_epi16(at, 4), _mm512_set1_epi8(ROW - 1));
    n8_mm found = _mm512_setzero_si512();
    at = _mm512_and_si512(at, _mm512_set1_epi8(ROW - 1));
#pragma GCC unroll 16
    for (int k = 0; k < ROWS; k++) {
        const __mmask64 here = _mm512_cmpeq_epi8_mask(high, _mm512_set1_epi8((char)k));
        found = _mm512_mask_shuffle_epi8(found, here, all->row[k], at);
    }
    return found;
#else
    // A shuffle gives 0 for what has the highest bit, which is all that another row has.
    n8_mm found = (n8_mm)(n8_s8s){0};
#pragma GCC unroll 16
    for (int k = 0; k < ROWS; k++) {
        const n8_mm from = (n8_mm)((n8_s8s)at ^ (int8_t)(k * ROW));
        const n8_mm mine = N8_MM(adds_epu8)(from, N8_MM(set1_epi8)(0x80 - ROW));
        found = (n8_mm)((n8_s8s)found | (n8_s8s)N8_MM(shuffle_epi8)(all->row[k], mine));
    }
    return found;
#endif
}
#else
struct rows {
    uint8x16x4_t row[4];
};

N8_INLINE struct rows rows_of(const int8_t *table) {
    struct rows all;
    for (int k = 0; k < 4; k++)
        all.row[k] = vld1q_u8_x4((const uint8_t *)table + k * 4 * ROW);
    return all;
}

N8_INLINE n8_s8s look_up(n8_s8s at, const struct rows *all) {
    uint8x16_t found = vqtbl4q_u8(all->row[0], (uint8x16_t)at);
    for (int k = 1; k < 4; k++) // 0 .. 63 is of this row, and all else stays
        found = vqtbx4q_u8(found, all->row[k], (uint8x16_t)(at ^ (int8_t)(k * 4 * ROW)));
    return (n8_s8s)found;
}
#endif

// Looks up bytes with level -128 as the first of the table.
N8_INLINE n8_s8s looked_up(n8_s8s at, const struct rows *all) {
    at ^= INT8_MIN;
#if defined(__x86_64__)
    return (n8_s8s)look_up((n8_mm)at, all);
#else
    return look_up(at, all);
#endif
}

// ROW columns, of as many pixels at once as a register has rows of bytes. What is left of these in
// the last round is the last pixel again.
N8_INLINE void look_up_columns(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                               size_t pixels, const struct rows *all) {
    enum { ONCE = BYTES / ROW };
    for (size_t p = 0; p < pixels; p += ONCE) {
        int8_t bytes[BYTES];
        n8_s8s at;
        for (size_t k = 0; k < ONCE; k++) {
            const size_t pixel = p + k < pixels ? p + k : pixels - 1;
            memcpy(bytes + k * ROW, in + pixel * in_stride, ROW);
        }
        memcpy(&at, bytes, sizeof at);
        at = looked_up(at, all);
        memcpy(bytes, &at, sizeof at);
        for (size_t k = 0; k < ONCE && p + k < pixels; k++)
            memcpy(out + (p + k) * out_stride, bytes + k * ROW, ROW);
    }
}

void N8_VECTOR_KERNEL(table_s8)(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                                size_t pixels, size_t count, const int8_t *table) {
    if (count >= ROW) {
        const struct rows all = rows_of(table);
        if (count == ROW && out_stride == ROW && in_stride == ROW) { // one run of bytes
            for (; pixels >= BYTES / ROW; pixels -= BYTES / ROW, in += BYTES, out += BYTES) {
                n8_s8s at;
                memcpy(&at, in, sizeof at);
                at = looked_up(at, &all);
                memcpy(out, &at, sizeof at);
            }
        }
        for (; count >= ROW; count -= ROW, in += ROW, out += ROW)
            look_up_columns(out, out_stride, in, in_stride, pixels, &all);
    }
    for (size_t p = 0; p < pixels; p++, out += out_stride, in += in_stride) {
        for (size_t i = 0; i < count; i++)
            out[i] = table[in[i] + 128];
    }
}
