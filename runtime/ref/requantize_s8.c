// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

#include <string.h>

// A piece at a time, since `out` may be the operand.
void n8_requantize_s8_c(const struct n8_pointwise_args *args) {
    enum { PIECE = 256 };
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    const float scale = args->a_scale, slope = args->slope;
    const int32_t zero_point = args->a_zero_point;
    int8_t piece[PIECE];
    for (size_t done = 0; done < args->count; done += PIECE) {
        const int8_t *a = args->a + done;
        const size_t rest = args->count - done;
        const size_t count = rest < PIECE ? rest : PIECE;
        for (size_t i = 0; i < count; i++)
            piece[i] = n8_round_s8(n8_leaky((float)(a[i] - zero_point) * scale, slope), limits);
        memcpy(args->out + done, piece, count);
    }
}
