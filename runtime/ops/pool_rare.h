// SPDX-License-Identifier: Apache-2.0
//
// Pools (9) of int16, and all pools of float32, (20). They are rare, so that they have no kernels
// of their own.
#ifndef N8_POOL_RARE_H
#define N8_POOL_RARE_H

#include "include/neon8.h"
#include "kernel.h"

#include <stdbool.h>

// As maxpool_s8, of int16 values; all pointers are to them.
void n8_max_s16(const struct n8_pool_args *args);

// As avgpool_s8, of int16 values; at most 2^15 taps.
void n8_average_s16(const struct n8_pool_args *args);

// Pools float32 values; pointers are to them. `count`: what the sum, or the largest value, is
// divided by.
void n8_pool_f32(const struct n8_pool_args *args, bool max, float count);

#endif // N8_POOL_RARE_H
