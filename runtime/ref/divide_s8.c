// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

void n8_divide_s8_c(const struct n8_pointwise_args *args) {
    N8_POINTWISE(args, int8_t, n8_round_s8, (float)A / (float)B * a_scale)
}
