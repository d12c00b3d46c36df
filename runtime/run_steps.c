// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <string.h>

static const struct n8_tensor *tensor_of(const struct n8_session *session, uint32_t number) {
    return &session->model->tensors[number];
}

// A float input of the graph: quantized plane by plane in pieces that stay in L1, and laid
// out as N H W C on the way.
static void quantize_input(struct n8_session *session, const struct n8_tensor *in,
                           const struct n8_tensor *out, int8_t *to) {
    enum { PIECE = 1024 };
    int8_t piece[PIECE];
    const float inverse = 1.0f / out->scale;
    const uint8_t *from = session->inputs[in->input];
    const size_t area = in->pixels / (size_t)in->dims[0];
    for (size_t n = 0; n < (size_t)in->dims[0]; n++, to += area * out->pixel_stride) {
        for (size_t c = 0; c < (size_t)in->dims[1]; c++) {
            for (size_t p = 0; p < area; p += PIECE) {
                const size_t count = area - p < PIECE ? area - p : PIECE;
                session->model->kernels.quantize_f32_s8(piece, (const float *)(const void *)from,
                                                        count, inverse, out->zero_point, out->lo,
                                                        out->hi);
                from += count * sizeof(float);
                for (size_t i = 0; i < count; i++) {
                    to[(p + i) * out->pixel_stride + c] = piece[i];
                }
            }
        }
    }
}

void n8_run_quantize(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *in = tensor_of(session, step->inputs[0]);
    const struct n8_tensor *out = tensor_of(session, step->output);
    int8_t *to = (int8_t *)n8_buffer(session, step->output);
    if (in->input >= 0) {
        quantize_input(session, in, out, to);
        return;
    }
    const float inverse = 1.0f / out->scale;
    const uint8_t *from = n8_buffer(session, step->inputs[0]);
    for (size_t p = 0; p < in->pixels; p++) {
        session->model->kernels.quantize_f32_s8(
            to + p * out->pixel_stride, (const float *)(const void *)(from + p * in->pixel_stride),
            (size_t)in->dims[1], inverse, out->zero_point, out->lo, out->hi);
    }
}

void n8_run_dequantize(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *in = tensor_of(session, step->inputs[0]);
    const struct n8_tensor *out = tensor_of(session, step->output);
    const int8_t *from = (const int8_t *)n8_buffer(session, step->inputs[0]);
    uint8_t *to = n8_buffer(session, step->output);
    for (size_t p = 0; p < in->pixels; p++) {
        session->model->kernels.dequantize_s8_f32((float *)(void *)(to + p * out->pixel_stride),
                                                  from + p * in->pixel_stride, (size_t)in->dims[1],
                                                  in->scale, in->zero_point);
    }
}

// Channel padding is computed like everything else: nobody looks at it.
void n8_run_pointwise(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *a = tensor_of(session, step->inputs[0]);
    const struct n8_tensor *b = tensor_of(session, step->inputs[step->input_count - 1]);
    const struct n8_tensor *out = tensor_of(session, step->output);
    const struct n8_kernels *kernels = &session->model->kernels;
    const bool add = step->kind == N8_OP_ADD;
    const struct n8_pointwise_args args = {
        .out = (int8_t *)n8_buffer(session, step->output),
        .a = (const int8_t *)n8_buffer(session, step->inputs[0]),
        .b = add ? (const int8_t *)n8_buffer(session, step->inputs[1]) : NULL,
        .count = out->pixels * out->pixel_stride,
        .a_scale = step->scale,
        .b_scale = step->residual_scale,
        .slope = step->slope,
        .a_zero_point = a->zero_point,
        .b_zero_point = b->zero_point,
        .zero_point = out->zero_point,
        .lo = step->lo,
        .hi = step->hi,
    };
    (add ? kernels->add_s8 : kernels->requantize_s8)(&args);
}

// Taps [from, to) of a window fall inside the input; `count` of them count as its size.
struct window {
    int64_t start, from, to, count;
};

static struct window window_at(const struct n8_step *step, int axis, int64_t out, int32_t in) {
    const int64_t dilation = step->dilation[axis];
    const int64_t kernel = step->kernel[axis];
    struct window w = {.start = out * step->stride[axis] - step->pad[axis]};
    w.from = w.start < 0 ? (-w.start + dilation - 1) / dilation : 0;
    w.to = (in - 1 - w.start) / dilation + 1;
    w.to = w.to > kernel ? kernel : w.to;
    w.count = w.to - w.from;
    if (step->count_pad) { // the taps up to the end of the padding, but none beyond
        const int64_t end = (in + step->pad_end[axis] - 1 - w.start) / dilation + 1;
        w.count = end > kernel ? kernel : end;
    }
    return w;
}

