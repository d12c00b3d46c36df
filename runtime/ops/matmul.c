// SPDX-License-Identifier: Apache-2.0
//
// The product of two tensors, (29). It is a 1x1 convolution whose weights are the second operand:
// they are packed anew in each run, for each matrix, and the kernels are those of convolutions.
#include "step.h"

#include "conv/algorithm.h"
#include "move/planes.h"
#include "size.h"

enum {
    BATCHES = 6,         // axes of whole matrices, and after them
    OUTER = BATCHES,     // rows of the first operand and the output, depth of the second
    INNER = BATCHES + 1, // depth of the first operand, columns of the others
    AXES = BATCHES + 2,  // of a view
    LEAST_LEVEL = -127,  // of the second operand; what is below is that
    LEAST_DEPTH = 2,     // a single input channel would be depthwise, whose order is another
    ENOUGH_UNITS = 16,   // for some threads to finish at the same time
    LEAST_ROWS = 64,     // of a unit, which packs a matrix for itself
    MANY = 64,           // values that are bounded, or summed in 16 bits, at once
    FEW = 16,
    FIRST = 0,
    SECOND = 1,
    OUT = 2,
};

// Which pixel and channel of a tensor a value is: the first one, and how far the next one along
// each axis is.
struct view {
    int32_t pixel, channel;
    struct {
        int32_t pixels, channels;
    } steps[AXES];
};

// `indices` of the file: sizes of the batches, rows, columns, depth; where the values are.
struct product {
    int32_t batches[BATCHES], rows, columns, depth;
    struct view views[3];
};

static int32_t size_of(const struct product *product, size_t view, size_t axis) {
    return axis < BATCHES  ? product->batches[axis]
           : axis == OUTER ? (view == SECOND ? product->depth : product->rows)
                           : (view == FIRST ? product->depth : product->columns);
}

// Whether all that a view names lies in a tensor.
static bool is_inside(const struct product *product, size_t number, const struct n8_tensor *t) {
    const struct view *view = &product->views[number];
    if (view->pixel < 0 || view->channel < 0) {
        return false;
    }
    uint64_t pixel = (uint64_t)view->pixel, channel = (uint64_t)view->channel;
    for (size_t axis = 0; axis < AXES; axis++) {
        const int32_t pixels = view->steps[axis].pixels, channels = view->steps[axis].channels;
        if (pixels < 0 || channels < 0) {
            return false;
        }
        const uint64_t last = (uint64_t)size_of(product, number, axis) - 1;
        pixel += last * (uint64_t)pixels;
        channel += last * (uint64_t)channels;
    }
    return pixel < t->pixels && channel < (uint64_t)t->dims[1];
}

// Whether a view of the output names each value once: along pixels and along channels, each axis
// steps over all that those before it have filled.
static bool is_whole(const struct product *product, const struct n8_tensor *out) {
    const struct view *view = &product->views[OUT];
    uint64_t pixels = 1, channels = 1;
    bool used[AXES] = {false};
    for (size_t i = 0; i < AXES; i++) {
        for (size_t axis = 0; axis < AXES; axis++) {
            const uint64_t size = (uint64_t)size_of(product, OUT, axis);
            const uint64_t along = (uint64_t)view->steps[axis].pixels;
            const uint64_t across = (uint64_t)view->steps[axis].channels;
            if (used[axis] || size == 1) {
                used[axis] = true;
            } else if (along == pixels && across == 0) {
                used[axis] = true;
                pixels *= size; // each is within the tensor, so that nothing overflows
            } else if (along == 0 && across == channels) {
                used[axis] = true;
                channels *= size;
            }
        }
    }
    bool all = pixels == out->pixels && channels == (uint64_t)out->dims[1];
    for (size_t axis = 0; axis < AXES; axis++) {
        all = all && used[axis];
    }
    return all;
}

// Whether neighbours along the last axis of a view are neighbouring channels.
static bool is_along_channels(const struct product *product, size_t view) {
    return size_of(product, view, INNER) == 1 || (product->views[view].steps[INNER].pixels == 0 &&
                                                  product->views[view].steps[INNER].channels == 1);
}

