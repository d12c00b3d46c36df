// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

#include <string.h>

// A piece at a time, since `out` may be an operand.
void n8_multiply_s8_c(const struct n8_pointwise_args *args) {
    enum { PIECE = 256 };
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    const float scale = args->a_scale, slope = args->slope;
    const int32_t a_zero_point = args->a_zero_point, b_zero_point = args->b_zero_point;
    int8_t piece[PIECE];
    for (size_t done = 0; done < args->count; done += PIECE) {
        const int8_t *a = args->a + done;
        const int8_t *b = args->b + done;
        const size_t rest = args->count - done;
        const size_t count = rest < PIECE ? rest : PIECE;
        for (size_t i = 0; i < count; i++) {
            const int32_t product = (a[i] - a_zero_point) * (b[i] - b_zero_point);
            piece[i] = n8_round_s8(n8_leaky((float)product * scale, slope), limits);
        }
        memcpy(args->out + done, piece, count);
    }
}
