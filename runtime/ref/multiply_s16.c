// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_multiply_s16_c(const struct n8_add_s16_args *args) {
    if (args->scales != NULL) {
        N8_POINTWISE(args, int16_t, n8_round_s16, (float)A *(float)B * args->scales[done + i])
    } else {
        N8_POINTWISE(args, int16_t, n8_round_s16, (float)A *(float)B *a_scale)
    }
}
