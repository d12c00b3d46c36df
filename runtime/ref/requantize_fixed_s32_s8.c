// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

// x * 2^left, at the ends of int32 where it would leave it.
static int32_t shift_left(int32_t x, int32_t left) {
    const int64_t wide = (int64_t)x * ((int64_t)1 << left);
    return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
}

// sqrdmulh: x * m / 2^31, halves rounded up; m >= 0, so that it cannot leave int32. The numbers
// before the shift are made unsigned, as a right shift of negative ones is the compiler's choice.
static int32_t multiply_high(int32_t x, int32_t m) {
    const int64_t product = (int64_t)x * m + (INT64_C(1) << 30); // above -2^62
    return (int32_t)((int64_t)(((uint64_t)product + (UINT64_C(1) << 62)) >> 31) -
                     (INT64_C(1) << 31));
}

// x / 2^right, halves rounded away from zero.
static int32_t shift_right(int32_t x, int32_t right) {
    const int64_t half = right == 0 ? 0 : INT64_C(1) << (right - 1);
    const int64_t magnitude = x < 0 ? -(int64_t)x : x;
    const int32_t result = (int32_t)((magnitude + half) >> right);
    return x < 0 ? -result : result;
}

void n8_requantize_fixed_s32_s8_c(int8_t *restrict out, const int32_t *restrict in, size_t pixels,
                                  size_t channels, const int32_t *restrict fixed,
                                  int32_t zero_point, int32_t lo, int32_t hi) {
    for (size_t p = 0; p < pixels; p++, in += channels, out += channels) {
        for (size_t c = 0; c < channels; c++) {
            const int32_t n = fixed[2 * c + 1];
            const int32_t x = n < 0 ? shift_left(in[c], -n) : in[c];
            const int64_t high = multiply_high(x, fixed[2 * c]);
            const int64_t q = zero_point + (int64_t)shift_right((int32_t)high, n < 0 ? 0 : n);
            out[c] = (int8_t)(q < lo ? lo : q > hi ? hi : q);
        }
    }
}
