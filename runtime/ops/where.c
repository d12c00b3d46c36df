// SPDX-License-Identifier: Apache-2.0
//
// Moves values: of one tensor where a condition holds, else of another; all three are broadcast as
// ONNX does.
#include "step.h"

enum n8_status n8_check_where(struct n8_reader *reader, const struct n8_step *step) {
    N8_TRY(n8_check_broadcast(reader, step));
    for (size_t i = 1; i < step->row.input_count; i++) {
        N8_TRY(n8_check_moved(reader, n8_input(reader->model, step, i), step->out));
    }
    return N8_OK;
}

#define CHOOSE(type)                                                                               \
    for (size_t i = 0; i < count; i++) {                                                           \
        const type x = ((const type *)operands[1])[i * steps[1]];                                  \
        const type y = ((const type *)operands[2])[i * steps[2]];                                  \
        ((type *)out)[i] = condition[i * steps[0]] != 0 ? x : y;                                   \
    }

static void choose1(const struct n8_step *step, void *out, const void *const *operands,
                    const size_t *steps, size_t count) {
    const int32_t *condition = operands[0];
    CHOOSE(uint8_t)
}

static void choose2(const struct n8_step *step, void *out, const void *const *operands,
                    const size_t *steps, size_t count) {
    const int32_t *condition = operands[0];
    CHOOSE(uint16_t)
}

static void choose4(const struct n8_step *step, void *out, const void *const *operands,
                    const size_t *steps, size_t count) {
    const int32_t *condition = operands[0];
    CHOOSE(uint32_t)
}

void n8_run_where(const struct n8_session *session, const struct n8_step *step, size_t begin,
                  size_t end, void *scratch) {
    const size_t size = n8_value_size(step->out);
    n8_run_broadcast(session, step, begin, end,
                     size == sizeof(int32_t)   ? choose4
                     : size == sizeof(int16_t) ? choose2
                                               : choose1);
}

const struct n8_operator n8_op_where = {
    .name = "where",
    .inputs = {3, 3},
    .s32_inputs = 1,
    .moves = true,
    .s16 = true,
    .s32 = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_SECOND,
};
