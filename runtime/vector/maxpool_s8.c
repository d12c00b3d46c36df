// SPDX-License-Identifier: Apache-2.0
#include "vector.h"

enum { BYTES = 4 * N8_LANES }; // of a register

N8_INLINE n8_s8s load(const int8_t *from) {
    n8_s8s value;
    memcpy(&value, from, sizeof value);
    return value;
}

// The first `count` bytes, 0 < count < BYTES; what follows is 0.
N8_INLINE n8_s8s load_some(const int8_t *from, size_t count) {
#if N8_LANES == 16
    const __mmask64 some = ((__mmask64)1 << count) - 1;
    return (n8_s8s)_mm512_maskz_loadu_epi8(some, from);
#else
    n8_s8s value = {0};
    memcpy(&value, from, count);
    return value;
#endif
}

N8_INLINE void store_some(int8_t *to, n8_s8s value, size_t count) {
#if N8_LANES == 16
    _mm512_mask_storeu_epi8(to, ((__mmask64)1 << count) - 1, (__m512i)value);
#else
    memcpy(to, &value, count);
#endif
}

N8_INLINE n8_s8s larger(n8_s8s a, n8_s8s b) {
#if defined(__x86_64__)
    return (n8_s8s)N8_MM(max_epi8)((n8_mm)a, (n8_mm)b);
#else
    return (n8_s8s)vmaxq_s8((int8x16_t)a, (int8x16_t)b);
#endif
}

N8_INLINE n8_s8s smaller(n8_s8s a, n8_s8s b) {
#if defined(__x86_64__)
    return (n8_s8s)N8_MM(min_epi8)((n8_mm)a, (n8_mm)b);
#else
    return (n8_s8s)vminq_s8((int8x16_t)a, (int8x16_t)b);
#endif
}

// The C kernel keeps the best of a block in memory from tap to tap; here it is in a register.
N8_INLINE void pixel(const struct n8_pool_args *args, size_t at) {
    const size_t from = at * args->step;
    int8_t *out = args->out + at * args->out_stride;
    const n8_s8s lo = (n8_s8s){0} + (int8_t)args->lo, hi = (n8_s8s){0} + (int8_t)args->hi;
    size_t c = 0;
    for (; args->channels - c >= BYTES; c += BYTES) {
        n8_s8s best = lo;
        for (size_t t = 0; t < args->taps; t++)
            best = larger(best, load(args->rows[t] + from + c));
        best = smaller(best, hi);
        memcpy(out + c, &best, sizeof best);
    }
    const size_t rest = args->channels - c;
    if (rest > 0) {
        n8_s8s best = lo;
        for (size_t t = 0; t < args->taps; t++)
            best = larger(best, load_some(args->rows[t] + from + c, rest));
        store_some(out + c, smaller(best, hi), rest);
    }
}

void N8_VECTOR_KERNEL(maxpool_s8)(const struct n8_pool_args *args) {
    for (size_t p = 0; p < args->pixels; p++)
        pixel(args, p);
}
