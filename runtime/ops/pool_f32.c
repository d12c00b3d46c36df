// SPDX-License-Identifier: Apache-2.0
//
// Max and average pooling in float32, (20).
#include "ref/floats.h"
#include "step.h"
#include "window.h"

enum n8_status n8_check_pool_f32(struct n8_reader *reader, const struct n8_step *step) {
    return n8_check_pool(reader, step);
}

enum n8_status n8_plan_pool_f32(struct n8_reader *reader, struct n8_step *step) {
    step->macs = (uint64_t)step->units * (uint64_t)n8_output(reader->model, step)->dims[1] *
                 (uint64_t)step->row.kernel[0] * (uint64_t)step->row.kernel[1];
    return N8_OK;
}

static void add(float *out, const float *in, size_t channels) {
    for (size_t c = 0; c < channels; c++) {
        out[c] += in[c];
    }
}

// As maximum of (22).
static void take_larger(float *out, const float *in, size_t channels) {
    for (size_t c = 0; c < channels; c++) {
        out[c] = out[c] != out[c] || out[c] > in[c] ? out[c] : in[c];
    }
}

void n8_run_pool_f32(const struct n8_session *session, const struct n8_step *step, size_t begin,
                     size_t end, void *scratch) {
    const struct n8_file_op *row = &step->row;
    const bool max = row->kind == N8_OP_MAX_POOL_F32;
    void (*const take)(float *, const float *, size_t) = max ? take_larger : add;
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const size_t channels = (size_t)out->dims[1];
    const size_t width = (size_t)out->dims[3];
    const size_t height = (size_t)out->dims[2];
    const size_t area = (size_t)in->dims[2] * (size_t)in->dims[3];
    for (size_t pixel = begin; pixel < end; pixel++) {
        const struct n8_window wy =
            n8_window_at(row, 0, (int64_t)(pixel / width % height), in->dims[2]);
        const struct n8_window wx = n8_window_at(row, 1, (int64_t)(pixel % width), in->dims[3]);
        const size_t image = pixel / width / height * area;
        float *to = n8_out_pixel(session, step, pixel);
        for (size_t c = 0; c < channels; c++) {
            to[c] = max ? -INFINITY : 0.0f;
        }
        for (int64_t ky = wy.from; ky < wy.to; ky++) {
            const int64_t y = wy.start + ky * row->dilation[0];
            for (int64_t kx = wx.from; kx < wx.to; kx++) {
                const int64_t x = wx.start + kx * row->dilation[1];
                const size_t at = image + (size_t)(y * in->dims[3] + x);
                take(to, n8_in_pixel(session, step, 0, at), channels);
            }
        }
        const float count = max ? 1.0f : (float)(wy.count * wx.count);
        for (size_t c = 0; c < channels; c++) {
            to[c] = n8_one_nan(to[c] / count);
        }
    }
}

const struct n8_operator n8_op_max_pool_f32 = {
    .name = "max_pool_f32",
    .types = {N8_TYPE_F32, N8_TYPE_F32},
    .inputs = {1, 1},
    .fields = N8_FIELD_WINDOW,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
};

const struct n8_operator n8_op_average_pool_f32 = {
    .name = "average_pool_f32",
    .types = {N8_TYPE_F32, N8_TYPE_F32},
    .inputs = {1, 1},
    .fields = N8_FIELD_WINDOW | N8_FIELD_COUNT_PAD,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
};
