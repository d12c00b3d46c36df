// SPDX-License-Identifier: Apache-2.0
#include "depthwise.h"

void N8_VECTOR_KERNEL(depthwise3x3s1_s8)(const struct n8_depthwise_args *args) {
    n8_depthwise3x3(args);
}
