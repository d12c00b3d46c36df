// SPDX-License-Identifier: Apache-2.0
//
// add, (6), multiply and divide, (16), maximum and minimum, (9), of two tensors, of which one or
// both may be broadcast. The kernels know nothing of that: they get a broadcast operand written
// out, a piece at a time. With any int16 tensor a step runs on a kernel of int16; its int8 operands
// are written out as int16, too.
#include "move/widen.h"
#include "ref/epilogue.h"
#include "size.h"
#include "step.h"

#include <string.h>

enum {
    OPERANDS = 2,
    PIECE = 2048, // values of a broadcast operand that are written out at once, at least
};

static bool is_broadcast(const struct n8_model *model, const struct n8_step *step, size_t index) {
    const struct n8_tensor *in = n8_input(model, step, index);
    return memcmp(in->dims, step->out->dims, sizeof in->dims) != 0;
}

static bool has_s16(const struct n8_model *model, const struct n8_step *step) {
    return step->out->type == N8_TYPE_S16 || step->in->type == N8_TYPE_S16 ||
           n8_input(model, step, 1)->type == N8_TYPE_S16;
}

// True if the operand is not read where it lies.
static bool is_written_out(const struct n8_model *model, const struct n8_step *step, size_t index) {
    const enum n8_type type = n8_input(model, step, index)->type;
    return is_broadcast(model, step, index) || (has_s16(model, step) && type != N8_TYPE_S16);
}

enum n8_status n8_check_arithmetic(struct n8_reader *reader, const struct n8_step *step) {
    const int32_t *a = step->in->dims;
    const int32_t *b = n8_input(reader->model, step, 1)->dims;
    for (int axis = 0; axis < 4; axis++) {
        const int32_t most = a[axis] > b[axis] ? a[axis] : b[axis];
        if ((a[axis] != 1 && a[axis] != most) || (b[axis] != 1 && b[axis] != most) ||
            step->out->dims[axis] != most) {
            return n8_malformed(reader, "its inputs can not be broadcast to its output");
        }
    }
    return N8_OK;
}

enum n8_status n8_check_multiply(struct n8_reader *reader, const struct n8_step *step) {
    if (step->row.multiplier != 0 && step->row.scale != 0.0f) {
        return n8_malformed(reader, "it has a scale for all channels and one for each");
    }
    return n8_check_arithmetic(reader, step);
}

// Checks the larger or smaller of two bytes: all share scale and zero point.
enum n8_status n8_check_extreme(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    N8_TRY(n8_check_arithmetic(reader, step));
    for (size_t i = 0; i < OPERANDS; i++) {
        const struct n8_tensor *in = n8_input(reader->model, step, i);
        if (in->type != out->type) {
            return n8_malformed(reader, "an input is not of the type of its output");
        }
        N8_TRY(n8_check_same_scale(reader, in, out));
        if (in->lo < out->lo || in->hi > out->hi) {
            return n8_malformed(reader, "an input exceeds its output's range");
        }
    }
    return N8_OK;
}

// Values of a pixel in a piece, at most.
static size_t piece_stride(const struct n8_tensor *out) {
    return out->pixel_stride / n8_value_size(out);
}

// Pixels of the output in a piece.
static size_t piece_pixels(const struct n8_tensor *out) {
    return piece_stride(out) < PIECE ? PIECE / piece_stride(out) : 1;
}

// In bytes, of values of `size` bytes.
static size_t piece_size(const struct n8_tensor *out, size_t size) {
    return n8_round_up(piece_pixels(out) * piece_stride(out) * size, N8_ALIGN);
}

#define EXTREME(name, type_of_args, operation)                                                     \
    static void name(const struct type_of_args *args) {                                            \
        for (size_t i = 0; i < args->count; i++) {                                                 \
            args->out[i] = args->a[i] operation args->b[i] ? args->a[i] : args->b[i];              \
        }                                                                                          \
    }
