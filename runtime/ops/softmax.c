// SPDX-License-Identifier: Apache-2.0
//
// Softmax along one axis: of float32, (14), or the logarithm of it; of int8 and int16, (30).
#include "move/copy.h"
#include "ref/elementary.h"
#include "ref/floats.h"
#include "size.h"
#include "step.h"

#include <string.h>

static enum n8_status check_axis(struct n8_reader *reader, const struct n8_step *step) {
    return n8_in_range(step->row.axis, 0, step->out->rank - 1)
               ? N8_OK
               : n8_malformed(reader, "its axis is none of its output");
}

enum n8_status n8_check_softmax(struct n8_reader *reader, const struct n8_step *step) {
    N8_TRY(check_axis(reader, step));
    if (step->row.function != N8_FUNCTION_NONE && step->row.function != N8_FUNCTION_LOG) {
        return n8_malformed(reader, "its function is neither none nor log");
    }
    return N8_OK;
}

// y = d - log s, with d and s of (14).
static void log_softmax(float *out, const float *in, size_t count) {
    double largest = (double)in[0];
    for (size_t i = 1; i < count; i++) {
        largest = (double)in[i] > largest ? (double)in[i] : largest;
    }
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double d = (double)in[i] - largest;
        sum += d < -104.0 ? 0.0 : n8_exp(d);
    }
    const double log = n8_log(sum);
    for (size_t i = 0; i < count; i++) {
        out[i] = n8_one_nan((float)((double)in[i] - largest - log));
    }
}

// What the axis runs over: the channels of a pixel, or `size` pixels that are `inner` pixels
// apart, for each channel on its own.
struct rows {
    size_t size, inner;
};

static struct rows rows_of(const struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    struct rows rows = {.size = (size_t)out->onnx_dims[step->row.axis], .inner = 1};
    for (int32_t axis = out->rank - 1; axis > step->row.axis; axis--) {
        rows.inner *= axis == 1 ? 1 : (size_t)out->onnx_dims[axis];
    }
    return rows;
}

// A unit is a row. Scratch: one in and one out, where they are not contiguous.
enum n8_status n8_plan_softmax(struct n8_reader *reader, struct n8_step *step) {
    const size_t size = rows_of(step).size;
    const bool plain = step->row.function == N8_FUNCTION_NONE;
    step->kernel_name = plain ? reader->model->kernels.softmax_f32_name : "scalar";
    step->units = n8_value_count(step->out) / size;
    step->scratch_size = step->row.axis == 1 ? 0 : n8_mul(2 * sizeof(float), size);
    return N8_OK;
}

// Computes `count` values that follow one another.
typedef void compute_fn(const struct n8_session *session, const struct n8_step *step, void *out,
                        const void *in, size_t count, void *scratch);

// Rows [begin, end), each by itself. `room`: for a row in and one out, where values of a channel
// are brought together that are some pixels apart.
static void run_rows(const struct n8_session *session, const struct n8_step *step, size_t begin,
                     size_t end, uint8_t *room, void *scratch, compute_fn *compute) {
    const struct rows rows = rows_of(step);
    const size_t in_size = n8_value_size(step->in), out_size = n8_value_size(step->out);
    const size_t in_stride = rows.inner * step->in->pixel_stride;
    const size_t out_stride = rows.inner * step->out->pixel_stride;
    const size_t channels = (size_t)step->out->dims[1];
    uint8_t *made = room + rows.size * n8_larger(in_size, out_size);
    for (size_t r = begin; r < end; r++) {
        if (step->row.axis == 1) {
            compute(session, step, n8_out_pixel(session, step, r), n8_in_pixel(session, step, 0, r),
                    rows.size, scratch);
            continue;
        }
        const size_t at = r / channels, c = r % channels;
        const size_t pixel = at / rows.inner * rows.size * rows.inner + at % rows.inner;
        const uint8_t *from = n8_in_pixel(session, step, 0, pixel);
        uint8_t *to = n8_out_pixel(session, step, pixel);
        n8_move_values(room, in_size, from + c * in_size, in_stride, rows.size, in_size);
        compute(session, step, made, room, rows.size, scratch);
        n8_move_values(to + c * out_size, out_stride, made, out_size, rows.size, out_size);
    }
}

