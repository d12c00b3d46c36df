// SPDX-License-Identifier: Apache-2.0
#include "vector.h"

// What all lanes need.
struct constants {
    struct n8_rounding to;
    n8_f32s multiplier;
    n8_s32s offset;
};

// `count` values from channel `c` on.
N8_INLINE void store(int8_t *out, size_t c, n8_s32s sum, size_t count, bool real,
                     const struct constants *of) {
    const n8_f32s v = n8_float(sum) * of->multiplier;
    if (real)
        memcpy(out + c * sizeof(float), &v, count * sizeof(float));
    else
        n8_store_some_s8(out + c, n8_round_all(v, &of->to), count);
}

// The C kernel keeps the sums of a block in memory from tap to tap; here they are in registers.
N8_INLINE void pixel(const struct n8_pool_args *args, size_t at) {
    const size_t from = at * args->step;
    int8_t *out = args->out + at * args->out_stride;
    const struct constants of = {
        .to = n8_rounding_of(args->zero_point, args->lo, args->hi),
        .multiplier = n8_all(args->multiplier),
        .offset = (n8_s32s){0} - (int32_t)args->taps * args->in_zero_point,
    };
    const size_t channels = args->channels;
    size_t c = 0;
    for (; channels - c >= 2 * N8_LANES; c += 2 * N8_LANES) {
        n8_s32s low = of.offset, high = of.offset;
        for (size_t t = 0; t < args->taps; t++) {
            const int8_t *row = args->rows[t] + from + c;
            low += n8_load_s8(row);
            high += n8_load_s8(row + N8_LANES);
        }
        store(out, c, low, N8_LANES, args->real != 0, &of);
        store(out, c + N8_LANES, high, N8_LANES, args->real != 0, &of);
    }
    for (; c < channels; c += N8_LANES) {
        const size_t some = channels - c < N8_LANES ? channels - c : N8_LANES;
        n8_s32s sum = of.offset;
        for (size_t t = 0; t < args->taps; t++)
            sum += n8_load_some_s8(args->rows[t] + from + c, some);
        store(out, c, sum, some, args->real != 0, &of);
    }
}

void N8_VECTOR_KERNEL(avgpool_s8)(const struct n8_pool_args *args) {
    for (size_t p = 0; p < args->pixels; p++)
        pixel(args, p);
}
