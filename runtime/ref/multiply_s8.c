// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_multiply_s8_c(const struct n8_pointwise_args *args) {
    if (args->scales != NULL) {
        N8_POINTWISE(args, int8_t, n8_round_s8, (float)(A * B) * args->scales[done + i])
    } else {
        N8_POINTWISE(args, int8_t, n8_round_s8, (float)(A * B) * a_scale)
    }
}
