// SPDX-License-Identifier: Apache-2.0
//
// int8 values as int16 and back: where a step has both, its kernel sees int16 only.
#ifndef N8_WIDEN_H
#define N8_WIDEN_H

#include "include/neon8.h"

#include <stddef.h>
#include <stdint.h>

// `count` values of type N8_TYPE_S8 or N8_TYPE_S16, aligned as such, as int16.
void n8_widen(int16_t *to, const void *from, size_t count, enum n8_type type);

// The other way: each value is one of the type.
void n8_narrow(void *to, const int16_t *from, size_t count, enum n8_type type);

#endif // N8_WIDEN_H
