// SPDX-License-Identifier: Apache-2.0
#include "step.h"

#include <string.h>

// Values from one pixel to the next, those of the channels' padding among them.
static size_t value_stride(const struct n8_tensor *tensor) {
    return tensor->pixel_stride / n8_value_size(tensor);
}

struct n8_stretch n8_stretch_of(const struct n8_model *model, const struct n8_step *step,
                                size_t pixels) {
    const struct n8_tensor *out = n8_output(model, step);
    bool together = !out->slice;
    for (size_t i = 0; i < step->row.input_count; i++) {
        const struct n8_tensor *in = n8_input(model, step, i);
        together = together && (memcmp(in->dims, out->dims, sizeof in->dims) != 0 ||
                                (!in->slice && value_stride(in) == value_stride(out)));
    }
    return together ? (struct n8_stretch){pixels, pixels * value_stride(out)}
                    : (struct n8_stretch){1, (size_t)out->dims[1]};
}

enum n8_status n8_check_same_scale(struct n8_reader *reader, const struct n8_tensor *a,
                                   const struct n8_tensor *b) {
    if (a->scale != b->scale || a->zero_point != b->zero_point) {
        return n8_malformed(reader, "its inputs and output differ in scale or zero point");
    }
    return N8_OK;
}

enum n8_status n8_check_moved(struct n8_reader *reader, const struct n8_tensor *in,
                              const struct n8_tensor *out) {
    if (out->type == N8_TYPE_S16 && (in->lo < out->lo || in->hi > out->hi)) {
        return n8_malformed(reader, "an input exceeds its output's range");
    }
    return n8_check_same_scale(reader, in, out);
}

enum n8_status n8_check_rearranged(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (n8_value_count(in) != n8_value_count(out)) {
        return n8_malformed(reader, "its output has not as many values");
    }
    return n8_check_moved(reader, in, out);
}

enum n8_status n8_copy_tables(struct n8_reader *reader, const struct n8_step *step, int8_t *to,
                              size_t count) {
    const struct n8_tensor *out = n8_output(reader->model, step);
    const int8_t *table = step->arrays[0];
    for (size_t i = 0; i < count; i++) {
        if (!n8_in_range(table[i], out->lo, out->hi)) {
            return n8_malformed(reader, "a value of its table is outside the range of its output");
        }
    }
    memcpy(to, table, count);
    return N8_OK;
}
