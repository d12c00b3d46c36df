// SPDX-License-Identifier: Apache-2.0
//
// Why a model or a call was refused.
#ifndef N8_STATUS_H
#define N8_STATUS_H

#include "include/neon8.h"

#include <stdbool.h>

// Says why a file is refused; returns `status`.
static inline enum n8_status n8_refuse(struct n8_model_error *error, enum n8_status status,
                                       const char *reason) {
    error->reason = reason;
    return status;
}

// In what a caller fills in: does the room that a later release may use hold zeros?
#define N8_NOTHING_RESERVED(row) n8_is_zero((row)->reserved, sizeof(row)->reserved)
bool n8_is_zero(const uint32_t *words, size_t bytes);

// Returns what the call says, unless it went well.
#define N8_TRY(call)                                                                               \
    do {                                                                                           \
        const enum n8_status n8_tried = (call);                                                    \
        if (n8_tried != N8_OK) {                                                                   \
            return n8_tried;                                                                       \
        }                                                                                          \
    } while (0)

#endif // N8_STATUS_H
