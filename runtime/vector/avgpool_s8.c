// SPDX-License-Identifier: Apache-2.0
#include "vector.h"

// What all lanes need.
struct constants {
    struct n8_rounding to;
    n8_f32s multiplier;
    n8_s32s offset;
};

N8_INLINE n8_s32s rounded(n8_s32s sum, const struct constants *of) {
    return n8_round_all(n8_float(sum) * of->multiplier, &of->to);
}

// The C kernel keeps the sums of a block in memory from tap to tap; here they are in registers.
void N8_VECTOR_KERNEL(avgpool_s8)(const struct n8_pool_args *args) {
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
            const int8_t *row = args->rows[t] + c;
            low += n8_load_s8(row);
            high += n8_load_s8(row + N8_LANES);
        }
        n8_store_s8(args->out + c, rounded(low, &of));
        n8_store_s8(args->out + c + N8_LANES, rounded(high, &of));
    }
    for (; c < channels; c += N8_LANES) {
        const size_t some = channels - c < N8_LANES ? channels - c : N8_LANES;
        n8_s32s sum = of.offset;
        for (size_t t = 0; t < args->taps; t++)
            sum += n8_load_some_s8(args->rows[t] + c, some);
        n8_store_some_s8(args->out + c, rounded(sum, &of), some);
    }
}