EXTREME(larger, n8_pointwise_args, >)
EXTREME(smaller, n8_pointwise_args, <)
EXTREME(larger_s16, n8_add_s16_args, >)
EXTREME(smaller_s16, n8_add_s16_args, <)

static void divide_s16(const struct n8_add_s16_args *args) {
    N8_POINTWISE(args, int16_t, n8_round_s16, (float)A / (float)B * a_scale)
}

// What computes a step: of int8, or with an int16 tensor.
struct kernel {
    n8_pointwise_fn *s8;
    n8_add_s16_fn *s16;
    const char *name;
};

static struct kernel kernel_of(const struct n8_kernels *kernels, const struct n8_step *step,
                               bool s16) {
    switch (step->row.kind) {
    case N8_OP_ADD:
        return (struct kernel){kernels->add_s8, kernels->add_s16,
                               s16 ? kernels->add_s16_name : kernels->add_s8_name};
    case N8_OP_MULTIPLY:
        return (struct kernel){kernels->multiply_s8, kernels->multiply_s16,
                               s16 ? kernels->multiply_s16_name : kernels->multiply_s8_name};
    case N8_OP_DIVIDE:
        return (struct kernel){kernels->divide_s8, divide_s16,
                               s16 ? "divide" : kernels->divide_s8_name};
    case N8_OP_MAXIMUM:
        return (struct kernel){larger, larger_s16, "maximum"};
    default:
        return (struct kernel){smaller, smaller_s16, "minimum"};
    }
}

// Values whose scales are written out: those of a piece, and as many more as kernels may read.
static size_t scales_count(const struct n8_tensor *out) {
    return n8_round_up(piece_pixels(out) * piece_stride(out), N8_ALIGN);
}

// Packs the bytes of channels that have scales of their own, over and over.
enum n8_status n8_pack_multiply(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const struct n8_tensor *out = step->out;
    const size_t channels = (size_t)out->dims[1], stride = piece_stride(out);
    float *scales = memory;
    for (size_t i = 0; step->arrays[0] != NULL && i < channels; i++) {
        memcpy(&scales[i], (const uint8_t *)step->arrays[0] + i * sizeof *scales, sizeof *scales);
        if (!n8_multiplier_ok(scales[i])) {
            return n8_malformed(reader, "a multiplier is neither 0 nor in 1e-30 .. 2^64");
        }
    }
    for (size_t p = 1; step->arrays[0] != NULL && p < piece_pixels(out); p++) {
        memcpy(scales + p * stride, scales, channels * sizeof *scales);
    }
    return N8_OK;
}

enum n8_status n8_plan_arithmetic(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    const bool s16 = has_s16(reader->model, step);
    const size_t size = piece_size(out, s16 ? sizeof(int16_t) : 1);
    step->kernel_name = kernel_of(&reader->model->kernels, step, s16).name;
    for (size_t i = 0; i < OPERANDS; i++) {
        step->scratch_size += is_written_out(reader->model, step, i) ? size : 0;
    }
    if (s16 && out->type != N8_TYPE_S16) {
        step->scratch_size += size; // what becomes the output
    }
    if (step->row.multiplier != 0) {
        step->packed_size = n8_mul(scales_count(out), sizeof(float));
        return n8_read_array(reader, step->row.multiplier, (size_t)out->dims[1], sizeof(float),
                             &step->arrays[0]);
    }
    return N8_OK;
}

// An operand as a run reads it.
struct operand {
    const struct n8_tensor *tensor;
    const uint8_t *values;
    uint8_t *piece; // where it is written out, or NULL
    size_t size;    // of a value there
    bool broadcast;
    bool whole;       // one pixel serves all of an image
    size_t have;      // the image that the piece holds then
    size_t have_size; // and how many pixels of it
};

