// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

void n8_powers_s8_c(int64_t *sums, const int8_t *in, size_t count, const int32_t *powers) {
    int8_t largest = INT8_MIN;
    for (size_t i = 0; i < count; i++) {
        largest = in[i] > largest ? in[i] : largest;
    }
    const ptrdiff_t last = 255 - largest;
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += powers[last + in[i]];
    }
    sums[0] = largest;
    sums[1] = sum;
}
