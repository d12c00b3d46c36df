// SPDX-License-Identifier: Apache-2.0
//
// Packed weights that are larger than they need be, given up where memory is short.
#ifndef N8_FRUGAL_H
#define N8_FRUGAL_H

#include "model/model.h"

// Sums up what the planned steps pack and their scratch, in model->memory, the rest of which is
// there. If that is beyond max_bytes, layers are planned anew so that it fits if it can: int16
// Winograd stays where a byte saves most products. Results do not depend on it. N8_E_MEMORY.
enum n8_status n8_plan_weights(struct n8_model *model, uint64_t max_bytes);

#endif // N8_FRUGAL_H
