// SPDX-License-Identifier: Apache-2.0
//
// Moves values; the N C H W order of the values is kept.
#include "move/copy.h"
#include "step.h"

// True if every value has the same place in both: their images have as many pixels of as many
// channels.
static bool laid_out_alike(const struct n8_tensor *in, const struct n8_tensor *out) {
    return in->dims[1] == out->dims[1] && (in->dims[0] == out->dims[0] || in->dims[1] == 1);
}

bool n8_view_reshape(const struct n8_model *model, const struct n8_step *step, size_t *pixel,
                     size_t *byte) {
    *pixel = 0;
    *byte = 0;
    return laid_out_alike(step->in, step->out);
}

// A unit is a pixel where the layouts agree, else a plane of the input: one channel.
enum n8_status n8_plan_reshape(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *in = step->in;
    step->kernel_name = "copy";
    step->units =
        laid_out_alike(in, step->out) ? in->pixels : (size_t)in->dims[0] * (size_t)in->dims[1];
    return N8_OK;
}

// Run by run through the common N C H W order.
static void move_planes(const struct n8_session *session, const struct n8_step *step, size_t begin,
                        size_t end) {
    const struct n8_tensor *in = step->in, *out = step->out;
    const size_t size = n8_value_size(in);
    const size_t area = in->pixels / (size_t)in->dims[0];
    const size_t channels = (size_t)in->dims[1];
    const size_t out_area = out->pixels / (size_t)out->dims[0];
    const size_t out_channels = (size_t)out->dims[1];
    size_t p = begin * area % out_area; // the output's pixel in its plane, channel and image
    size_t c = begin * area / out_area % out_channels;
    size_t image = begin * area / out_area / out_channels;
    uint8_t *to = n8_out_pixel(session, step, image * out_area);
    for (size_t plane = begin; plane < end; plane++) {
        const uint8_t *from = n8_in_pixel(session, step, 0, plane / channels * area);
        for (size_t pixel = 0; pixel < area;) {
            const size_t count = area - pixel < out_area - p ? area - pixel : out_area - p;
            n8_move_values(to + p * out->pixel_stride + c * size, out->pixel_stride,
                           from + pixel * in->pixel_stride + plane % channels * size,
                           in->pixel_stride, count, size);
            pixel += count;
            p += count;
            if (p == out_area) {
                p = 0;
                if (++c == out_channels) {
                    c = 0;
                    to += out_area * out->pixel_stride;
                }
            }
        }
    }
}

void n8_run_reshape(const struct n8_session *session, const struct n8_step *step, size_t begin,
                    size_t end, void *scratch) {
    const struct n8_tensor *in = step->in;
    if (!laid_out_alike(in, step->out)) {
        move_planes(session, step, begin, end);
        return;
    }
    for (size_t p = begin; p < end; p++) {
        memcpy(n8_out_pixel(session, step, p), n8_in_pixel(session, step, 0, p),
               (size_t)in->dims[1] * n8_value_size(in));
    }
}

const struct n8_operator n8_op_reshape = {
    .name = "reshape",
    .inputs = {1, 1},
    .moves = true,
    .s16 = true,
    .s32 = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_READS_EXACTLY,
};
