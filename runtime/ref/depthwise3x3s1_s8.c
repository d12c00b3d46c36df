// SPDX-License-Identifier: Apache-2.0
#include "depthwise.h"

void n8_depthwise3x3s1_s8_c(const struct n8_depthwise_args *args) {
    n8_depthwise(args, 3, 3, 1);
}
