// SPDX-License-Identifier: Apache-2.0
#include "igemm.h"

static void store(const struct n8_igemm_args *args, const struct n8_lanes *lanes, size_t p,
                  const int32_t sums[N8_LANES]) {
    char *out = (char *)args->out + (ptrdiff_t)p * args->out_stride;
    memcpy(out + lanes->first * sizeof(int32_t), sums, lanes->channels * sizeof(int32_t));
}

void n8_igemm_s8_s32_c(const struct n8_igemm_args *args) {
    n8_igemm(args, store);
}
