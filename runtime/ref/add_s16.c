// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

#include <string.h>

// A piece at a time, since `out` may be an operand.
void n8_add_s16_c(const struct n8_add_s16_args *args) {
    enum { PIECE = 128 };
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    const float a_scale = args->a_scale, b_scale = args->b_scale, slope = args->slope;
    const int32_t a_zero_point = args->a_zero_point, b_zero_point = args->b_zero_point;
    int16_t piece[PIECE];
    for (size_t done = 0; done < args->count; done += PIECE) {
        const int16_t *a = args->a + done;
        const int16_t *b = args->b + done;
        const size_t rest = args->count - done;
        const size_t count = rest < PIECE ? rest : PIECE;
        for (size_t i = 0; i < count; i++) {
            const float left = (float)(a[i] - a_zero_point) * a_scale;
            const float right = (float)(b[i] - b_zero_point) * b_scale;
            piece[i] = n8_round_s16(n8_leaky(left + right, slope), limits);
        }
        memcpy(args->out + done, piece, count * sizeof *piece);
    }
}
