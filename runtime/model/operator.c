// SPDX-License-Identifier: Apache-2.0
#include "operator.h"

#include <string.h>

const struct n8_operator *n8_operator_of(uint32_t kind) {
    switch (kind) {
#define N8_OPERATOR(kind, symbol)                                                                  \
    case N8_OP_##kind:                                                                             \
        return &n8_op_##symbol;
#include "ops.inc"
#undef N8_OPERATOR
    default:
        return NULL;
    }
}

// The least work that is given to a thread, in bytes read and written; waking one takes as long
// as moving some thousands of them. Builds for tests make it 1, so that small networks run on
// all threads.
#ifndef N8_LEAST_WORK
#define N8_LEAST_WORK 8192
#endif
enum { MACS_OF_A_BYTE = 4 }; // that take as long as to read or write one

size_t n8_grain_of(uint64_t bytes) {
    return bytes == 0 ? N8_LEAST_WORK : (size_t)((N8_LEAST_WORK + bytes - 1) / bytes);
}

uint64_t n8_cost(const struct n8_model *model, const struct n8_step *step) {
    if (step->units == 0) {
        return 0;
    }
    const struct n8_tensor *out = n8_output(model, step);
    uint64_t bytes = (uint64_t)out->pixels * out->pixel_stride;
    for (size_t i = 0; i < step->row.input_count; i++) {
        const struct n8_tensor *in = n8_input(model, step, i);
        bytes += (uint64_t)in->pixels * in->pixel_stride;
    }
    return step->macs * (step->mac_cost == 0 ? 1 : step->mac_cost) + bytes * MACS_OF_A_BYTE;
}

size_t n8_grain(const struct n8_model *model, const struct n8_step *step) {
    const uint64_t bytes = n8_cost(model, step) / MACS_OF_A_BYTE;
    return n8_grain_of(step->units == 0 ? 0 : bytes / step->units);
}
