// SPDX-License-Identifier: Apache-2.0
//
// Moves values of one type: the inputs one after the other along C, H or W.
#include "ops.h"

#include <string.h>

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (!n8_in_range(step->row.axis, 1, 3)) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its axis is not 1, 2 or 3");
    }
    int64_t sum = 0;
    bool fits = true;
    for (size_t i = 0; i < step->row.input_count; i++) {
        const struct n8_tensor *in = n8_input(reader->model, step, i);
        const enum n8_status status = n8_check_same_scale(reader, in, out);
        if (status != N8_OK) {
            return status;
        }
        for (int32_t axis = 0; axis < 4; axis++) {
            fits = fits && (axis == step->row.axis || in->dims[axis] == out->dims[axis]);
        }
        sum += in->dims[step->row.axis];
    }
    if (!fits || sum != out->dims[step->row.axis]) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its inputs do not add up to its output");
    }
    return N8_OK;
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    (void)reader;
    step->kernel_name = "copy";
    return N8_OK;
}

// `outer` runs of bytes of each input lie between those of the next: along C a run is a
// pixel's channels, along W a row's pixels, along H an image's rows.
static void run(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *out = n8_output(session->model, step);
    size_t outer = (size_t)out->dims[0];
    if (step->row.axis != 2) {
        outer *= (size_t)out->dims[2];
    }
    if (step->row.axis == 1) {
        outer *= (size_t)out->dims[3];
    }
    const size_t out_run = out->pixels * out->pixel_stride / outer;
    const size_t entry = out->type == N8_TYPE_F32 ? sizeof(float) : 1;
    uint8_t *to = n8_out_buffer(session, step);
    for (size_t i = 0; i < step->row.input_count; i++) {
        const struct n8_tensor *in = n8_input(session->model, step, i);
        const uint8_t *from = n8_in_buffer(session, step, i);
        const size_t in_run = in->pixels * in->pixel_stride / outer;
        const size_t used = step->row.axis == 1 ? (size_t)in->dims[1] * entry : in_run;
        for (size_t o = 0; o < outer; o++) {
            memcpy(to + o * out_run, from + o * in_run, used);
        }
        to += used;
    }
}

const struct n8_operator n8_op_concat = {
    .name = "concat",
    .least_inputs = 1,
    .most_inputs = N8_FORMAT_MAX_COUNT,
    .fields = N8_FIELD_AXIS,
    .check = check,
    .plan = plan,
    .run = run,
};
