// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <string.h>

void n8_winograd_gemm_s32_c(const struct n8_winograd_gemm_args *args) {
    const size_t width = args->width;
    for (size_t p = 0; p < args->planes; p++) {
        const char *plane = (const char *)args->in + p * args->in_plane;
        const char *panel = (const char *)args->weights + p * args->weights_plane;
        const int16_t *in = (const int16_t *)(const void *)plane;
        const int16_t *weights = (const int16_t *)(const void *)panel;
        for (size_t t = 0; t < args->tiles; t++, in += args->depth) {
            uint32_t sums[N8_MAX_NR] = {0};
            for (size_t k = 0; k < args->depth; k++) {
                for (size_t n = 0; n < width; n++)
                    sums[n] += (uint32_t)(in[k] * weights[k * width + n]);
            }
            memcpy((char *)args->sums + p * args->sums_plane + t * width * sizeof *sums, sums,
                   width * sizeof *sums);
        }
    }
}
