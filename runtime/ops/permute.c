// SPDX-License-Identifier: Apache-2.0
//
// Moves values: in N C H W order they are an array of 8 axes, which are permuted.
//
// Where the caller has an input or wants an output N H W C, the network N C H W, the pixels lie
// in the caller's buffer as they do in the arena, and each pixel is copied as it is.
#include "move/permute.h"
#include "move/planes.h"
#include "step.h"

#include <string.h>

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

static enum n8_status plan_order(struct n8_reader *reader, const struct n8_step *step,
                                 const struct n8_tensor *in, const struct n8_tensor *out,
                                 struct n8_permute_plan *plan) {
    struct axes axes;
    memcpy(&axes, step->arrays[0], sizeof axes);
    if (!axes_ok(&axes, n8_value_count(in))) {
        return n8_malformed(reader,
                            "its axes do not hold the values of its input, or are in no order");
    }
    if (!n8_permute_plan_of(plan, in->dims, out->dims, axes.view, axes.order)) {
        return n8_malformed(reader, "its axes do not fit the dimensions of its input and output");
    }
    return N8_OK;
}

// What the caller has: one value after the other.
static struct n8_tensor flat(const struct n8_tensor *tensor) {
    return (struct n8_tensor){
        .dims = {1, (int32_t)n8_value_count(tensor), 1, 1},
        .pixels = 1,
    };
}

// True if the values stay in their order, those of a pixel before those of the next.
static bool keeps_pixels(const struct n8_permute_plan *plan, size_t channels) {
    bool keeps = true;
    for (size_t i = 0; i < plan->count; i++) {
        const struct n8_permute_loop *loop = &plan->loops[i];
        const size_t in = loop->in.count * (loop->in.pixels ? channels : 1);
        const size_t out = loop->out.count * (loop->out.pixels ? channels : 1);
        keeps = keeps && (loop->size == 1 || in == out);
    }
    return keeps;
}

// At an end of the network: which of the two tensors the caller has as the pixels of the other.
static enum n8_status plan_end(struct n8_reader *reader, const struct n8_step *step,
                               struct n8_tensor *in, struct n8_tensor *out) {
    struct n8_permute_plan order;
    if (in->input >= 0 && !in->last) {
        const struct n8_tensor given = flat(in);
        N8_TRY(plan_order(reader, step, &given, out, &order));
        if (keeps_pixels(&order, (size_t)out->dims[1])) {
            out->input = in->input;
            out->last = true;
            out->caller = out->output < 0; // unless a step reads it from the arena
            return N8_OK;
        }
    }
    in->caller = false;
    if (out->caller) {
        const struct n8_tensor taken = flat(out);
        N8_TRY(plan_order(reader, step, in, &taken, &order));
        out->caller = keeps_pixels(&order, (size_t)in->dims[1]);
    }
    return N8_OK;
}

// A unit is a tile or, at an end, a pixel.
enum n8_status n8_plan_permute(struct n8_reader *reader, struct n8_step *step) {
    struct n8_tensor *in = &reader->model->tensors[step->inputs[0]];
    struct n8_tensor *out = &reader->model->tensors[step->row.output];
    struct n8_permute_plan order;
    N8_TRY(n8_read_array(reader, step->row.indices, 1, sizeof(struct axes), &step->arrays[0]));
    N8_TRY(plan_order(reader, step, in, out, &order));
    N8_TRY(plan_end(reader, step, in, out));
    const bool moved = !out->last && !out->caller;
    step->kernel_name = "copy";
    step->units = moved ? order.units : out->last ? out->pixels : in->pixels;
    step->packed_size = moved ? sizeof order : 0;
    return N8_OK;
}

enum n8_status n8_pack_permute(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const struct n8_tensor *out = step->out;
    if (out->last && out->caller) {
        step->units = 0;
        step->kernel_name = "none";
    }
    return step->packed_size == 0 ? N8_OK : plan_order(reader, step, step->in, out, memory);
}

void n8_run_permute(const struct n8_session *session, const struct n8_step *step, size_t begin,
                    size_t end, void *scratch) {
    const struct n8_tensor *in = step->in, *out = step->out;
    if (out->last) {
        const size_t pixel = (size_t)out->dims[1] * n8_value_size(out);
        const uint8_t *from = session->inputs[out->input];
        n8_move_pixels(&session->model->kernels, n8_out_pixel(session, step, begin),
                       out->pixel_stride, n8_pixel_room(out), from + begin * pixel, pixel, pixel,
                       end - begin);
    } else if (out->caller) {
        const size_t pixel = (size_t)in->dims[1] * n8_value_size(in);
        uint8_t *to = session->outputs[out->output];
        n8_move_pixels(&session->model->kernels, to + begin * pixel, pixel, pixel,
                       n8_in_pixel(session, step, 0, begin), in->pixel_stride, pixel, end - begin);
    } else {
        n8_permute(step->packed, &session->model->kernels, n8_out_buffer(session, step),
                   out->pixel_stride, n8_in_buffer(session, step, 0), in->pixel_stride,
                   n8_value_size(in), begin, end);
    }
}

const struct n8_operator n8_op_permute = {
    .name = "permute",
    .inputs = {1, 1},
    .fields = N8_FIELD_INDICES,
    .moves = true,
    .s16 = true,
    .s32 = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_READS_EXACTLY,
    .ends = N8_END_INPUT | N8_END_OUTPUT,
};
