// SPDX-License-Identifier: Apache-2.0
#include "operator.h"

#include <string.h>

const struct n8_operator *n8_operator_of(uint32_t kind) {
    switch (kind) {
#define N8_OPERATOR(kind, symbol, check, plan, pack, run)                                          \
    case N8_OP_##kind:                                                                             \
        return &n8_op_##symbol;
#include "ops.inc"
    default:
        return NULL;
    }
}

enum n8_status n8_check_none(struct n8_reader *reader, const struct n8_step *step) {
    return N8_OK;
}

enum n8_status n8_plan_none(struct n8_reader *reader, struct n8_step *step) {
    return N8_OK;
}

enum n8_status n8_pack_none(struct n8_reader *reader, struct n8_step *step, void *memory) {
    return N8_OK;
}

enum n8_status n8_check_step(struct n8_reader *reader, const struct n8_step *step) {
    switch (step->row.kind) {
#define N8_OPERATOR(kind, symbol, check, plan, pack, run)                                          \
    case N8_OP_##kind:                                                                             \
        return n8_check_##check(reader, step);
#include "ops.inc"
    default:
        return N8_E_FORMAT;
    }
}

enum n8_status n8_plan_step(struct n8_reader *reader, struct n8_step *step) {
    switch (step->row.kind) {
#define N8_OPERATOR(kind, symbol, check, plan, pack, run)                                          \
    case N8_OP_##kind:                                                                             \
        return n8_plan_##plan(reader, step);
#include "ops.inc"
    default:
        return N8_E_FORMAT;
    }
}

enum n8_status n8_pack_step(struct n8_reader *reader, struct n8_step *step, void *memory) {
    switch (step->row.kind) {
#define N8_OPERATOR(kind, symbol, check, plan, pack, run)                                          \
    case N8_OP_##kind:                                                                             \
        return n8_pack_##pack(reader, step, memory);
#include "ops.inc"
    default:
        return N8_E_FORMAT;
    }
}

void n8_run_step(const struct n8_session *session, const struct n8_step *step, size_t begin,
                 size_t end, void *scratch) {
    switch (step->row.kind) {
#define N8_OPERATOR(kind, symbol, check, plan, pack, run)                                          \
    case N8_OP_##kind:                                                                             \
        n8_run_##run(session, step, begin, end, scratch);                                          \
        break;
#include "ops.inc"
    default:
        break;
    }
}

bool n8_piece_of(const struct n8_model *model, const struct n8_step *step, size_t index,
                 size_t *pixel, size_t *byte) {
    switch (step->row.kind) {
#define N8_PIECE(kind, symbol)                                                                     \
    case N8_OP_##kind:                                                                             \
        return n8_piece_##symbol(model, step, index, pixel, byte);
#include "ops.inc"
    default:
        return false;
    }
}

bool n8_view_of(const struct n8_model *model, const struct n8_step *step, size_t *pixel,
                size_t *byte) {
    switch (step->row.kind) {
#define N8_VIEW(kind, symbol)                                                                      \
    case N8_OP_##kind:                                                                             \
        return n8_view_##symbol(model, step, pixel, byte);
#include "ops.inc"
    default:
        return false;
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
    uint64_t bytes = (uint64_t)step->out->pixels * step->out->pixel_stride;
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