static N8_ONCE enum n8_status check_product(struct n8_reader *reader, const struct n8_step *step,
                                            const struct product *product) {
    const int32_t *sizes = product->batches;
    for (size_t i = 0; i < BATCHES + 3; i++) {
        if (!n8_in_range(sizes[i], 1, N8_FORMAT_MAX_DIM)) {
            return n8_malformed(reader, "a size of its matrices is outside 1 .. 2^20");
        }
    }
    // |a b| <= 128 * 127, and the zero point as much again.
    if ((int64_t)product->depth * 127 * 256 > INT32_MAX) {
        return n8_malformed(reader, "it adds up more products than int32 was proved to hold");
    }
    if (!is_inside(product, FIRST, step->in) ||
        !is_inside(product, SECOND, n8_input(reader->model, step, 1)) ||
        !is_inside(product, OUT, step->out)) {
        return n8_malformed(reader, "its matrices reach beyond a tensor");
    }
    if (!is_whole(product, step->out)) {
        return n8_malformed(reader, "its matrices are not each value of its output once");
    }
    if (!is_along_channels(product, FIRST) || !is_along_channels(product, OUT)) {
        return n8_malformed(reader, "a row of its first operand or output is not of channels");
    }
    return N8_OK;
}

enum n8_status n8_check_matmul(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *second = n8_input(reader->model, step, 1);
    if (step->in->type != N8_TYPE_S8 || second->type != N8_TYPE_S8) {
        return n8_malformed(reader, "an operand of a matrix product is not int8");
    }
    if (second->zero_point != 0) {
        return n8_malformed(reader, "its second operand has a zero point");
    }
    if (step->out->type == N8_TYPE_F32 && (step->row.lo != -128 || step->row.hi != 127)) {
        return n8_malformed(reader, "it makes float32 and has a clamp");
    }
    return N8_OK;
}

// Parts of a thread's scratch memory, by where they begin.
struct parts {
    size_t packed, matrix, bias, multiplier, bias_f32, all;
};

static struct parts parts_of(const struct n8_conv *conv) {
    const size_t columns = (size_t)conv->shape.out_channels;
    const size_t array = n8_round_up(n8_mul(columns, sizeof(int32_t)), N8_CONV_ALIGN);
    const size_t depth = (size_t)conv->shape.in_channels;
    struct parts parts;
    parts.packed = n8_round_up(conv->scratch_size, N8_CONV_ALIGN);
    parts.matrix = n8_add(parts.packed, conv->packed_size);
    parts.bias = n8_add(parts.matrix, n8_round_up(n8_mul(columns, depth), N8_CONV_ALIGN));
    parts.multiplier = n8_add(parts.bias, array);
    parts.bias_f32 = n8_add(parts.multiplier, array);
    parts.all = n8_add(parts.bias_f32, array);
    return parts;
}

static size_t matrices_of(const struct product *product) {
    size_t count = 1;
    for (size_t i = 0; i < BATCHES; i++) {
        count *= (size_t)product->batches[i]; // the output has as many values or more
    }
    return count;
}

// Units of a matrix: a matrix is packed for each.
static size_t pieces_of(const struct n8_conv *conv, size_t matrices) {
    const size_t most = n8_pieces((size_t)conv->shape.out_height, LEAST_ROWS);
    const size_t wanted = n8_pieces(ENOUGH_UNITS, matrices);
    const size_t pieces = wanted < most ? wanted : most;
    return pieces < conv->units ? pieces : conv->units;
}

