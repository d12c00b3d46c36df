// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_affine_s8_c(const struct n8_affine_args *args) {
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    for (size_t p = 0; p < args->pixels; p++) {
        const int8_t *in = args->in + (ptrdiff_t)p * args->in_stride;
        int8_t *out = args->out + (ptrdiff_t)p * args->out_stride;
        for (size_t c = 0; c < args->channels; c++) {
            const float product = (float)(in[c] - args->in_zero_point) * args->multiplier[c];
            out[c] = n8_round_s8(n8_leaky(product + args->offset[c], args->slope), limits);
        }
    }
}
