// SPDX-License-Identifier: Apache-2.0
//
// Softmax along one axis: of float32, (14), or the logarithm of it; of int8 and int16, (30).
#include "ref/elementary.h"
#include "ref/floats.h"
#include "size.h"
#include "step.h"

#include <string.h>

static enum n8_status check_axis(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = n8_output(reader->model, step);
    return n8_in_range(step->row.axis, 0, out->rank - 1)
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

static struct rows rows_of(const struct n8_model *model, const struct n8_step *step) {
    const struct n8_tensor *out = n8_output(model, step);
    struct rows rows = {.size = (size_t)out->onnx_dims[step->row.axis], .inner = 1};
    for (int32_t axis = out->rank - 1; axis > step->row.axis; axis--) {
        rows.inner *= axis == 1 ? 1 : (size_t)out->onnx_dims[axis];
    }
    return rows;
}

// A unit is a row. Scratch: one in and one out, where they are not contiguous.
enum n8_status n8_plan_softmax(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *out = n8_output(reader->model, step);
    const size_t size = rows_of(reader->model, step).size;
    const bool plain = step->row.function == N8_FUNCTION_NONE;
    step->kernel_name = plain ? reader->model->kernels.softmax_f32_name : "scalar";
    step->units = n8_value_count(out) / size;
    step->scratch_size = step->row.axis == 1 ? 0 : n8_mul(2 * sizeof(float), size);
    return N8_OK;
}

// The first pixel of row `row` and, in `channel`, which of its channels the row has.
static size_t first_pixel(const struct n8_model *model, const struct n8_step *step,
                          struct rows rows, size_t row, size_t *channel) {
    const size_t channels = (size_t)n8_output(model, step)->dims[1];
    const size_t at = row / channels;
    *channel = row % channels;
    return at / rows.inner * rows.size * rows.inner + at % rows.inner;
}

void n8_run_softmax(const struct n8_session *session, const struct n8_step *step, size_t begin,
                    size_t end, void *scratch) {
    n8_softmax_fn *kernel =
        step->row.function == N8_FUNCTION_NONE ? session->model->kernels.softmax_f32 : log_softmax;
    const struct rows rows = rows_of(session->model, step);
    float *row = scratch;
    for (size_t r = begin; r < end; r++) {
        if (step->row.axis == 1) {
            kernel(n8_out_pixel(session, step, r), n8_in_pixel(session, step, 0, r), rows.size);
            continue;
        }
        size_t c;
        const size_t pixel = first_pixel(session->model, step, rows, r, &c);
        for (size_t i = 0; i < rows.size; i++) {
            row[i] = ((const float *)n8_in_pixel(session, step, 0, pixel + i * rows.inner))[c];
        }
        kernel(row + rows.size, row, rows.size);
        for (size_t i = 0; i < rows.size; i++) {
            ((float *)n8_out_pixel(session, step, pixel + i * rows.inner))[c] = row[rows.size + i];
        }
    }
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
    const float scale = n8_output(reader->model, step)->scale;
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
    const struct n8_tensor *out = n8_output(reader->model, step);
    const struct rows rows = rows_of(reader->model, step);
    const bool s16 = out->type == N8_TYPE_S16;
    step->kernel_name = s16 ? kernels->output_s32_s16_name : kernels->requantize_s32_s8_name;
    step->units = n8_value_count(out) / rows.size;
    step->packed_size = sizeof(struct powers);
    step->scratch_size = powers_size(rows);
    if (step->row.axis != 1) {
        step->scratch_size = n8_add(step->scratch_size, n8_mul(2 * sizeof(int16_t), rows.size));
    }
    return N8_OK;
}

enum n8_status n8_pack_softmax_q(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const double scale = (double)n8_input(reader->model, step, 0)->scale;
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
        kernels->table_s8(to, 0, in, 0, 1, count, table + INT8_MAX - largest);
    }
}

// One contiguous row.
static void run_row(const struct n8_session *session, const struct n8_step *step, uint8_t *to,
                    const uint8_t *from, size_t count, int32_t *e) {
    const struct n8_kernels *kernels = &session->model->kernels;
    const struct n8_tensor *out = n8_output(session->model, step);
    const struct powers *powers = step->packed;
    const bool s8 = n8_input(session->model, step, 0)->type == N8_TYPE_S8;
    const int8_t *bytes = (const int8_t *)from;
    int64_t sums[2]; // the largest value, and the sum of the powers
    if (s8) {
        kernels->powers_s8(sums, bytes, count, powers->low);
    } else {
        sums[1] = powers_s16(e, (const int16_t *)(const void *)from, count, powers);
    }
    // Both below 2^53, so that a double holds them.
    const float multiplier = (float)(1.0 / (double)out->scale) / (float)(double)sums[1];
    if (s8 && out->type == N8_TYPE_S8) {
        const size_t used = count_used(powers->low, multiplier);
        if (used <= count) {
            finish_by_table(kernels, out, (int8_t *)to, bytes, count, powers->low, multiplier, used,
                            sums[0]);
            return;
        }
    }
    if (s8) {
        look_up(e, bytes, count, powers->low, sums[0]);
    }
    finish(kernels, out, to, e, count, multiplier);
}

// The values of one channel of `count` pixels that are `stride` bytes apart, and back.
static void take(uint8_t *row, const uint8_t *from, size_t stride, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) {
        memcpy(row + i * size, from + i * stride, size);
    }
}

static void put(uint8_t *to, size_t stride, const uint8_t *row, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) {
        memcpy(to + i * stride, row + i * size, size);
    }
}

void n8_run_softmax_q(const struct n8_session *session, const struct n8_step *step, size_t begin,
                      size_t end, void *scratch) {
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const size_t in_size = n8_value_size(in), out_size = n8_value_size(out);
    const struct rows rows = rows_of(session->model, step);
    uint8_t *given = (uint8_t *)scratch + powers_size(rows);
    uint8_t *made = given + rows.size * sizeof(int16_t);
    for (size_t r = begin; r < end; r++) {
        if (step->row.axis == 1) {
            run_row(session, step, n8_out_pixel(session, step, r), n8_in_pixel(session, step, 0, r),
                    rows.size, scratch);
            continue;
        }
        size_t c;
        const size_t pixel = first_pixel(session->model, step, rows, r, &c);
        const uint8_t *from = n8_in_pixel(session, step, 0, pixel);
        take(given, from + c * in_size, rows.inner * in->pixel_stride, rows.size, in_size);
        run_row(session, step, made, given, rows.size, scratch);
        put((uint8_t *)n8_out_pixel(session, step, pixel) + c * out_size,
            rows.inner * out->pixel_stride, made, rows.size, out_size);
    }
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
