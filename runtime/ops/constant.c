// SPDX-License-Identifier: Apache-2.0
//
// Values that are the same in every run: copied once, when the model is opened.
#include "move/copy.h"
#include "move/widen.h"
#include "step.h"

#include "size.h"

#include <math.h>

enum n8_status n8_plan_constant(struct n8_reader *reader, struct n8_step *step) {
    struct n8_tensor *out = &reader->model->tensors[step->row.output];
    const size_t count = n8_mul(out->pixels, (size_t)out->dims[1]);
    const struct n8_file_op *row = &step->row;
    const uint64_t at = out->type == N8_TYPE_F32   ? row->values
                        : out->type == N8_TYPE_S32 ? row->indices
                                                   : row->weights;
    const int given = (row->values != 0) + (row->indices != 0) + (row->weights != 0);
    if (given > (at != 0)) {
        return n8_malformed(reader, "its array is of another type");
    }
    step->kernel_name = "none";
    step->units = 1;
    step->packed_size = out->bytes;
    out->constant = true;
    out->bytes = 0;
    return n8_read_array(reader, at, count, n8_value_size(out), &step->arrays[0]);
}

// From N C H W to the layout of a tensor.
enum n8_status n8_pack_constant(struct n8_reader *reader, struct n8_step *step, void *memory) {
    struct n8_tensor *out = &reader->model->tensors[step->row.output];
    const size_t channels = (size_t)out->dims[1];
    const size_t area = out->pixels / (size_t)out->dims[0];
    const size_t size = n8_value_size(out);
    const uint8_t *from = step->arrays[0];
    out->fixed = memory;
    for (size_t n = 0; n < (size_t)out->dims[0]; n++) {
        uint8_t *image = out->fixed + n * area * out->pixel_stride;
        for (size_t c = 0; c < channels; c++, from += area * size) {
            n8_move_values(image + c * size, out->pixel_stride, from, size, area, size);
        }
    }
    const uint8_t *values = step->arrays[0];
    for (size_t i = 0; size < sizeof(float) && i < out->pixels * channels; i++) {
        int16_t value;
        n8_widen(&value, values + i * size, 1, out->type);
        if (!n8_in_range(value, out->lo, out->hi)) {
            return n8_malformed(reader, "a value is outside its range");
        }
    }
    for (size_t i = 0; out->type == N8_TYPE_F32 && i < out->pixels * channels; i++) {
        if (isnan(((const float *)memory)[i])) {
            return n8_malformed(reader, "a value is NaN");
        }
    }
    return N8_OK;
}

void n8_run_constant(const struct n8_session *session, const struct n8_step *step, size_t begin,
                     size_t end, void *scratch) {}

const struct n8_operator n8_op_constant = {
    .name = "constant",
    .fields = N8_FIELD_VALUES | N8_FIELD_INDICES | N8_FIELD_S8_VALUES,
    .s16 = true,
    .s32 = true,
};
