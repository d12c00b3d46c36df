// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_add_s8_c(const struct n8_pointwise_args *args) {
    const struct n8_limits limits = n8_limits_of(args->zero_point, args->lo, args->hi);
    const float a_scale = args->a_scale, b_scale = args->b_scale, slope = args->slope;
    const int32_t a_zero_point = args->a_zero_point, b_zero_point = args->b_zero_point;
    const int8_t *restrict a = args->a;
    const int8_t *restrict b = args->b;
    int8_t *restrict out = args->out;
    for (size_t i = 0, count = args->count; i < count; i++) {
        const float left = (float)(a[i] - a_zero_point) * a_scale;
        const float right = (float)(b[i] - b_zero_point) * b_scale;
        out[i] = n8_round_s8(n8_leaky(left + right, slope), limits);
    }
}
