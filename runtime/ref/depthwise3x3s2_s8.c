// SPDX-License-Identifier: Apache-2.0
#include "depthwise.h"

void n8_depthwise3x3s2_s8_c(const struct n8_depthwise_args *args) {
    n8_depthwise3x3(args, 2);
}
