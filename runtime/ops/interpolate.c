// SPDX-License-Identifier: Apache-2.0
//
// A function of single values as straight lines, (26), where the input or the output is int16. Its
// kernel sees int16 only.
#include "step.h"

enum {
    MOST_SHIFT = 15,
    MOST_FRACTION = 8,
    LINE = 2 * sizeof(int16_t),
};

// The ends of what the input can hold, of int8 those of the type.
static int32_t least(const struct n8_tensor *in) {
    return in->type == N8_TYPE_S8 ? INT8_MIN : in->lo;
}

static int32_t most(const struct n8_tensor *in) {
    return in->type == N8_TYPE_S8 ? INT8_MAX : in->hi;
}

// The bits that a line can have beyond those of the output.
static int32_t fraction_of(const struct n8_tensor *out) {
    int32_t bits = 0;
    while (bits < MOST_FRACTION && out->lo * (2 << bits) >= INT16_MIN &&
           out->hi * (2 << bits) <= INT16_MAX) {
        bits++;
    }
    return bits;
}

// log2 of the values of a line, -1 if there is none.
static int32_t shift_of(const struct n8_step *step) {
    for (int32_t shift = 0; shift <= MOST_SHIFT; shift++) {
        if (step->row.groups == 1 << shift) {
            return shift;
        }
    }
    return -1;
}

enum n8_status n8_check_interpolate(struct n8_reader *reader, const struct n8_step *step) {
    if (step->in->type == N8_TYPE_S8 && step->out->type == N8_TYPE_S8) {
        return n8_malformed(reader, "neither its input nor its output is int16");
    }
    if (shift_of(step) < 0) {
        return n8_malformed(reader, "its lines are of no power of 2 up to 2^15");
    }
    return N8_OK;
}

enum n8_status n8_plan_interpolate(struct n8_reader *reader, struct n8_step *step) {
    const size_t lines = ((size_t)(most(step->in) - least(step->in)) >> shift_of(step)) + 1;
    step->kernel_name = reader->model->kernels.interpolate_s16_name;
    step->packed_size = lines * LINE;
    return n8_read_array(reader, step->row.table, lines, LINE, &step->arrays[0]);
}

static void interpolate(const struct n8_session *session, const struct n8_step *step, int16_t *out,
                        const int16_t *in, size_t count) {
    session->model->kernels.interpolate_s16(&(struct n8_interpolate_args){
        .out = out,
        .in = in,
        .count = count,
        .lines = step->packed,
        .in_lo = least(step->in),
        .in_hi = most(step->in),
        .lo = step->out->lo,
        .hi = step->out->hi,
        .shift = shift_of(step),
        .fraction = fraction_of(step->out),
    });
}

// A unit is a pixel.
void n8_run_interpolate(const struct n8_session *session, const struct n8_step *step, size_t begin,
                        size_t end, void *scratch) {
    n8_run_s16(session, step, begin, end, interpolate);
}

const struct n8_operator n8_op_interpolate = {
    .name = "interpolate",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_LINES | N8_FIELD_GROUPS,
    .s16 = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_READS_EXACTLY,
};
