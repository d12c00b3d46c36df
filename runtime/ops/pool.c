// SPDX-License-Identifier: Apache-2.0
//
// Max and average pooling, (9) and (20): the taps of each window that lie inside the input go to a
// kernel as pointers to pixels; pool_rare.h has those of int16 and of float32.
#include "step.h"

#include "pool_rare.h"
#include "size.h"
#include "window.h"

enum {
    MAX_TAPS = 1 << 23,     // 2^23 * 255 < 2^31: the sum of an average pool fits int32
    MAX_TAPS_S16 = 1 << 15, // 2^15 * 65535 < 2^31
};

static bool is_max(const struct n8_step *step) {
    return step->row.kind == N8_OP_MAX_POOL || step->row.kind == N8_OP_MAX_POOL_F32;
}

// Whether it reads int16 or float32.
static bool is_rare(const struct n8_step *step) {
    return step->in->type != N8_TYPE_S8;
}

// True if every window along one axis has a tap inside the input. A file may ask this of
// thousands of axes of a million windows each, so the windows are not looked at one by one.
static bool covers(const struct n8_file_op *row, int axis, int32_t in, int32_t out) {
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

enum n8_status n8_check_pool(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = step->in, *out = step->out;
    if (in->dims[0] != out->dims[0] || in->dims[1] != out->dims[1]) {
        return n8_malformed(reader, "its output has another batch or channels");
    }
    if ((int64_t)row->kernel[0] * row->kernel[1] > MAX_TAPS) {
        return n8_malformed(reader, "its window has more than 2^23 taps");
    }
    if (!covers(row, 0, in->dims[2], out->dims[2]) || !covers(row, 1, in->dims[3], out->dims[3])) {
        return n8_malformed(reader, "a window has no tap inside the input");
    }
    return N8_OK;
}

enum n8_status n8_check_max_pool(struct n8_reader *reader, const struct n8_step *step) {
    if (step->in->type != step->out->type) {
        return n8_malformed(reader, "its output is not of the type that it makes");
    }
    N8_TRY(n8_check_pool(reader, step));
    return n8_check_same_scale(reader, step->in, step->out);
}

// M of (9) for a window of one tap and for one of all, as of a convolution.
enum n8_status n8_check_average_pool(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = step->in, *out = step->out;
    const int64_t taps = (int64_t)step->row.kernel[0] * step->row.kernel[1];
    const bool real = out->type == N8_TYPE_F32; // whose scale is 1
    const double ratio = (double)in->scale / (double)out->scale;
    const float most = (float)ratio;
    const float least = (float)(ratio / (double)taps);
    if (!(least > 0.0f) || !n8_multiplier_ok(least) || !n8_multiplier_ok(most)) {
        return n8_malformed(reader, "its multiplier is outside 1e-30 .. 2^64");
    }
    if (!real && out->type != in->type) {
        return n8_malformed(reader, "its output is not of the type that it makes");
    }
    if (real && (step->row.lo != -128 || step->row.hi != 127)) {
        return n8_malformed(reader, "it makes float32 and has a clamp");
    }
    if (in->type == N8_TYPE_S16 && taps > MAX_TAPS_S16) {
        return n8_malformed(reader, "its window has more than 2^15 taps of int16");
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

enum n8_status n8_plan_pool(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_kernels *kernels = &reader->model->kernels;
    const struct n8_tensor *out = step->out;
    const bool max = is_max(step), rare = is_rare(step);
    step->scratch_size = scratch_size(step->in, step);
    step->units = out->pixels * n8_pieces((size_t)out->dims[1], channels_of_unit(out));
    if (step->in->type == N8_TYPE_F32) {
        step->macs = (uint64_t)n8_value_count(out) * (uint64_t)step->row.kernel[0] *
                     (uint64_t)step->row.kernel[1];
    } else {
        step->kernel_name = max ? (rare ? "max" : kernels->maxpool_s8_name)
                                : (rare ? "average" : kernels->avgpool_s8_name);
    }
    return N8_OK;
}

// Writes the pointers to the taps of one window and returns how many they are.
static size_t point_taps(const struct n8_file_op *row, const struct n8_tensor *in,
                         const int8_t *image, const struct n8_window *wy,
                         const struct n8_window *wx, const int8_t **rows) {
    const ptrdiff_t stride = (ptrdiff_t)in->pixel_stride;
    const ptrdiff_t across = n8_strides(stride, row->dilation[1]);
    const ptrdiff_t down = n8_strides(stride * in->dims[3], row->dilation[0]);
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

void n8_run_pool(const struct n8_session *session, const struct n8_step *step, size_t begin,
                 size_t end, void *scratch) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *in = step->in, *out = step->out;
    const size_t channels = (size_t)out->dims[1];
    const size_t few = channels_of_unit(out);
    const size_t pieces = n8_pieces(channels, few);
    const size_t width = (size_t)out->dims[3];
    const size_t height = (size_t)out->dims[2];
    const bool rare = is_rare(step), max = is_max(step), floats = in->type == N8_TYPE_F32;
    struct n8_pool_args args = {
        .rows = scratch,
        .step = (size_t)row->stride[1] * in->pixel_stride,
        .out_stride = out->pixel_stride,
        .in_zero_point = in->zero_point,
        .zero_point = out->zero_point,
        .lo = row->lo,
        .hi = row->hi,
        .real = out->type == N8_TYPE_F32,
    };
    size_t pixel = begin / pieces;
    struct place at = {pixel / width / height, pixel / width % height, pixel % width,
                       begin % pieces};
    struct n8_window wy = n8_window_at(row, 0, (int64_t)at.y, in->dims[2]);
    // Where a line's windows begin to end outside the input; those before it that do not begin
    // outside are computed together.
    const int64_t last =
        in->dims[3] - 1 + row->pad[1] - (int64_t)(row->kernel[1] - 1) * row->dilation[1];
    const size_t inside = last < 0 ? 0 : n8_smaller((size_t)(last / row->stride[1]) + 1, width);
    int64_t count = 0; // of the taps that the multiplier is for
    for (size_t unit = begin; unit < end; unit += args.pixels) {
        const size_t channel = at.piece * few;
        const struct n8_window wx = n8_window_at(row, 1, (int64_t)at.x, in->dims[3]);
        const size_t image = at.image * (size_t)in->dims[2] * (size_t)in->dims[3];
        const int8_t *pixels = n8_in_pixel(session, step, 0, image);
        args.taps = point_taps(row, in, pixels + channel * n8_value_size(in), &wy, &wx, scratch);
        args.channels = n8_smaller(channels - channel, few);
        args.pixels = 1;
        if (wx.to - wx.from == row->kernel[1] && pieces == 1 && !rare) {
            args.pixels = n8_smaller(inside - at.x, end - unit);
        }
        if (count != wy.count * wx.count) {
            count = wy.count * wx.count;
            args.multiplier = (float)((double)in->scale / ((double)out->scale * (double)count));
        }
        args.out = (int8_t *)n8_out_pixel(session, step, pixel) + channel * n8_value_size(out);
        if (!rare) {
            (max ? session->model->kernels.maxpool_s8 : session->model->kernels.avgpool_s8)(&args);
        } else if (floats) {
            n8_pool_f32(&args, max, max ? 1.0f : (float)count);
        } else if (max) {
            n8_max_s16(&args);
        } else {
            n8_average_s16(&args);
        }
        if (++at.piece < pieces) {
            continue;
        }
        at.piece = 0;
        pixel += args.pixels;
        at.x += args.pixels;
        if (at.x == width) {
            at.x = 0;
            at.y = at.y + 1 == height ? 0 : at.y + 1;
            at.image += at.y == 0;
            wy = n8_window_at(row, 0, (int64_t)at.y, in->dims[2]);
        }
    }
}

#define POOL(symbol, in_type, out_type, more_fields, its_moves, its_s16)                           \
    const struct n8_operator n8_op_##symbol = {                                                    \
        .name = #symbol,                                                                           \
        .types = {in_type, out_type},                                                              \
        .inputs = {1, 1},                                                                          \
        .fields = N8_FIELD_WINDOW | (more_fields),                                                 \
        .moves = (its_moves),                                                                      \
        .s16 = (its_s16),                                                                          \
        .placing = N8_READS_SLICES | N8_WRITES_SLICES,                                             \
    }

POOL(max_pool, N8_TYPE_S8, N8_TYPE_S8, N8_FIELD_CLAMP, true, true);
POOL(average_pool, N8_TYPE_S8, 0, N8_FIELD_COUNT_PAD | N8_FIELD_CLAMP, false, true);
POOL(max_pool_f32, N8_TYPE_F32, N8_TYPE_F32, 0, false, false);
POOL(average_pool_f32, N8_TYPE_F32, N8_TYPE_F32, N8_FIELD_COUNT_PAD, false, false);
