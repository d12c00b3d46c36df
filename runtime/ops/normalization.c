// SPDX-License-Identifier: Apache-2.0
//
// Channels are normalized by their own mean and variance: each of an image, (19), or in groups,
// (31), those of a pixel or those of all pixels of an image.
#include "move/widen.h"
#include "ref/epilogue.h"
#include "step.h"

#include <math.h>
#include <string.h>

enum {
    PIXEL = 1, // the last of the axes N C H W that are normalized together
    IMAGE = 3,
    PIECE = 512, // values that are widened or narrowed at once
};

// gamma[C], beta[C], epsilon; packed, of (31), gain[C], offset[C], epsilon.
static size_t value_count(const struct n8_tensor *in) {
    return 2 * (size_t)in->dims[1] + 1;
}

enum n8_status n8_check_normalization(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    if (row->axis != PIXEL && row->axis != IMAGE) {
        return n8_malformed(reader, "its axis is neither 1 nor 3");
    }
    if (row->groups < 1 || step->out->dims[1] % row->groups != 0) {
        return n8_malformed(reader, "its groups do not divide its channels");
    }
    if (row->function != N8_FUNCTION_NONE && row->function != N8_FUNCTION_SUBTRACT) {
        return n8_malformed(reader, "its function is neither none nor subtract");
    }
    return N8_OK;
}

static enum n8_status read_values(struct n8_reader *reader, struct n8_step *step) {
    step->packed_size = value_count(step->in) * sizeof(float);
    return n8_read_array(reader, step->row.values, value_count(step->in), sizeof(float),
                         &step->arrays[0]);
}

static enum n8_status check_values(struct n8_reader *reader, const struct n8_step *step,
                                   float *values) {
    const size_t last = value_count(step->in) - 1;
    memcpy(values, step->arrays[0], step->packed_size);
    for (size_t i = 0; i <= last; i++) {
        if (!(fabsf(values[i]) <= 1e30f)) {
            return n8_malformed(reader, "a parameter is outside +-1e30");
        }
    }
    return values[last] < 1e-30f ? n8_malformed(reader, "its epsilon is below 1e-30") : N8_OK;
}

enum n8_status n8_plan_normalization(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *in = step->in;
    const size_t area = step->row.axis == IMAGE ? in->pixels / (size_t)in->dims[0] : 1;
    step->kernel_name = reader->model->kernels.normalize_s16_name;
    step->units = in->pixels / area * (size_t)step->row.groups;
    return read_values(reader, step);
}

// Below 1e-30 it is 0: no denormal is multiplied.
static float without_small(double value) {
    const float single = (float)value;
    return fabsf(single) < 1e-30f ? 0.0f : single;
}

enum n8_status n8_pack_normalization(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const size_t channels = (size_t)step->in->dims[1];
    const double scale = (double)step->out->scale;
    float *values = memory;
    N8_TRY(check_values(reader, step, values));
    for (size_t c = 0; c < channels; c++) {
        values[c] = without_small((double)values[c] / scale);
        values[channels + c] = (float)((double)values[channels + c] / scale);
    }
    return N8_OK;
}

// What is normalized together: `channels` values of each of `pixels` pixels, in groups of which
// this one begins at channel `first`.
struct group {
    const uint8_t *in;
    uint8_t *out;
    size_t first, channels, pixels;
    const uint8_t *widened; // whose values `piece` has
    int16_t piece[PIECE];
};

// Values of a group in int16; where all of it is one piece, those of its sums serve the result.
static const int16_t *take(struct group *group, const uint8_t *from, size_t count,
                           enum n8_type type) {
    if (type == N8_TYPE_S16) {
        return (const int16_t *)(const void *)from;
    }
    if (group->widened != from) {
        n8_widen(group->piece, from, count, type);
        group->widened = from;
    }
    return group->piece;
}

// Sums of the values and of their squares, exact: a tensor has less than 2^31 values of 16 bits.
static void add_up(const struct n8_session *session, const struct n8_tensor *in,
                   struct group *group, int64_t total[2]) {
    const size_t size = n8_value_size(in);
    group->widened = NULL;
    total[0] = total[1] = 0;
    for (size_t p = 0; p < group->pixels; p++) {
        const uint8_t *from = group->in + p * in->pixel_stride;
        for (size_t c = 0, count; c < group->channels; c += count) {
            count = n8_smaller(group->channels - c, PIECE);
            int64_t sums[2];
            const int16_t *piece = take(group, from + c * size, count, in->type);
            session->model->kernels.sums_s16(sums, piece, count);
            total[0] += sums[0];
            total[1] += sums[1];
        }
    }
}

// What the kernel does, where in * factor is beyond int32.
static void normalize_far(const struct n8_normalize_args *args, int64_t factor, int64_t shift) {
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    for (size_t i = 0; i < args->count; i++) {
        const float d = (float)(double)(args->in[i] * factor - shift); // below 2^53
        const float v = d * args->rate * args->gain[i] + args->offset[i];
        args->out[i] = n8_round_s16(n8_leaky(v, args->slope), limits);
    }
}

