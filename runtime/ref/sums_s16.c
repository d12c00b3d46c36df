// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

// Each half of a square of 16 bits fits a sum of 2^16 of them in 32.
void n8_sums_s16_c(int64_t *sums, const int16_t *in, size_t count) {
    int32_t values = 0;
    uint32_t low = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t square = (uint32_t)(in[i] * in[i]);
        values += in[i];
        low += square & 0xffff;
        high += square >> 16;
    }
    sums[0] = values;
    sums[1] = ((int64_t)high << 16) + low;
}
