// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include <string.h>

const struct n8_operator *n8_operator_of(uint32_t kind) {
    static const struct n8_operator *const operators[] = {
#define N8_OPERATOR(kind, symbol) [N8_OP_##kind] = &n8_op_##symbol,
#include "ops.inc"
#undef N8_OPERATOR
    };
    return kind < sizeof operators / sizeof operators[0] ? operators[kind] : NULL;
}

enum n8_status n8_check_same_shape(struct n8_reader *reader, const struct n8_tensor *a,
                                   const struct n8_tensor *b) {
    if (memcmp(a->dims, b->dims, sizeof a->dims) != 0) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its inputs and output differ in shape");
    }
    return N8_OK;
}

enum n8_status n8_check_same_dims(struct n8_reader *reader, const struct n8_tensor *a,
                                  const struct n8_tensor *b) {
    if (a->rank != b->rank || memcmp(a->onnx_dims, b->onnx_dims, sizeof a->onnx_dims) != 0) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its inputs and output differ in dimensions");
    }
    return N8_OK;
}

enum n8_status n8_check_same_scale(struct n8_reader *reader, const struct n8_tensor *a,
                                   const struct n8_tensor *b) {
    if (a->scale != b->scale || a->zero_point != b->zero_point) {
        return n8_refuse(reader->error, N8_E_FORMAT,
                         "its inputs and output differ in scale or zero point");
    }
    return N8_OK;
}
