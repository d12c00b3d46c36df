// SPDX-License-Identifier: Apache-2.0
//
// Max and average pooling, (9): the taps of each window that lie inside the input go to a
// kernel as pointers to pixels.
#include "ops.h"

#include "size.h"
#include "window.h"

static enum n8_status check_max(struct n8_reader *reader, const struct n8_step *step) {
    const enum n8_status status = n8_check_pool(reader, step);
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
    return n8_check_pool(reader, step);
}

// Scratch: pointers to the taps of one window.
static size_t scratch_size(const struct n8_tensor *in, const struct n8_step *step) {
    const int32_t *kernel = step->row.kernel;
    const int32_t rows = kernel[0] < in->dims[2] ? kernel[0] : in->dims[2];
    const int32_t columns = kernel[1] < in->dims[3] ? kernel[1] : in->dims[3];
    return n8_mul(n8_mul((size_t)rows, (size_t)columns), sizeof(int8_t *));
}

// A unit is some channels of a pixel: all of them where there are pixels enough for every
// thread, else, as in a global pool, a few.
static size_t channels_of_unit(const struct n8_tensor *out) {
    enum { ENOUGH = 64, FEW = 64 };
    return out->pixels >= ENOUGH ? (size_t)out->dims[1] : FEW;
}

static void plan_windows(const struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *out = n8_output(reader->model, step);
    step->scratch_size = scratch_size(n8_input(reader->model, step, 0), step);
    step->units = out->pixels * n8_pieces((size_t)out->dims[1], channels_of_unit(out));
}

static enum n8_status plan_max(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.maxpool_s8_name;
    plan_windows(reader, step);
    return N8_OK;
}

static enum n8_status plan_average(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.avgpool_s8_name;
    plan_windows(reader, step);
    return N8_OK;
}

// Writes the pointers to the taps of one window and returns how many they are.
static size_t point_taps(const struct n8_file_op *row, const struct n8_tensor *in,
                         const int8_t *image, const struct n8_window *wy,
                         const struct n8_window *wx, const int8_t **rows) {
    const ptrdiff_t stride = (ptrdiff_t)in->pixel_stride;
    const ptrdiff_t across = row->dilation[1] * stride;
    const ptrdiff_t down = (ptrdiff_t)row->dilation[0] * in->dims[3] * stride;
    const int64_t y = wy->start + wy->from * row->dilation[0];
    const int64_t x = wx->start + wx->from * row->dilation[1];
    const int8_t *line = image + (ptrdiff_t)(y * in->dims[3] + x) * stride;
    size_t taps = 0;
    for (int64_t ky = wy->from; ky < wy->to; ky++, line += down) {
        const int8_t *tap = line;
        for (int64_t kx = wx->from; kx < wx->to; kx++, tap += across) {
            rows[taps++] = tap;
        }
    }
    return taps;
}

// Where a unit lies in the output.
struct place {
    size_t image, y, x, piece;
};

static void run_windows(const struct n8_session *session, const struct n8_step *step, size_t begin,
                        size_t end, void *scratch, n8_pool_fn *kernel) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const size_t channels = (size_t)out->dims[1];
    const size_t few = channels_of_unit(out);
    const size_t pieces = n8_pieces(channels, few);
    const size_t width = (size_t)out->dims[3];
    const size_t height = (size_t)out->dims[2];
    struct n8_pool_args args = {
        .rows = scratch,
        .in_zero_point = in->zero_point,
        .zero_point = out->zero_point,
        .lo = row->lo,
        .hi = row->hi,
    };
    size_t pixel = begin / pieces;
    struct place at = {pixel / width / height, pixel / width % height, pixel % width,
                       begin % pieces};
    struct n8_window wy = n8_window_at(row, 0, (int64_t)at.y, in->dims[2]);
    int64_t count = 0; // of the taps that the multiplier is for
    for (size_t unit = begin; unit < end; unit++) {
        const size_t channel = at.piece * few;
        const struct n8_window wx = n8_window_at(row, 1, (int64_t)at.x, in->dims[3]);
        const size_t image = at.image * (size_t)in->dims[2] * (size_t)in->dims[3];
        args.taps =
            point_taps(row, in, (const int8_t *)n8_in_pixel(session, step, 0, image) + channel, &wy,
                       &wx, scratch);
        args.channels = channels - channel < few ? channels - channel : few;
        if (count != wy.count * wx.count) {
            count = wy.count * wx.count;
            args.multiplier = (float)((double)in->scale / ((double)out->scale * (double)count));
        }
        args.out = (int8_t *)n8_out_pixel(session, step, pixel) + channel;
        kernel(&args);
        if (++at.piece < pieces) {
            continue;
        }
        at.piece = 0;
        pixel++;
        if (++at.x == width) {
            at.x = 0;
            at.y = at.y + 1 == height ? 0 : at.y + 1;
            at.image += at.y == 0;
            wy = n8_window_at(row, 0, (int64_t)at.y, in->dims[2]);
        }
    }
}

static void run_max(const struct n8_session *session, const struct n8_step *step, size_t begin,
                    size_t end, void *scratch) {
    run_windows(session, step, begin, end, scratch, session->model->kernels.maxpool_s8);
}

static void run_average(const struct n8_session *session, const struct n8_step *step, size_t begin,
                        size_t end, void *scratch) {
    run_windows(session, step, begin, end, scratch, session->model->kernels.avgpool_s8);
}

const struct n8_operator n8_op_max_pool = {
    .name = "max_pool",
    .in = N8_TYPE_S8,
    .out = N8_TYPE_S8,
    .least_inputs = 1,
    .most_inputs = 1,
    .fields = N8_FIELD_WINDOW | N8_FIELD_CLAMP,
    .moves = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
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
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
    .check = check_average,
    .plan = plan_average,
    .run = run_average,
};
