// SPDX-License-Identifier: Apache-2.0
#include "igemm.h"

static void store(const struct n8_igemm_args *args, const struct n8_lanes *lanes, size_t p,
                  const int32_t sums[N8_LANES]) {
    float v[N8_LANES];
    for (size_t j = 0; j < N8_LANES; j++)
        v[j] = (float)sums[j] * lanes->multiplier[j] + lanes->bias_f32[j];
    char *out = (char *)args->out + (ptrdiff_t)p * args->out_stride;
    memcpy(out + lanes->first * sizeof(float), v, lanes->channels * sizeof(float));
}

void n8_igemm_s8_f32_c(const struct n8_igemm_args *args) {
    n8_igemm(args, store);
}
