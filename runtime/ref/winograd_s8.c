// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

void n8_winograd_s8_c(const struct n8_winograd_args *args) {
    for (size_t i = 0; i < args->tiles; i++) {
        const int8_t *const *d = args->columns + 2 * i;
        for (size_t k = 0; k < args->depth; k++) {
            const size_t at = args->pairs ? i / 2 * 2 * args->depth + k / 8 * 16 + i % 2 * 8 + k % 8
                                          : i * args->depth + k;
            int8_t *out = args->out + at;
            out[0] = (int8_t)(d[1][k] + d[2][k] - args->offset);
            out[args->plane] = (int8_t)(d[2][k] - d[1][k]);
            out[2 * args->plane] = (int8_t)(d[0][k] - d[2][k]);
            out[3 * args->plane] = (int8_t)(d[3][k] - d[1][k]);
        }
    }
}
