// SPDX-License-Identifier: Apache-2.0
#include "depthwise.h"

void n8_depthwise_s8_c(const struct n8_depthwise_args *args) {
    n8_depthwise(args, (size_t)args->kernel_height, (size_t)args->kernel_width, 1);
}
