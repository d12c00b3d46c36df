// SPDX-License-Identifier: Apache-2.0
//
// A function of single values as straight lines, (26), where the input or the output is int16. Its
// kernel sees int16 only.
#include "move/widen.h"
#include "step.h"

#include <string.h>

enum {
    MOST_SHIFT = 15,
    MOST_FRACTION = 8,
    LINE = 2 * sizeof(int16_t),
    PIECE = 256, // values that are widened or narrowed at once
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
    if (n8_input(reader->model, step, 0)->type == N8_TYPE_S8 &&
        n8_output(reader->model, step)->type == N8_TYPE_S8) {
        return n8_malformed(reader, "neither its input nor its output is int16");
    }
    if (shift_of(step) < 0) {
        return n8_malformed(reader, "its lines are of no power of 2 up to 2^15");
    }
    return N8_OK;
}

enum n8_status n8_plan_interpolate(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const size_t lines = ((size_t)(most(in) - least(in)) >> shift_of(step)) + 1;
    step->kernel_name = reader->model->kernels.interpolate_s16_name;
    step->packed_size = lines * LINE;
    return n8_read_array(reader, step->row.table, lines, LINE, &step->arrays[0]);
}

enum n8_status n8_pack_interpolate(struct n8_reader *reader, struct n8_step *step, void *memory) {
    memcpy(memory, step->arrays[0], step->packed_size);
    return N8_OK;
}

// `count` values that follow one another.
static void interpolate(const struct n8_session *session, const struct n8_step *step, uint8_t *to,
                        const uint8_t *from, size_t count) {
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const size_t in_size = n8_value_size(in), out_size = n8_value_size(out);
    const bool s16 = in->type == N8_TYPE_S16 && out->type == N8_TYPE_S16;
    int16_t piece[PIECE];
    struct n8_interpolate_args args = {
        .lines = step->packed,
        .in_lo = least(in),
        .in_hi = most(in),
        .lo = out->lo,
        .hi = out->hi,
        .shift = shift_of(step),
        .fraction = fraction_of(out),
    };
    for (size_t done = 0; done < count; done += args.count) {
        args.count = s16 || count - done < PIECE ? count - done : PIECE;
        args.in = in->type == N8_TYPE_S16 ? (const int16_t *)(const void *)(from + done * in_size)
                                          : piece;
        args.out = out->type == N8_TYPE_S16 ? (int16_t *)(void *)(to + done * out_size) : piece;
        if (args.in == piece) {
            n8_widen(piece, from + done, args.count, N8_TYPE_S8);
        }
        session->model->kernels.interpolate_s16(&args);
        if (args.out == piece) {
            n8_narrow(to + done, piece, args.count, N8_TYPE_S8);
        }
    }
}

// A unit is a pixel.
void n8_run_interpolate(const struct n8_session *session, const struct n8_step *step, size_t begin,
                        size_t end, void *scratch) {
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    for (size_t p = begin; p < end; p += stretch.pixels) {
        interpolate(session, step, n8_out_pixel(session, step, p), n8_in_pixel(session, step, 0, p),
                    stretch.count);
    }
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
