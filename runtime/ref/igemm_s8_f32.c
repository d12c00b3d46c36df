// SPDX-License-Identifier: Apache-2.0
#include "igemm.h"

#include <string.h>

static void store(const struct n8_igemm_args *args, size_t p, size_t n, size_t pixels,
                  size_t channels, int32_t sums[N8_MR][N8_NR]) {
    for (size_t i = 0; i < pixels; i++) {
        float v[N8_NR];
        for (size_t j = 0; j < N8_NR; j++)
            v[j] = (float)sums[i][j] * args->multiplier[n + j] + args->bias_f32[n + j];
        char *out = (char *)args->out + (ptrdiff_t)(p + i) * args->out_stride;
        memcpy(out + n * sizeof(float), v, channels * sizeof(float));
    }
}

void n8_igemm_s8_f32_c(const struct n8_igemm_args *args) {
    n8_igemm(args, store);
}
