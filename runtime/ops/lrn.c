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

enum n8_status n8_plan_lrn(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.lrn_s8_name;
    step->packed_size = sizeof(struct n8_lrn_args);
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
    struct n8_lrn_args *args = memory;
    *args = (struct n8_lrn_args){
        .channels = (size_t)in->dims[1],
        .reach = (size_t)p.size / 2,
        .bias = (double)p.bias,
        .factor = (double)p.alpha / (double)p.size * (scale * scale),
        .beta = (double)p.beta,
        .multiplier = scale / (double)out->scale,
        .in_zero_point = in->zero_point,
        .zero_point = out->zero_point,
        .lo = out->lo,
        .hi = out->hi,
    };
    return N8_OK;
}

// A unit is a pixel.
void n8_run_lrn(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    struct n8_lrn_args args = *(const struct n8_lrn_args *)step->packed;
    for (size_t p = begin; p < end; p++) {
        args.out = n8_out_pixel(session, step, p);
        args.in = n8_in_pixel(session, step, 0, p);
        session->model->kernels.lrn_s8(&args);
    }
}

const struct n8_operator n8_op_lrn = {
    .name = "lrn",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_VALUES,
};
