// SPDX-License-Identifier: Apache-2.0
//
// The sum of several tensors of one shape, rounded once, (6).
#include "move/widen.h"
#include "ref/epilogue.h"
#include "step.h"

#include <math.h>
#include <string.h>

enum { PIECE = 256 }; // values that are summed at once

enum n8_status n8_plan_sum(struct n8_reader *reader, struct n8_step *step) {
    step->packed_size = step->row.input_count * sizeof(float);
    return n8_read_array(reader, step->row.values, step->row.input_count, sizeof(float),
                         &step->arrays[0]);
}

enum n8_status n8_pack_sum(struct n8_reader *reader, struct n8_step *step, void *memory) {
    float *scales = memory;
    memcpy(scales, step->arrays[0], step->row.input_count * sizeof *scales);
    for (size_t i = 0; i < step->row.input_count; i++) {
        if (!n8_multiplier_ok(fabsf(scales[i]))) {
            return n8_malformed(reader, "a scale is neither 0 nor in 1e-30 .. 2^64");
        }
    }
    return N8_OK;
}

// Values [at, at + count) of the pixels from `pixel` on. All are read before one is written,
// since the output may lie where an input does.
static void add_up(const struct n8_session *session, const struct n8_step *step, size_t pixel,
                   size_t at, size_t count, float *sums) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *out = step->out;
    const struct n8_bounds limits = n8_bounds_of(out->zero_point, row->lo, row->hi);
    const float *scales = (const float *)step->packed;
    for (size_t i = 0; i < step->row.input_count; i++) {
        const struct n8_tensor *tensor = n8_input(session->model, step, i);
        const uint8_t *from = n8_in_pixel(session, step, i, pixel);
        int16_t in[PIECE];
        n8_widen(in, from + at * n8_value_size(tensor), count, tensor->type);
        for (size_t j = 0; j < count; j++) {
            const float term = (float)(in[j] - tensor->zero_point) * scales[i];
            sums[j] = i == 0 ? term : sums[j] + term;
        }
    }
    int16_t made[PIECE];
    for (size_t j = 0; j < count; j++) {
        made[j] = n8_round_s16(n8_leaky(sums[j], row->slope), limits);
    }
    uint8_t *to = n8_out_pixel(session, step, pixel);
    n8_narrow(to + at * n8_value_size(out), made, count, out->type);
}

// A unit is a pixel.
void n8_run_sum(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    float sums[PIECE];
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    for (size_t p = begin; p < end; p += stretch.pixels) {
        for (size_t at = 0; at < stretch.count; at += PIECE) {
            const size_t rest = stretch.count - at;
            add_up(session, step, p, at, n8_smaller(rest, PIECE), sums);
        }
    }
}

const struct n8_operator n8_op_sum = {
    .name = "sum",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {2, N8_FORMAT_MAX_COUNT},
    .same_shape = true,
    .s16 = true,
    .fields = N8_FIELD_VALUES | N8_FIELD_SLOPE | N8_FIELD_CLAMP,
    .placing =
        N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_OVER_SECOND | N8_READS_EXACTLY,
};