static void softmax(const struct n8_session *session, const struct n8_step *step, void *out,
                    const void *in, size_t count, void *scratch) {
    if (step->row.function == N8_FUNCTION_NONE) {
        session->model->kernels.softmax_f32(out, in, count);
    } else {
        log_softmax(out, in, count);
    }
}

void n8_run_softmax(const struct n8_session *session, const struct n8_step *step, size_t begin,
                    size_t end, void *scratch) {
    run_rows(session, step, begin, end, scratch, NULL, softmax);
}

const struct n8_operator n8_op_softmax = {
    .name = "softmax",
    .types = {N8_TYPE_F32, N8_TYPE_F32},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_AXIS | N8_FIELD_FUNCTION,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
};

// Integers -----------------------------------------------------------------------------

enum {
    ENTRIES = 256,
    TOP = 128,  // powers of a smaller table
    LANES = 16, // values that the kernels take as the channels of a pixel
};

// exp(-scale * d) in parts of 2^30, of d in steps of 1, and of int16 in steps of 256, too: that of
// d is entry 255 - d.
struct powers {
    int32_t low[ENTRIES], high[ENTRIES];
};

static void fill(int32_t *table, double scale) {
    const double magic = 6755399441055744.0;
    for (size_t i = 0; i < ENTRIES; i++) {
        const double d = (double)(ENTRIES - 1 - i);
        table[i] = (int32_t)((0x1p30 * n8_exp(-(scale * d)) + magic) - magic);
    }
}

enum n8_status n8_check_softmax_q(struct n8_reader *reader, const struct n8_step *step) {
    N8_TRY(check_axis(reader, step));
    const float scale = step->out->scale;
    return scale >= 0x1p-40f && scale <= 0x1p40f
               ? N8_OK
               : n8_malformed(reader, "the scale of its output is outside 2^-40 .. 2^40");
}

// Scratch of a row: its powers, and its values in and out where they are not contiguous.
static size_t powers_size(struct rows rows) {
    return n8_round_up(n8_mul(sizeof(int32_t), rows.size), N8_ALIGN);
}

enum n8_status n8_plan_softmax_q(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_kernels *kernels = &reader->model->kernels;
    const struct rows rows = rows_of(step);
    const bool s16 = step->out->type == N8_TYPE_S16;
    step->kernel_name = s16 ? kernels->output_s32_s16_name : kernels->requantize_s32_s8_name;
    step->units = n8_value_count(step->out) / rows.size;
    step->packed_size = sizeof(struct powers);
    step->scratch_size = powers_size(rows);
    if (step->row.axis != 1) {
        step->scratch_size = n8_add(step->scratch_size, n8_mul(2 * sizeof(int16_t), rows.size));
    }
    return N8_OK;
}

enum n8_status n8_pack_softmax_q(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const double scale = (double)step->in->scale;
    struct powers *powers = memory;
    fill(powers->low, scale);
    fill(powers->high, scale * (double)ENTRIES);
    return N8_OK;
}

// The powers of a row of int16, and what they add up to.
static int64_t powers_s16(int32_t *e, const int16_t *in, size_t count,
                          const struct powers *powers) {
    int16_t largest = INT16_MIN;
    for (size_t i = 0; i < count; i++) {
        largest = in[i] > largest ? in[i] : largest;
    }
    const int32_t last = UINT16_MAX - largest;
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)(last + in[i]);
        const int64_t product = (int64_t)powers->high[at / ENTRIES] * powers->low[at % ENTRIES];
        e[i] = (int32_t)((product + (1 << 29)) >> 30);
        sum += e[i];
    }
    return sum;
}

