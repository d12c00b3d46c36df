// SPDX-License-Identifier: Apache-2.0
#include "depthwise.h"

// The two slots differ in where the rows of a second row of outputs begin.
void n8_depthwise3x3(const struct n8_depthwise_args *args, int32_t ratio) {
    n8_depthwise(args, 3, 3, ratio);
}

void n8_depthwise3x3s1_s8_c(const struct n8_depthwise_args *args) {
    n8_depthwise3x3(args, 1);
}
