// SPDX-License-Identifier: Apache-2.0
#include "igemm.h"

static void store(const struct n8_igemm_args *args, const struct n8_lanes *lanes, size_t p,
                  const int32_t sums[N8_LANES]) {
    const int8_t *r = args->residual + (ptrdiff_t)p * args->residual_stride + lanes->first;
    float v[N8_LANES];
    for (size_t j = 0; j < N8_LANES; j++) {
        const float added = (float)(r[j] - args->residual_zero_point) * args->residual_scale;
        v[j] = (float)sums[j] * lanes->multiplier[j] + added;
    }
    n8_igemm_store_s8(args, lanes, p, v);
}

void n8_igemm_s8_s8_add_c(const struct n8_igemm_args *args) {
    n8_igemm(args, store);
}
