// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_requantize_s8_c(const struct n8_pointwise_args *args) {
    const struct n8_limits limits = n8_limits_of(args->zero_point, args->lo, args->hi);
    const float scale = args->a_scale, slope = args->slope;
    const int32_t zero_point = args->a_zero_point;
    const int8_t *restrict a = args->a;
    int8_t *restrict out = args->out;
    for (size_t i = 0, count = args->count; i < count; i++)
        out[i] = n8_round_s8(n8_leaky((float)(a[i] - zero_point) * scale, slope), limits);
}
