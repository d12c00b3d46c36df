// SPDX-License-Identifier: Apache-2.0
//
// Moves values of one type; the N C H W order of the values is kept.
#include "ops.h"

#include <string.h>

static size_t values(const struct n8_tensor *tensor) {
    return tensor->pixels * (size_t)tensor->dims[1];
}

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (values(in) != values(out)) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its output has not as many values");
    }
    return n8_check_same_scale(reader, in, out);
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    (void)reader;
    step->kernel_name = "copy";
    return N8_OK;
}

// One value at a time through the common N C H W order. `entry`, its size, is a constant where
// this is called. Where only ones are added or taken away between equal pixels the layout is the
// same and one copy does it.
static inline void move(uint8_t *to, const uint8_t *from, const struct n8_tensor *out,
                        const struct n8_tensor *in, size_t entry) {
    const size_t area = in->pixels / (size_t)in->dims[0];
    const size_t out_area = out->pixels / (size_t)out->dims[0];
    const size_t out_channels = (size_t)out->dims[1];
    size_t p = 0; // the output's pixel in its plane, channel and image
    size_t c = 0;
    for (size_t n = 0; n < (size_t)in->dims[0]; n++) {
        for (size_t channel = 0; channel < (size_t)in->dims[1]; channel++) {
            for (size_t pixel = 0; pixel < area; pixel++) {
                memcpy(to + p * out->pixel_stride + c * entry,
                       from + (n * area + pixel) * in->pixel_stride + channel * entry, entry);
                if (++p == out_area) {
                    p = 0;
                    if (++c == out_channels) {
                        c = 0;
                        to += out_area * out->pixel_stride;
                    }
                }
            }
        }
    }
}

static void run(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const uint8_t *from = n8_in_buffer(session, step, 0);
    uint8_t *to = n8_out_buffer(session, step);
    if (memcmp(in->dims, out->dims, sizeof in->dims) == 0) {
        memcpy(to, from, in->pixels * in->pixel_stride);
    } else if (in->type == N8_TYPE_F32) {
        move(to, from, out, in, sizeof(float));
    } else {
        move(to, from, out, in, 1);
    }
}

const struct n8_operator n8_op_reshape = {
    .name = "reshape",
    .least_inputs = 1,
    .most_inputs = 1,
    .check = check,
    .plan = plan,
    .run = run,
};