// The pixel of a broadcast operand under pixel (n, y, x) of the output.
static const uint8_t *pixel_under(const struct operand *operand, size_t n, size_t y, size_t x) {
    const int32_t *dims = operand->tensor->dims;
    size_t pixel = dims[0] == 1 ? 0 : n;
    pixel = pixel * (size_t)dims[2] + (dims[2] == 1 ? 0 : y);
    pixel = pixel * (size_t)dims[3] + (dims[3] == 1 ? 0 : x);
    return operand->values + pixel * operand->tensor->pixel_stride;
}

static void copy_values(const struct operand *operand, uint8_t *to, const uint8_t *from,
                        size_t count) {
    if (operand->size == n8_value_size(operand->tensor)) {
        memcpy(to, from, count * operand->size);
    } else {
        n8_widen((int16_t *)(void *)to, from, count, operand->tensor->type);
    }
}

// `count` times the value at `from`.
static void repeat_value(const struct operand *operand, uint8_t *to, const uint8_t *from,
                         size_t count) {
    if (operand->size == 1) {
        memset(to, *from, count);
        return;
    }
    int16_t value;
    copy_values(operand, (uint8_t *)&value, from, 1);
    for (size_t i = 0; i < count; i++) {
        memcpy(to + i * sizeof value, &value, sizeof value);
    }
}

// Pixels [p, p + count) of the output's shape, `stride` values each.
static const uint8_t *written_out(struct operand *operand, const struct n8_tensor *out, size_t p,
                                  size_t count, size_t stride) {
    const size_t width = (size_t)out->dims[3], height = (size_t)out->dims[2];
    const size_t image = p / (width * height);
    if (!operand->broadcast) {
        copy_values(operand, operand->piece, operand->values + p * operand->tensor->pixel_stride,
                    count * stride);
        return operand->piece;
    }
    if (operand->whole && operand->have == image && operand->have_size >= count) {
        return operand->piece;
    }
    const size_t channels = (size_t)operand->tensor->dims[1];
    for (size_t i = 0; i < count; i++) {
        const size_t row = (p + i) / width;
        const uint8_t *from = pixel_under(operand, row / height, row % height, (p + i) % width);
        uint8_t *to = operand->piece + i * stride * operand->size;
        if (channels == 1) {
            repeat_value(operand, to, from, stride);
        } else {
            copy_values(operand, to, from, channels);
        }
    }
    operand->have = image;
    operand->have_size = count;
    return operand->piece;
}

// `args` for a kernel of int16, all but the pointers.
static struct n8_add_s16_args of_s16(const struct n8_pointwise_args *args) {
    return (struct n8_add_s16_args){
        .count = args->count,
        .scales = args->scales,
        .a_scale = args->a_scale,
        .b_scale = args->b_scale,
        .slope = args->slope,
        .a_zero_point = args->a_zero_point,
        .b_zero_point = args->b_zero_point,
        .zero_point = args->zero_point,
        .lo = args->lo,
        .hi = args->hi,
    };
}

