// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <string.h>

enum { LANES = 8 };

void n8_depthwise_s16_s32_c(const struct n8_depthwise_s16_args *args) {
    const size_t taps = args->kernel_height * args->kernel_width;
    for (size_t c = 0; c < args->channels; c += LANES) {
        for (size_t p = 0; p < args->pixels; p++) {
            const int16_t *w = args->weights + c * taps;
            uint32_t sums[LANES];
            memcpy(sums, args->bias + c, sizeof sums);
            for (size_t y = 0; y < args->kernel_height; y++) {
                const char *row = (const char *)(args->rows[y] + c) + (ptrdiff_t)p * args->step;
                for (size_t x = 0; x < args->kernel_width; x++, w += LANES) {
                    int16_t in[LANES];
                    memcpy(in, row + (ptrdiff_t)x * args->tap_stride, sizeof in);
                    for (size_t i = 0; i < LANES; i++)
                        sums[i] += (uint32_t)(in[i] * w[i]);
                }
            }
            memcpy(args->sums + p * args->channels + c, sums, sizeof sums);
        }
    }
}