enum n8_status n8_plan_matmul(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *first = step->in;
    const struct n8_tensor *out = step->out;
    struct product product;
    N8_TRY(n8_read_array(reader, step->row.indices, 1, sizeof product, &step->arrays[0]));
    memcpy(&product, step->arrays[0], sizeof product);
    N8_TRY(check_product(reader, step, &product));
    const int32_t depth = product.depth < LEAST_DEPTH ? LEAST_DEPTH : product.depth;
    struct n8_conv2d_shape shape = n8_matrix_shape(product.rows, depth, product.columns);
    shape.in_lo = first->value_lo;
    shape.in_hi = first->value_hi;
    static const float one = 1.0f; // which stands for arrays of scratch memory
    const struct n8_conv2d_epilogue epilogue = {
        .type = out->type,
        .multiplier = &one,
        .zero_point = out->type == N8_TYPE_F32 ? 0 : out->zero_point,
        .lo = step->row.lo,
        .hi = step->row.hi,
    };
    const struct n8_conv_input input = {
        .zero_point = first->zero_point, .type = N8_TYPE_S8, .residual = N8_TYPE_S8, .reach = 128};
    const struct n8_conv_certificate certificate = {
        .int16_depth = 2, .acc_bound = (uint64_t)product.depth * 127 * 256};
    N8_TRY(n8_conv_plan(&step->conv, &shape, &input, &epilogue, &certificate,
                        &reader->model->kernels));
    step->conv.passing = true;
    const float reach = (float)certificate.acc_bound * step->row.scale;
    step->proof.small = n8_small(certificate.acc_bound, (double)reach);
    const size_t matrices = matrices_of(&product);
    step->kernel_name = step->conv.kernel_name;
    step->units = n8_mul(matrices, pieces_of(&step->conv, matrices));
    step->scratch_size = parts_of(&step->conv).all;
    step->packed_size = n8_round_up(sizeof product, N8_ALIGN);
    step->macs = (uint64_t)n8_value_count(out) * (uint64_t)product.depth;
    return step->scratch_size == SIZE_MAX ? N8_E_ADDRESS : N8_OK;
}

enum n8_status n8_pack_matmul(struct n8_reader *reader, struct n8_step *step, void *memory) {
    (void)reader;
    memcpy(memory, step->arrays[0], sizeof(struct product));
    return N8_OK;
}

// The bytes from the first value of matrix `number` of a view to the beginning of the tensor.
static ptrdiff_t matrix_at(const struct product *product, size_t view, size_t number,
                           const struct n8_tensor *t) {
    const struct view *v = &product->views[view];
    size_t pixel = (size_t)v->pixel, channel = (size_t)v->channel;
    for (size_t axis = BATCHES; axis-- > 0;) {
        const size_t size = (size_t)product->batches[axis];
        pixel += number % size * (size_t)v->steps[axis].pixels;
        channel += number % size * (size_t)v->steps[axis].channels;
        number /= size;
    }
    return (ptrdiff_t)(pixel * t->pixel_stride + channel * n8_value_size(t));
}

// Bytes from one value to the next along an axis.
static ptrdiff_t stride_of(const struct product *product, size_t view, size_t axis,
                           const struct n8_tensor *t) {
    const struct view *v = &product->views[view];
    return (ptrdiff_t)((size_t)v->steps[axis].pixels * t->pixel_stride +
                       (size_t)v->steps[axis].channels * n8_value_size(t));
}

// The second operand with its columns as rows of `depth` bytes, as weights are.
static void copy_matrix(const struct n8_kernels *kernels, const struct product *product,
                        const struct n8_tensor *t, const int8_t *from, int8_t *to, size_t depth) {
    const size_t columns = (size_t)product->columns, used = (size_t)product->depth;
    const ptrdiff_t down = stride_of(product, SECOND, OUTER, t);
    const ptrdiff_t across = stride_of(product, SECOND, INNER, t);
    if (across == 1 && down >= N8_PIXEL && depth == used) {
        n8_deinterleave(kernels, (uint8_t *)to, depth, (const uint8_t *)from, (size_t)down, columns,
                        used, 1);
        return;
    }
    for (size_t n = 0; n < columns; n++, from += across, to += depth) {
        to[depth - 1] = 0; // unless it is used
        if (down == 1) {
            memcpy(to, from, used);
            continue;
        }
        for (size_t k = 0; k < used; k++) {
            to[k] = from[(ptrdiff_t)k * down];
        }
    }
}

// Counts are constants wherever these are called, for vectors.
static inline __attribute__((always_inline)) void bound(int8_t *values, size_t count) {
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++) {
        values[i] = values[i] < LEAST_LEVEL ? LEAST_LEVEL : values[i];
    }
}

