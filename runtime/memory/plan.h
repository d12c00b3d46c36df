// SPDX-License-Identifier: Apache-2.0
//
// Where every activation lives.
#ifndef N8_PLAN_H
#define N8_PLAN_H

#include "model/reader.h"

// Finds lifetimes, arena offsets, and the sizes of the arena. N8_E_FORMAT: a tensor is
// used before it is made, made twice, or never.
enum n8_status n8_plan_arena(const struct n8_reader *reader);

#endif // N8_PLAN_H