void n8_run_pool(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *in = tensor_of(session, step->inputs[0]);
    const struct n8_tensor *out = tensor_of(session, step->output);
    const int8_t *from = (const int8_t *)n8_buffer(session, step->inputs[0]);
    int8_t *to = (int8_t *)n8_buffer(session, step->output);
    const int8_t **rows = (const int8_t **)(void *)session->scratch;
    const bool average = step->kind == N8_OP_AVERAGE_POOL;
    n8_pool_fn *kernel =
        average ? session->model->kernels.avgpool_s8 : session->model->kernels.maxpool_s8;
    struct n8_pool_args args = {
        .rows = rows,
        .channels = (size_t)in->dims[1],
        .in_zero_point = in->zero_point,
        .zero_point = out->zero_point,
        .lo = step->lo,
        .hi = step->hi,
    };
    const ptrdiff_t stride = (ptrdiff_t)in->pixel_stride;
    for (int32_t n = 0; n < in->dims[0]; n++) {
        const int8_t *image = from + (ptrdiff_t)n * in->dims[2] * in->dims[3] * stride;
        for (int32_t oy = 0; oy < out->dims[2]; oy++) {
            const struct window wy = window_at(step, 0, oy, in->dims[2]);
            for (int32_t ox = 0; ox < out->dims[3]; ox++, to += out->pixel_stride) {
                const struct window wx = window_at(step, 1, ox, in->dims[3]);
                args.taps = 0;
                for (int64_t ky = wy.from; ky < wy.to; ky++) {
                    const int64_t y = wy.start + ky * step->dilation[0];
                    for (int64_t kx = wx.from; kx < wx.to; kx++) {
                        const int64_t x = wx.start + kx * step->dilation[1];
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

// `outer` runs of bytes of each input lie between those of the next: along C a run is a
// pixel's channels, along W a row's pixels, along H an image's rows.
void n8_run_concat(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *out = tensor_of(session, step->output);
    size_t outer = (size_t)out->dims[0];
    if (step->axis != 2) {
        outer *= (size_t)out->dims[2];
    }
    if (step->axis == 1) {
        outer *= (size_t)out->dims[3];
    }
    const size_t out_run = out->pixels * out->pixel_stride / outer;
    uint8_t *to = n8_buffer(session, step->output);
    for (size_t i = 0; i < step->input_count; i++) {
        const struct n8_tensor *in = tensor_of(session, step->inputs[i]);
        const uint8_t *from = n8_buffer(session, step->inputs[i]);
        const size_t in_run = in->pixels * in->pixel_stride / outer;
        const size_t used = step->axis == 1 ? (size_t)in->dims[1] : in_run;
        for (size_t o = 0; o < outer; o++) {
            memcpy(to + o * out_run, from + o * in_run, used);
        }
        to += used;
    }
}

// Moves one byte at a time through the common N C H W order. Where only ones are added or
// taken away between equal pixels the layout is the same and one copy does it.
void n8_run_reshape(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *in = tensor_of(session, step->inputs[0]);
    const struct n8_tensor *out = tensor_of(session, step->output);
    const uint8_t *from = n8_buffer(session, step->inputs[0]);
    uint8_t *to = n8_buffer(session, step->output);
    if (memcmp(in->dims, out->dims, sizeof in->dims) == 0) {
        memcpy(to, from, in->pixels * in->pixel_stride);
        return;
    }
    const size_t area = in->pixels / (size_t)in->dims[0];
    const size_t out_area = out->pixels / (size_t)out->dims[0];
    const size_t out_channels = (size_t)out->dims[1];
    size_t p = 0; // the output's pixel in its plane, channel and image
    size_t c = 0;
    uint8_t *image = to;
    for (size_t n = 0; n < (size_t)in->dims[0]; n++) {
        for (size_t channel = 0; channel < (size_t)in->dims[1]; channel++) {
            for (size_t pixel = 0; pixel < area; pixel++) {
                image[p * out->pixel_stride + c] =
                    from[(n * area + pixel) * in->pixel_stride + channel];
                if (++p == out_area) {
                    p = 0;
                    if (++c == out_channels) {
                        c = 0;
                        image += out_area * out->pixel_stride;
                    }
                }
            }
        }
    }
}

void n8_run_softmax(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *in = tensor_of(session, step->inputs[0]);
    const uint8_t *from = n8_buffer(session, step->inputs[0]);
    uint8_t *to = n8_buffer(session, step->output);
    for (size_t n = 0; n < (size_t)in->dims[0]; n++) {
        session->model->kernels.softmax_f32(
            (float *)(void *)(to + n * in->pixel_stride),
            (const float *)(const void *)(from + n * in->pixel_stride), (size_t)in->dims[1]);
    }
}
