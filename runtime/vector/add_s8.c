// SPDX-License-Identifier: Apache-2.0
#include "vector.h"

// What all lanes need.
struct constants {
    struct n8_rounding to;
    n8_f32s a_scale, b_scale, slope;
    n8_s32s a_zero_point, b_zero_point;
};

N8_INLINE n8_s32s add(n8_s32s a, n8_s32s b, const struct constants *of) {
    const n8_f32s left = n8_float(a - of->a_zero_point) * of->a_scale;
    const n8_f32s right = n8_float(b - of->b_zero_point) * of->b_scale;
    return n8_round_all(n8_leaky_all(left + right, of->slope), &of->to);
}

// `out` may be an operand: nothing is read again that was written.
void N8_VECTOR_KERNEL(add_s8)(const struct n8_pointwise_args *args) {
    const struct constants of = {
        .to = n8_rounding_of(args->zero_point, args->lo, args->hi),
        .a_scale = n8_all(args->a_scale),
        .b_scale = n8_all(args->b_scale),
        .slope = n8_all(args->slope),
        .a_zero_point = (n8_s32s){0} + args->a_zero_point,
        .b_zero_point = (n8_s32s){0} + args->b_zero_point,
    };
    const int8_t *a = args->a, *b = args->b;
    int8_t *out = args->out;
    size_t i = 0;
    for (; args->count - i >= N8_LANES; i += N8_LANES)
        n8_store_s8(out + i, add(n8_load_s8(a + i), n8_load_s8(b + i), &of));
    const size_t rest = args->count - i;
    if (rest > 0) {
        const n8_s32s last = add(n8_load_some_s8(a + i, rest), n8_load_some_s8(b + i, rest), &of);
        n8_store_some_s8(out + i, last, rest);
    }
}
