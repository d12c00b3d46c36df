// SPDX-License-Identifier: Apache-2.0
//
// Each channel of each image is normalized by its own mean and variance, (19).
#include "step.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 16 }; // channels of a unit

// gamma[C], beta[C], epsilon.
static size_t value_count(const struct n8_tensor *in) {
    return 2 * (size_t)in->dims[1] + 1;
}

static size_t blocks(const struct n8_tensor *in) {
    return ((size_t)in->dims[1] + BLOCK - 1) / BLOCK;
}

enum n8_status n8_plan_instance_norm(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    step->kernel_name = reader->model->kernels.affine_s8_name;
    step->units = (size_t)in->dims[0] * blocks(in);
    step->packed_size = value_count(in) * sizeof(float);
    return n8_read_array(reader, step->row.values, value_count(in), sizeof(float),
                         &step->arrays[0]);
}

enum n8_status n8_pack_instance_norm(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const size_t count = value_count(n8_input(reader->model, step, 0));
    float *values = memory;
    memcpy(values, step->arrays[0], count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        if (!(fabsf(values[i]) <= 1e30f)) {
            return n8_malformed(reader, "a parameter is outside +-1e30");
        }
    }
    if (values[count - 1] < 1e-30f) {
        return n8_malformed(reader, "its epsilon is below 1e-30");
    }
    return N8_OK;
}

// Sums of values and of squares over one image, exact: |q - zp| <= 255, and a tensor has less
// than 2^31 values.
struct sums {
    int64_t values[BLOCK], squares[BLOCK];
};

static void add_up(struct sums *sums, const int8_t *from, size_t channels, size_t pixels,
                   size_t stride, int32_t zero_point) {
    memset(sums, 0, sizeof *sums);
    for (size_t p = 0; p < pixels; p++) {
        for (size_t c = 0; c < channels; c++) {
            const int32_t value = from[p * stride + c] - zero_point;
            sums->values[c] += value;
            sums->squares[c] += value * value;
        }
    }
}

// A unit is a block of channels of one image.
static void run_unit(const struct n8_session *session, const struct n8_step *step, size_t unit) {
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const size_t first = unit % blocks(in) * BLOCK, pixels = in->pixels / (size_t)in->dims[0];
    const size_t rest = (size_t)in->dims[1] - first, channels = rest < BLOCK ? rest : BLOCK;
    const size_t image = unit / blocks(in) * pixels;
    const int8_t *from = (const int8_t *)n8_in_pixel(session, step, 0, image) + first;
    const float *gamma = step->packed, *beta = gamma + in->dims[1];
    const double epsilon = (double)beta[in->dims[1]];
    const double scale_in = (double)in->scale, scale_out = (double)out->scale;
    struct sums sums;
    add_up(&sums, from, channels, pixels, in->pixel_stride, in->zero_point);
    float multiplier[BLOCK], offset[BLOCK];
    for (size_t c = 0; c < channels; c++) {
        const double mean = (double)sums.values[c] / (double)pixels;
        const double raw = (double)sums.squares[c] / (double)pixels - mean * mean;
        const double variance = raw > 0.0 ? raw : 0.0;
        const double deviation = sqrt(variance * (scale_in * scale_in) + epsilon);
        const double m = ((double)gamma[first + c] * scale_in) / (deviation * scale_out);
        multiplier[c] = (float)m;
        offset[c] = (float)((double)beta[first + c] / scale_out - m * mean);
    }
    const struct n8_affine_args args = {
        .out = (int8_t *)n8_out_pixel(session, step, image) + first,
        .in = from,
        .multiplier = multiplier,
        .offset = offset,
        .out_stride = (ptrdiff_t)out->pixel_stride,
        .in_stride = (ptrdiff_t)in->pixel_stride,
        .pixels = pixels,
        .channels = channels,
        .slope = step->row.slope,
        .in_zero_point = in->zero_point,
        .zero_point = out->zero_point,
        .lo = step->row.lo,
        .hi = step->row.hi,
    };
    session->model->kernels.affine_s8(&args);
}

void n8_run_instance_norm(const struct n8_session *session, const struct n8_step *step,
                          size_t begin, size_t end, void *scratch) {
    for (size_t unit = begin; unit < end; unit++) {
        run_unit(session, step, unit);
    }
}

const struct n8_operator n8_op_instance_norm = {
    .name = "instance_norm",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_SLOPE | N8_FIELD_CLAMP | N8_FIELD_VALUES,
};
