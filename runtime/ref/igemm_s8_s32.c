// SPDX-License-Identifier: Apache-2.0
#include "igemm.h"

#include <string.h>

static void store(const struct n8_igemm_args *args, size_t p, size_t n, size_t pixels,
                  size_t channels, int32_t sums[N8_MR][N8_NR]) {
    for (size_t i = 0; i < pixels; i++) {
        char *out = (char *)args->out + (ptrdiff_t)(p + i) * args->out_stride;
        memcpy(out + n * sizeof(int32_t), sums[i], channels * sizeof(int32_t));
    }
}

void n8_igemm_s8_s32_c(const struct n8_igemm_args *args) {
    n8_igemm(args, store);
}