static void normalize(const struct n8_session *session, const struct n8_step *step,
                      struct group *group, struct n8_normalize_args args, int64_t factor,
                      int64_t shift) {
    const struct n8_tensor *in = step->in, *out = step->out;
    const float *gain = step->packed, *offset = gain + in->dims[1];
    const bool far = factor > (1 << 30) / (in->type == N8_TYPE_S8 ? -INT8_MIN : -INT16_MIN);
    int16_t made[PIECE];
    args.out = made;
    args.factor = far ? 0 : (int32_t)factor;
    args.shift = far ? 0 : (int32_t)shift;
    for (size_t p = 0; p < group->pixels; p++) {
        const uint8_t *from = group->in + p * in->pixel_stride;
        uint8_t *to = group->out + p * out->pixel_stride;
        for (size_t c = 0; c < group->channels; c += args.count) {
            args.count = n8_smaller(group->channels - c, PIECE);
            args.gain = gain + group->first + c;
            args.offset = offset + group->first + c;
            args.in = take(group, from + c * n8_value_size(in), args.count, in->type);
            if (far) {
                normalize_far(&args, factor, shift);
            } else {
                session->model->kernels.normalize_s16(&args);
            }
            n8_narrow(to + c * n8_value_size(out), made, args.count, out->type);
        }
    }
}

static void run_group(const struct n8_session *session, const struct n8_step *step,
                      struct group *group) {
    const struct n8_tensor *in = step->in;
    const int64_t count = (int64_t)(group->channels * group->pixels), zero_point = in->zero_point;
    const bool centred = step->row.function == N8_FUNCTION_SUBTRACT;
    const double scale = (double)in->scale, size = (double)count;
    const double epsilon = (double)((const float *)step->packed)[2 * in->dims[1]];
    int64_t total[2];
    add_up(session, in, group, total);
    const double sum = (double)(total[0] - count * zero_point);
    const int64_t squares = total[1] - 2 * zero_point * total[0] + count * zero_point * zero_point;
    double variance = (double)squares / size;
    if (centred) {
        const double mean = sum / size, raw = variance - mean * mean;
        variance = raw > 0.0 ? raw : 0.0;
    }
    const double deviation = sqrt(variance * (scale * scale) + epsilon);
    const struct n8_normalize_args args = {
        .rate = without_small(scale / (deviation * (centred ? size : 1.0))),
        .slope = step->row.slope,
        .zero_point = step->out->zero_point,
        .lo = step->row.lo,
        .hi = step->row.hi,
    };
    // count * (q - zp) - sum of the q - zp: zp is in both.
    normalize(session, step, group, args, centred ? count : 1, centred ? total[0] : zero_point);
}

// A unit is a group of a pixel, or of an image.
void n8_run_normalization(const struct n8_session *session, const struct n8_step *step,
                          size_t begin, size_t end, void *scratch) {
    const struct n8_tensor *in = step->in;
    const size_t groups = (size_t)step->row.groups;
    struct group group = {
        .channels = (size_t)in->dims[1] / groups,
        .pixels = step->row.axis == IMAGE ? in->pixels / (size_t)in->dims[0] : 1,
    };
    for (size_t unit = begin; unit < end; unit++) {
        const size_t pixel = unit / groups * group.pixels;
        group.first = unit % groups * group.channels;
        group.in =
            (const uint8_t *)n8_in_pixel(session, step, 0, pixel) + group.first * n8_value_size(in);
        group.out =
            (uint8_t *)n8_out_pixel(session, step, pixel) + group.first * n8_value_size(step->out);
        run_group(session, step, &group);
    }
}

const struct n8_operator n8_op_normalization = {
    .name = "normalization",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .s16 = true,
    .fields = N8_FIELD_AXIS | N8_FIELD_GROUPS | N8_FIELD_FUNCTION | N8_FIELD_SLOPE |
              N8_FIELD_CLAMP | N8_FIELD_VALUES,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_READS_EXACTLY,
};

// Each channel of an image ----------------------------------------------------------------

enum { BLOCK = 16 }; // channels of a unit

static size_t blocks(const struct n8_tensor *in) {
    return n8_pieces((size_t)in->dims[1], BLOCK);
}

enum n8_status n8_plan_instance_norm(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.affine_s8_name;
    step->units = (size_t)step->in->dims[0] * blocks(step->in);
    return read_values(reader, step);
}

enum n8_status n8_pack_instance_norm(struct n8_reader *reader, struct n8_step *step, void *memory) {
    return check_values(reader, step, memory);
}

// Sums of values and of squares over one image, exact: |q - zp| <= 255, and a tensor has less
// than 2^31 values.
struct image_sums {
    int64_t values[BLOCK], squares[BLOCK];
};

static void add_image(struct image_sums *sums, const int8_t *from, size_t channels, size_t pixels,
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
static void run_block(const struct n8_session *session, const struct n8_step *step, size_t unit) {
    const struct n8_tensor *in = step->in, *out = step->out;
    const size_t first = unit % blocks(in) * BLOCK, pixels = in->pixels / (size_t)in->dims[0];
    const size_t rest = (size_t)in->dims[1] - first, channels = n8_smaller(rest, BLOCK);
    const size_t image = unit / blocks(in) * pixels;
    const int8_t *from = (const int8_t *)n8_in_pixel(session, step, 0, image) + first;
    const float *gamma = step->packed, *beta = gamma + in->dims[1];
    const double epsilon = (double)beta[in->dims[1]];
    const double scale_in = (double)in->scale, scale_out = (double)out->scale;
    struct image_sums sums;
    add_image(&sums, from, channels, pixels, in->pixel_stride, in->zero_point);
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
        run_block(session, step, unit);
    }
}

const struct n8_operator n8_op_instance_norm = {
    .name = "instance_norm",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_SLOPE | N8_FIELD_CLAMP | N8_FIELD_VALUES,
};