static inline __attribute__((always_inline)) int32_t sum_of(const int8_t *values, size_t count) {
    int16_t sum = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++) {
        sum = (int16_t)(sum + values[i]);
    }
    return sum;
}

// Bounds all values of a matrix from below.
static void bound_matrix(int8_t *values, size_t count) {
    for (; count >= MANY; count -= MANY, values += MANY) {
        bound(values, MANY);
    }
    for (; count > 0; count--, values++) {
        bound(values, 1);
    }
}

static int32_t sum_column(const int8_t *values, size_t depth) {
    int32_t sum = 0;
    for (; depth >= MANY; depth -= MANY, values += MANY) {
        sum += sum_of(values, MANY);
    }
    for (; depth >= FEW; depth -= FEW, values += FEW) {
        sum += sum_of(values, FEW);
    }
    for (; depth > 0; depth--, values++) {
        sum += *values;
    }
    return sum;
}

// Packs matrix `number` of the second operand over the one before, with bias and multipliers, as
// weights of `conv`.
static void pack_matrix(const struct n8_session *session, const struct n8_step *step,
                        struct n8_conv *conv, size_t number, uint8_t *scratch) {
    const struct product *product = step->packed;
    const struct n8_tensor *second = n8_input(session->model, step, 1);
    const struct parts parts = parts_of(conv);
    const size_t depth = (size_t)conv->shape.in_channels;
    int8_t *matrix = (int8_t *)scratch + parts.matrix;
    int32_t *bias = (int32_t *)(void *)(scratch + parts.bias);
    float *multiplier = (float *)(void *)(scratch + parts.multiplier);
    float *bias_f32 = (float *)(void *)(scratch + parts.bias_f32);
    const int8_t *from = n8_in_buffer(session, step, 1);
    copy_matrix(&session->model->kernels, product, second,
                from + matrix_at(product, SECOND, number, second), matrix, depth);
    const size_t columns = (size_t)product->columns;
    if (second->value_lo < LEAST_LEVEL) {
        bound_matrix(matrix, columns * depth);
    }
    for (size_t n = 0; n < columns; n++) {
        const int32_t zero_point = conv->in_zero_point;
        bias[n] = zero_point == 0 ? 0 : -zero_point * sum_column(matrix + n * depth, depth);
        multiplier[n] = step->row.scale;
        bias_f32[n] = 0.0f;
    }
    conv->epilogue.bias = bias;
    conv->epilogue.multiplier = multiplier;
    conv->epilogue.bias_f32 = bias_f32;
    n8_conv_pack(conv, matrix, &step->proof, scratch + parts.packed);
}

// A unit is some rows of a matrix.
void n8_run_matmul(const struct n8_session *session, const struct n8_step *step, size_t begin,
                   size_t end, void *scratch) {
    const struct product *product = step->packed;
    const struct n8_tensor *first = step->in;
    const size_t pieces = step->units / matrices_of(product);
    struct n8_conv conv;
    size_t packed = SIZE_MAX;
    memset((uint8_t *)scratch + parts_of(&step->conv).packed, 0, step->conv.packed_size);
    for (size_t unit = begin; unit < end; unit++) {
        const size_t number = unit / pieces, piece = unit % pieces;
        if (number != packed) {
            conv = step->conv;
            pack_matrix(session, step, &conv, number, scratch);
            packed = number;
        }
        const struct n8_conv_io io = {
            .out = (uint8_t *)n8_out_buffer(session, step) +
                   matrix_at(product, OUT, number, step->out),
            .out_stride = stride_of(product, OUT, OUTER, step->out),
            .in = (const int8_t *)n8_in_buffer(session, step, 0) +
                  matrix_at(product, FIRST, number, first),
            .in_stride = stride_of(product, FIRST, OUTER, first),
        };
        n8_conv_run(&conv, &io, conv.units * piece / pieces, conv.units * (piece + 1) / pieces,
                    scratch);
    }
}

const struct n8_operator n8_op_matmul = {
    .name = "matmul",
    .types = {N8_TYPE_S8, 0},
    .s16 = true,
    .inputs = {2, 2},
    .fields = N8_FIELD_CLAMP | N8_FIELD_SCALE | N8_FIELD_INDICES,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
};
