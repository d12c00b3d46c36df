// SPDX-License-Identifier: Apache-2.0
//
// Which integer values an int8 or int16 tensor can hold, as follows from the steps that make it:
// (23) needs inputs of few.
#include "operator.h"

enum { ENTRIES = 256 }; // of a table

static void take(struct n8_tensor *out, int32_t lo, int32_t hi) {
    out->value_lo = lo < out->value_lo ? lo : out->value_lo;
    out->value_hi = hi > out->value_hi ? hi : out->value_hi;
}

void n8_find_value_range(struct n8_reader *reader, const struct n8_step *step) {
    struct n8_tensor *out = &reader->model->tensors[step->row.output];
    const struct n8_file_op *row = &step->row;
    const uint32_t fields = step->op->fields;
    if (out->type != N8_TYPE_S8 && out->type != N8_TYPE_S16) {
        return;
    }
    if (step->op->moves) {
        out->value_lo = INT32_MAX;
        out->value_hi = INT32_MIN;
        for (size_t i = 0; i < row->input_count; i++) {
            const struct n8_tensor *in = n8_input(reader->model, step, i);
            if (in->type != N8_TYPE_S32) { // which says what is taken
                take(out, in->value_lo, in->value_hi);
            }
        }
        if (fields & N8_FIELD_FILL) {
            take(out, (int32_t)row->fill, (int32_t)row->fill);
        }
    }
    if (fields & N8_FIELD_TABLE) {
        const struct n8_tensor *in = step->in;
        const int8_t *table = (const int8_t *)step->arrays[0] - INT8_MIN;
        out->value_lo = out->value_hi = table[in->value_lo];
        for (size_t i = 0; i < step->tables; i++, table += ENTRIES) {
            for (int32_t q = in->value_lo; q <= in->value_hi; q++) {
                take(out, table[q], table[q]);
            }
        }
    }
    if (fields & N8_FIELD_CLAMP) { // which comes last
        out->value_lo = out->value_lo < row->lo ? row->lo : out->value_lo;
        out->value_lo = out->value_lo > row->hi ? row->hi : out->value_lo;
        out->value_hi = out->value_hi > row->hi ? row->hi : out->value_hi;
        out->value_hi = out->value_hi < row->lo ? row->lo : out->value_hi;
    }
}
