// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

void n8_top_s8_c(int8_t *out, const int8_t *in, size_t count, const int8_t *table, int32_t first,
                 int32_t rest) {
    for (size_t i = 0; i < count; i++) {
        const int32_t at = in[i] - first;
        out[i] = at >= 0 ? table[at] : (int8_t)rest;
    }
}
