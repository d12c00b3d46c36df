// SPDX-License-Identifier: Apache-2.0
//
// Local response normalization over neighbouring channels, (18).
#include "step.h"

#include <math.h>
#include <string.h>

// The array of a step, and what is computed from it.
struct parameters {
    float size, alpha, beta, bias;
};

static bool ok(const struct parameters *p) {
    const bool size =
        p->size >= 1.0f && p->size <= (float)N8_FORMAT_MAX_DIM && fmodf(p->size, 2) == 1.0f;
    const bool alpha = p->alpha >= 0.0f && p->alpha <= 1e30f;
    return size && alpha && p->beta >= 0.0f && p->beta <= 16.0f && p->bias >= 1e-30f &&
           p->bias <= 1e30f;
}

// What does not change from pixel to pixel.
struct packed {
    struct n8_lrn_numbers numbers;
    size_t reach;
};

// A pixel between as many zero points as its channels can look at, and what may be read after them.
static size_t row_size(const struct n8_tensor *in) {
    return n8_add(n8_mul(3, (size_t)in->dims[1]), sizeof(uint64_t));
}

enum n8_status n8_plan_lrn(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.lrn_s8_name;
    step->packed_size = sizeof(struct packed);
    step->scratch_size = row_size(step->in);
    return n8_read_array(reader, step->row.values, sizeof(struct parameters) / sizeof(float),
                         sizeof(float), &step->arrays[0]);
}

enum n8_status n8_pack_lrn(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const struct n8_tensor *in = step->in, *out = step->out;
    struct parameters p;
    memcpy(&p, step->arrays[0], sizeof p);
    if (!ok(&p)) {
        return n8_malformed(reader, "its size, alpha, beta or bias is outside its limits");
    }
    const double scale = (double)in->scale;
    const size_t channels = (size_t)in->dims[1], reach = (size_t)p.size / 2;
    struct packed *packed = memory;
    packed->reach = reach < channels ? reach : channels;
    packed->numbers = (struct n8_lrn_numbers){
        .bias = (double)p.bias,
        .factor = (double)p.alpha / (double)p.size * (scale * scale),
        .beta = (double)p.beta,
        .multiplier = scale / (double)out->scale,
    };
    return N8_OK;
}

// A unit is a pixel.
void n8_run_lrn(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    const struct n8_tensor *in = step->in, *out = step->out;
    const struct packed *packed = step->packed;
    int8_t *row = memset(scratch, in->zero_point, row_size(in)), *pixel = row + packed->reach;
    struct n8_lrn_args args = {
        .in = pixel,
        .channels = (size_t)in->dims[1],
        .reach = packed->reach,
        .numbers = &packed->numbers,
        .in_zero_point = in->zero_point,
        .zero_point = out->zero_point,
        .lo = out->lo,
        .hi = out->hi,
    };
    for (size_t p = begin; p < end; p++) {
        memcpy(pixel, n8_in_pixel(session, step, 0, p), args.channels);
        args.out = n8_out_pixel(session, step, p);
        session->model->kernels.lrn_s8(&args);
    }
}

const struct n8_operator n8_op_lrn = {
    .name = "lrn",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_READS_EXACTLY,
    .same_shape = true,
    .fields = N8_FIELD_VALUES,
};
