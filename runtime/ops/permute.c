// SPDX-License-Identifier: Apache-2.0
//
// Moves values: in N C H W order they are an array of 8 axes, and these are turned.
#include "ops.h"
#include "turn.h"

#include <string.h>

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    const enum n8_status status = n8_check_same_count(reader, in, out);
    return status == N8_OK ? n8_check_same_scale(reader, in, out) : status;
}

// The view of the file, and the order of its axes, may be aligned to nothing.
struct axes {
    int32_t view[N8_FORMAT_MAX_RANK], order[N8_FORMAT_MAX_RANK];
};

static bool axes_ok(const struct axes *axes, size_t count) {
    size_t product = 1;
    uint32_t seen = 0;
    for (int i = 0; i < N8_FORMAT_MAX_RANK; i++) {
        if (axes->view[i] < 1 || !n8_in_range(axes->order[i], 0, N8_FORMAT_MAX_RANK - 1)) {
            return false;
        }
        product = n8_mul(product, (size_t)axes->view[i]);
        seen |= 1u << axes->order[i];
    }
    return product == count && seen == (1u << N8_FORMAT_MAX_RANK) - 1;
}

static enum n8_status plan_turn(struct n8_reader *reader, const struct n8_step *step,
                                struct n8_turn *turn) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    struct axes axes;
    memcpy(&axes, step->arrays[0], sizeof axes);
    if (!axes_ok(&axes, n8_value_count(in))) {
        return n8_refuse(reader->error, N8_E_FORMAT,
                         "its axes do not have the values of its input, or no order");
    }
    if (!n8_turn_plan(turn, in, n8_output(reader->model, step), axes.view, axes.order)) {
        return n8_refuse(reader->error, N8_E_FORMAT,
                         "its axes do not fit to the dimensions of its input and output");
    }
    return N8_OK;
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    struct n8_turn turn;
    enum n8_status status =
        n8_read_array(reader, step->row.indices, 1, sizeof(struct axes), &step->arrays[0]);
    if (status == N8_OK) {
        status = plan_turn(reader, step, &turn);
    }
    if (status == N8_OK) {
        step->kernel_name = "copy";
        step->units = turn.units;
        step->packed_size = sizeof turn;
    }
    return status;
}

static enum n8_status pack(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const enum n8_status status = plan_turn(reader, step, memory);
    step->packed = memory;
    return status;
}

static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    (void)scratch;
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    n8_turn_run(step->packed, &session->model->kernels, n8_out_buffer(session, step),
                out->pixel_stride, n8_in_buffer(session, step, 0), in->pixel_stride,
                n8_value_size(in), begin, end);
}

const struct n8_operator n8_op_permute = {
    .name = "permute",
    .least_inputs = 1,
    .most_inputs = 1,
    .fields = N8_FIELD_INDICES,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_READS_EXACTLY,
    .check = check,
    .plan = plan,
    .pack = pack,
    .run = run,
};
