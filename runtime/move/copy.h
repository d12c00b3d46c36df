// SPDX-License-Identifier: Apache-2.0
//
// Moving values between layouts.
#ifndef N8_COPY_H
#define N8_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Copies `count` values of `size` bytes, 1, 2 or 4; steps are bytes from one value to the next.
static inline void n8_move_values(uint8_t *to, size_t to_step, const uint8_t *from,
                                  size_t from_step, size_t count, size_t size) {
    if (to_step == size && from_step == size) {
        memcpy(to, from, count * size);
    } else if (size == 1) {
        for (; count > 0; count--, to += to_step, from += from_step) {
            *to = *from;
        }
    } else if (size == sizeof(int16_t)) {
        for (; count > 0; count--, to += to_step, from += from_step) {
            memcpy(to, from, sizeof(int16_t));
        }
    } else {
        for (; count > 0; count--, to += to_step, from += from_step) {
            memcpy(to, from, sizeof(float));
        }
    }
}

#endif // N8_COPY_H
