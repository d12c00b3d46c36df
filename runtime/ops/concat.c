// SPDX-License-Identifier: Apache-2.0
//
// Moves values: the inputs one after the other along N, C, H or W.
#include "step.h"

#include <string.h>

enum n8_status n8_check_concat(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    if (!n8_in_range(step->row.axis, 0, 3)) {
        return n8_malformed(reader, "its axis is not 0, 1, 2 or 3");
    }
    int64_t sum = 0;
    bool fits = true;
    for (size_t i = 0; i < step->row.input_count; i++) {
        const struct n8_tensor *in = n8_input(reader->model, step, i);
        N8_TRY(n8_check_moved(reader, in, out));
        for (int32_t axis = 0; axis < 4; axis++) {
            fits = fits && (axis == step->row.axis || in->dims[axis] == out->dims[axis]);
        }
        sum += in->dims[step->row.axis];
    }
    if (!fits || sum != out->dims[step->row.axis]) {
        return n8_malformed(reader, "its inputs do not add up to its output");
    }
    return N8_OK;
}

// Channels lie side by side in every pixel, and images one after the other; rows and columns do so
// in one image and one row.
bool n8_piece_concat(const struct n8_model *model, const struct n8_step *step, size_t index,
                     size_t *pixel, size_t *byte) {
    const struct n8_tensor *out = step->out;
    const int32_t axis = step->row.axis;
    if (index == 0) {
        *pixel = 0;
        *byte = 0;
    } else {
        const size_t extent = (size_t)n8_input(model, step, index - 1)->dims[axis];
        *byte += axis == 1 ? extent * n8_value_size(out) : 0;
        const size_t image = (size_t)out->dims[2] * (size_t)out->dims[3];
        const size_t each[4] = {image, 0, (size_t)out->dims[3], 1};
        *pixel += each[axis] * extent;
    }
    return axis <= 1 || (out->dims[0] == 1 && (axis == 2 || out->dims[2] == 1));
}

// A unit is a pixel of an input; those of all inputs are numbered one after the other.
enum n8_status n8_plan_concat(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = "copy";
    step->units = 0;
    for (size_t i = 0; i < step->row.input_count; i++) {
        step->units += n8_input(reader->model, step, i)->pixels;
    }
    return N8_OK;
}

// Pixels [begin, end) of an input, whose first pixel and channel are at `start` of the output:
// its place on the concat's axis. Row by row, as the rows are not neighbours in the output.
static void move_pixels(const struct n8_session *session, const struct n8_step *step, size_t input,
                        size_t start, size_t begin, size_t end) {
    const struct n8_tensor *in = n8_input(session->model, step, input);
    const struct n8_tensor *out = step->out;
    const size_t width = (size_t)in->dims[3];
    const size_t size = n8_value_size(out);
    const size_t channel = step->row.axis == 1 ? start * size : 0;
    const size_t top = step->row.axis == 2   ? start
                       : step->row.axis == 0 ? start * (size_t)out->dims[2]
                                             : 0;
    const size_t left = step->row.axis == 3 ? start : 0;
    for (size_t p = begin; p < end;) {
        const size_t x = p % width;
        const size_t y = p / width % (size_t)in->dims[2];
        const size_t n = p / width / (size_t)in->dims[2];
        const size_t row = n * (size_t)out->dims[2] + top + y;
        const size_t count = end - p < width - x ? end - p : width - x;
        const uint8_t *from = n8_in_pixel(session, step, input, p);
        uint8_t *to = n8_out_pixel(session, step, row * (size_t)out->dims[3] + left + x);
        to += channel;
        for (size_t i = 0; to != from && i < count; i++) {
            memcpy(to + i * out->pixel_stride, from + i * in->pixel_stride,
                   (size_t)in->dims[1] * size);
        }
        p += count;
    }
}

void n8_run_concat(const struct n8_session *session, const struct n8_step *step, size_t begin,
                   size_t end, void *scratch) {
    size_t first = 0; // unit of the input
    size_t start = 0; // the input's place on the axis
    for (size_t i = 0; i < step->row.input_count && first < end; i++) {
        const struct n8_tensor *in = n8_input(session->model, step, i);
        const size_t from = begin > first ? begin - first : 0;
        const size_t to = end - first < in->pixels ? end - first : in->pixels;
        if (from < to && !n8_is_spread(session->model, step, i)) {
            move_pixels(session, step, i, start, from, to);
        }
        first += in->pixels;
        start += (size_t)in->dims[step->row.axis];
    }
}

const struct n8_operator n8_op_concat = {
    .name = "concat",
    .inputs = {1, N8_FORMAT_MAX_COUNT},
    .fields = N8_FIELD_AXIS,
    .moves = true,
    .s16 = true,
    .s32 = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_READS_EXACTLY,
};
