// SPDX-License-Identifier: Apache-2.0
//
// Max and average pooling, (9): the taps of each window that lie inside the input go to a
// kernel as pointers to pixels.
#include "ops.h"

#include "size.h"

enum { MAX_TAPS = 1 << 23 }; // 2^23 * 255 < 2^31: the sum of an average pool fits int32

// True if every window along one axis has a tap inside the input. A file may ask this of
// thousands of axes of a million windows each, so the windows are not looked at one by one.
static bool windows_ok(const struct n8_file_op *row, int axis, int32_t in, int32_t out) {
    const int64_t stride = row->stride[axis];
    const int64_t dilation = row->dilation[axis];
    const int64_t pad = row->pad[axis];
    if ((pad + dilation - 1) / dilation >= row->kernel[axis] || (out - 1) * stride - pad >= in) {
        return false; // the first window ends before the input, or the last starts after it
    }
    // Windows that start in the padding: of those that share their first tap inside, the last
    // has it deepest. Their depths repeat after `dilation` windows.
    const int64_t starts = (pad + stride - 1) / stride;
    const int64_t count = starts < out ? starts : out;
    for (int64_t o = 0; o < count && o < dilation; o++) {
        const int64_t tap = (pad - o * stride + dilation - 1) / dilation;
        const int64_t last = (pad - (tap - 1) * dilation - 1) / stride;
        o = last < count ? last : count - 1;
        if (o * stride - pad + tap * dilation >= in) {
            return false;
        }
    }
    return true;
}

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (in->dims[0] != out->dims[0] || in->dims[1] != out->dims[1]) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its output has another batch or channels");
    }
    if ((int64_t)row->kernel[0] * row->kernel[1] > MAX_TAPS) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its window has more than 2^23 taps");
    }
    if (!windows_ok(row, 0, in->dims[2], out->dims[2]) ||
        !windows_ok(row, 1, in->dims[3], out->dims[3])) {
        return n8_refuse(reader->error, N8_E_FORMAT, "a window has no tap inside the input");
    }
    return N8_OK;
}

static enum n8_status check_max(struct n8_reader *reader, const struct n8_step *step) {
    const enum n8_status status = check(reader, step);
    return status != N8_OK ? status
                           : n8_check_same_scale(reader, n8_input(reader->model, step, 0),
                                                 n8_output(reader->model, step));
}

// M of (9) for a window of one tap and for one of all, as of a convolution.
static enum n8_status check_average(struct n8_reader *reader, const struct n8_step *step) {
    const double ratio = (double)n8_input(reader->model, step, 0)->scale /
                         (double)n8_output(reader->model, step)->scale;
    const float most = (float)ratio;
    const float least = (float)(ratio / ((double)step->row.kernel[0] * step->row.kernel[1]));
    if (!(least > 0.0f) || !n8_multiplier_ok(least) || !n8_multiplier_ok(most)) {
        return n8_refuse(reader->error, N8_E_FORMAT, "its multiplier is outside 1e-30 .. 2^64");
    }
    return check(reader, step);
}

// Scratch: pointers to the taps of one window.
static size_t scratch_size(const struct n8_tensor *in, const struct n8_step *step) {
    const int32_t *kernel = step->row.kernel;
    const int32_t rows = kernel[0] < in->dims[2] ? kernel[0] : in->dims[2];
    const int32_t columns = kernel[1] < in->dims[3] ? kernel[1] : in->dims[3];
    return n8_mul(n8_mul((size_t)rows, (size_t)columns), sizeof(int8_t *));
}

static enum n8_status plan_max(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.maxpool_s8_name;
    step->scratch_size = scratch_size(n8_input(reader->model, step, 0), step);
    return N8_OK;
}

static enum n8_status plan_average(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.avgpool_s8_name;
    step->scratch_size = scratch_size(n8_input(reader->model, step, 0), step);
    return N8_OK;
}

// Taps [from, to) of a window fall inside the input; `count` of them count as its size.
struct window {
    int64_t start, from, to, count;
};

static struct window window_at(const struct n8_file_op *row, int axis, int64_t out, int32_t in) {
    const int64_t dilation = row->dilation[axis];
    const int64_t kernel = row->kernel[axis];
    struct window w = {.start = out * row->stride[axis] - row->pad[axis]};
    w.from = w.start < 0 ? (-w.start + dilation - 1) / dilation : 0;
    w.to = (in - 1 - w.start) / dilation + 1;
    w.to = w.to > kernel ? kernel : w.to;
    w.count = w.to - w.from;
    if (row->flags & N8_OP_COUNT_PAD) { // the taps up to the end of the padding, none beyond
        const int64_t end = (in + row->pad_end[axis] - 1 - w.start) / dilation + 1;
        w.count = end > kernel ? kernel : end;
    }
    return w;
}

static void run_windows(struct n8_session *session, const struct n8_step *step,
                        n8_pool_fn *kernel) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const int8_t *from = (const int8_t *)n8_in_buffer(session, step, 0);
    int8_t *to = (int8_t *)n8_out_buffer(session, step);
    const int8_t **rows = (const int8_t **)(void *)session->scratch;
    struct n8_pool_args args = {
        .rows = rows,
        .channels = (size_t)in->dims[1],
        .in_zero_point = in->zero_point,
        .zero_point = out->zero_point,
        .lo = row->lo,
        .hi = row->hi,
    };
    const ptrdiff_t stride = (ptrdiff_t)in->pixel_stride;
    for (int32_t n = 0; n < in->dims[0]; n++) {
        const int8_t *image = from + (ptrdiff_t)n * in->dims[2] * in->dims[3] * stride;
        for (int32_t oy = 0; oy < out->dims[2]; oy++) {
            const struct window wy = window_at(row, 0, oy, in->dims[2]);
            for (int32_t ox = 0; ox < out->dims[3]; ox++, to += out->pixel_stride) {
                const struct window wx = window_at(row, 1, ox, in->dims[3]);
                args.taps = 0;
                for (int64_t ky = wy.from; ky < wy.to; ky++) {
                    const int64_t y = wy.start + ky * row->dilation[0];
                    for (int64_t kx = wx.from; kx < wx.to; kx++) {
                        const int64_t x = wx.start + kx * row->dilation[1];
                        rows[args.taps++] = image + (ptrdiff_t)(y * in->dims[3] + x) * stride;
                    }
                }
                const double count = (double)(wy.count * wx.count);
                args.multiplier = (float)((double)in->scale / ((double)out->scale * count));
                args.out = to;
                kernel(&args);
            }
        }
    }
}

static void run_max(struct n8_session *session, const struct n8_step *step) {
    run_windows(session, step, session->model->kernels.maxpool_s8);
}

static void run_average(struct n8_session *session, const struct n8_step *step) {
    run_windows(session, step, session->model->kernels.avgpool_s8);
}

const struct n8_operator n8_op_max_pool = {
    .name = "max_pool",
    .in = N8_TYPE_S8,
    .out = N8_TYPE_S8,
    .least_inputs = 1,
    .most_inputs = 1,
    .fields = N8_FIELD_WINDOW | N8_FIELD_CLAMP,
    .check = check_max,
    .plan = plan_max,
    .run = run_max,
};

const struct n8_operator n8_op_average_pool = {
    .name = "average_pool",
    .in = N8_TYPE_S8,
    .out = N8_TYPE_S8,
    .least_inputs = 1,
    .most_inputs = 1,
    .fields = N8_FIELD_WINDOW | N8_FIELD_COUNT_PAD | N8_FIELD_CLAMP,
    .check = check_average,
    .plan = plan_average,
    .run = run_average,
};