// A unit is a pixel.
void n8_run_arithmetic(const struct n8_session *session, const struct n8_step *step, size_t begin,
                       size_t end, void *memory) {
    uint8_t *scratch = memory;
    const struct n8_model *model = session->model;
    const struct n8_tensor *out = step->out;
    struct n8_pointwise_args args = {
        .scales = step->row.multiplier != 0 ? step->packed : NULL,
        .a_scale = step->row.scale,
        .b_scale = step->row.residual_scale,
        .slope = step->row.slope,
        .a_zero_point = step->in->zero_point,
        .b_zero_point = n8_input(model, step, 1)->zero_point,
        .zero_point = out->zero_point,
        .lo = step->row.lo,
        .hi = step->row.hi,
    };
    const size_t area = (size_t)out->dims[2] * (size_t)out->dims[3];
    struct operand operands[OPERANDS] = {{.tensor = NULL}};
    size_t most = end - begin; // pixels at once
    bool whole = false;
    const bool s16 = has_s16(model, step);
    const size_t size = s16 ? sizeof(int16_t) : 1; // of a value as the kernel sees it
    const struct kernel kernel = kernel_of(&model->kernels, step, s16);
    for (size_t i = 0; i < OPERANDS; i++) {
        struct operand *operand = &operands[i];
        operand->tensor = n8_input(model, step, i);
        operand->values = n8_in_buffer(session, step, i);
        operand->broadcast = is_broadcast(model, step, i);
        operand->size = size;
        if (is_written_out(model, step, i)) {
            operand->piece = scratch;
            operand->whole = operand->broadcast && operand->tensor->dims[2] == 1 &&
                             operand->tensor->dims[3] == 1;
            operand->have = SIZE_MAX;
            whole = whole || operand->whole;
            scratch += piece_size(out, size);
        }
    }
    int16_t *piece = s16 && out->type != N8_TYPE_S16 ? (void *)scratch : NULL; // of the output
    if (scratch != memory || piece != NULL || args.scales != NULL) {
        most = n8_smaller(most, piece_pixels(out));
    }
    const struct n8_stretch stretch = n8_stretch_of(model, step, most);
    const size_t stride = stretch.count / stretch.pixels;
    for (size_t p = begin; p < end;) {
        size_t pixels = n8_smaller(stretch.pixels, end - p);
        if (whole) {
            pixels = n8_smaller(pixels, area - p % area); // up to the end of the image
        }
        // Operands that lie in the arena are read on and on.
        const size_t calls = scratch == memory ? (end - p) / pixels : 1;
        const uint8_t *values[OPERANDS];
        size_t strides[OPERANDS];
        for (size_t i = 0; i < OPERANDS; i++) {
            strides[i] = pixels * operands[i].tensor->pixel_stride;
            values[i] = operands[i].piece == NULL
                            ? operands[i].values + p * operands[i].tensor->pixel_stride
                            : written_out(&operands[i], out, p, pixels, stride);
        }
        uint8_t *to = n8_out_pixel(session, step, p);
        args.count = pixels * stride;
        struct n8_add_s16_args wide = of_s16(&args);
        for (size_t call = 0; call < calls; call++, p += pixels) {
            if (s16) {
                wide.out = piece == NULL ? (void *)to : piece;
                wide.a = (const void *)values[0];
                wide.b = (const void *)values[1];
                kernel.s16(&wide);
                if (piece != NULL) {
                    n8_narrow(to, piece, args.count, out->type);
                }
            } else {
                args.out = (int8_t *)to;
                args.a = (const int8_t *)values[0];
                args.b = (const int8_t *)values[1];
                kernel.s8(&args);
            }
            to += pixels * out->pixel_stride;
            values[0] += strides[0];
            values[1] += strides[1];
        }
    }
}

// What all of them say of themselves.
#define OPERATOR                                                                                   \
    .types = {N8_TYPE_S8, N8_TYPE_S8}, .inputs = {OPERANDS, OPERANDS}, .s16 = true,                \
    .placing =                                                                                     \
        N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_OVER_SECOND | N8_READS_EXACTLY

const struct n8_operator n8_op_add = {
    OPERATOR,
    .name = "add",
    .fields = N8_FIELD_SCALE | N8_FIELD_RESIDUAL | N8_FIELD_SLOPE | N8_FIELD_CLAMP,
};

const struct n8_operator n8_op_multiply = {
    OPERATOR,
    .name = "multiply",
    .fields = N8_FIELD_SCALE | N8_FIELD_MULTIPLIER | N8_FIELD_SLOPE | N8_FIELD_CLAMP,
};

const struct n8_operator n8_op_divide = {
    OPERATOR,
    .name = "divide",
    .fields = N8_FIELD_SCALE | N8_FIELD_SLOPE | N8_FIELD_CLAMP,
};

const struct n8_operator n8_op_maximum = {
    OPERATOR,
    .name = "maximum",
    .moves = true,
};

const struct n8_operator n8_op_minimum = {
    OPERATOR,
    .name = "minimum",
    .moves = true,
};
