// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_add_s16_c(const struct n8_add_s16_args *args) {
    N8_POINTWISE(args, int16_t, n8_round_s16, (float)A *a_scale + (float)B * b_scale)
}