// `count` >= 1 values of type `out->type` from `to` on.
static void finish(const struct n8_kernels *kernels, const struct n8_tensor *out, uint8_t *to,
                   const int32_t *e, size_t count, float multiplier) {
    float each[LANES];
    for (size_t i = 0; i < LANES; i++) {
        each[i] = multiplier;
    }
    const size_t whole = count / LANES;
    for (size_t done = 0; done < count; done += done == 0 && whole > 0 ? whole * LANES : LANES) {
        const size_t rest = count - done;
        struct n8_output_args args = {
            .out = (int16_t *)(void *)(to + done * n8_value_size(out)),
            .out_stride = LANES * sizeof(int16_t),
            .sums = e + done,
            .sums_stride = LANES * sizeof(int32_t),
            .multiplier = each,
            .pixels = rest >= LANES ? whole : 1,
            .channels = rest >= LANES ? LANES : rest,
            .zero_point = out->zero_point,
            .lo = out->lo,
            .hi = out->hi,
        };
        if (out->type == N8_TYPE_S16) {
            kernels->output_s32_s16(&args);
        } else {
            kernels->requantize_s32_s8((int8_t *)to + done, args.sums, args.pixels, args.channels,
                                       each, out->zero_point, out->lo, out->hi);
        }
    }
}

// The powers of a row of int8 whose largest value is known.
static void look_up(int32_t *e, const int8_t *in, size_t count, const int32_t *powers,
                    int64_t largest) {
    const ptrdiff_t last = ENTRIES - 1 - (ptrdiff_t)largest;
    for (size_t i = 0; i < count; i++) {
        e[i] = powers[last + in[i]];
    }
}

// How many of the powers give more than 0, rounded up to LANES.
static size_t count_used(const int32_t *powers, float multiplier) {
    size_t used = LANES;
    while (used < ENTRIES && (float)powers[ENTRIES - 1 - used] * multiplier > 0.5f) {
        used += LANES;
    }
    return used;
}

// Where a row has at least as many values as powers give more than 0, the function of all int8
// values is computed, and looked up.
static void finish_by_table(const struct n8_kernels *kernels, const struct n8_tensor *out,
                            int8_t *to, const int8_t *in, size_t count, const int32_t *powers,
                            float multiplier, size_t used, int64_t largest) {
    // Beginning with the value that is 255 below the largest one; what is above that is no index.
    int8_t table[2 * ENTRIES];
    const size_t from = ENTRIES - used;
    memset(table, out->zero_point, from);
    finish(kernels, out, (uint8_t *)table + from, powers + from, used, multiplier);
    if (used <= TOP) {
        kernels->top_s8(to, in, count, table + ENTRIES - TOP, (int32_t)largest - (TOP - 1),
                        out->zero_point);
    } else {
        n8_look_up(kernels->table_s8, to, in, count, table + INT8_MAX - largest);
    }
}

static void softmax_q(const struct n8_session *session, const struct n8_step *step, void *to,
                      const void *from, size_t count, void *scratch) {
    const struct n8_kernels *kernels = &session->model->kernels;
    const struct n8_tensor *out = step->out;
    const struct powers *powers = step->packed;
    const bool s8 = step->in->type == N8_TYPE_S8;
    const int8_t *bytes = from;
    int32_t *e = scratch; // of each value
    int64_t sums[2];      // the largest value, and the sum of the powers
    if (s8) {
        kernels->powers_s8(sums, bytes, count, powers->low);
    } else {
        sums[1] = powers_s16(e, from, count, powers);
    }
    // Both below 2^53, so that a double holds them.
    const float multiplier = (float)(1.0 / (double)out->scale) / (float)(double)sums[1];
    if (s8 && out->type == N8_TYPE_S8) {
        const size_t used = count_used(powers->low, multiplier);
        if (used <= count) {
            finish_by_table(kernels, out, to, bytes, count, powers->low, multiplier, used, sums[0]);
            return;
        }
    }
    if (s8) {
        look_up(e, bytes, count, powers->low, sums[0]);
    }
    finish(kernels, out, to, e, count, multiplier);
}

void n8_run_softmax_q(const struct n8_session *session, const struct n8_step *step, size_t begin,
                      size_t end, void *scratch) {
    uint8_t *room = (uint8_t *)scratch + powers_size(rows_of(step));
    run_rows(session, step, begin, end, room, scratch, softmax_q);
}

const struct n8_operator n8_op_softmax_q = {
    .name = "softmax_q",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .s16 = true,
    .fields = N8_FIELD_AXIS,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_READS_EXACTLY,
};
