// SPDX-License-Identifier: Apache-2.0
//
// Each pixel between two rows and two columns of the input, (17).
#include "size.h"
#include "step.h"

#include <string.h>

// Two rows or columns of the input, and their weights.
struct pair {
    int32_t at[2];
    float weight[2];
};

static size_t count_of(const struct n8_tensor *out) {
    return (size_t)out->dims[2] + (size_t)out->dims[3];
}

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (in->dims[0] != out->dims[0] || in->dims[1] != out->dims[1]) {
        return n8_malformed(reader, "its output has another batch or channels");
    }
    if (out->type == N8_TYPE_F32 && step->row.scale != 1.0f) {
        return n8_malformed(reader, "it is float32 and has a scale");
    }
    return N8_OK;
}

// The arrays of the file, aligned to nothing, as pairs: those of rows, then those of columns.
struct arrays {
    const uint8_t *indices, *values;
};

static struct pair pair_at(const struct arrays *arrays, size_t i) {
    struct pair pair;
    memcpy(pair.at, arrays->indices + i * sizeof pair.at, sizeof pair.at);
    memcpy(pair.weight, arrays->values + i * sizeof pair.weight, sizeof pair.weight);
    return pair;
}

static bool pairs_ok(const struct arrays *arrays, size_t begin, size_t end, int32_t size) {
    for (size_t i = begin; i < end; i++) {
        const struct pair pair = pair_at(arrays, i);
        for (int side = 0; side < 2; side++) {
            if (!n8_in_range(pair.at[side], 0, size - 1) || !(pair.weight[side] >= 0.0f) ||
                !(pair.weight[side] <= 1.0f)) {
                return false;
            }
        }
    }
    return true;
}

static struct arrays arrays_of(const struct n8_step *step) {
    return (struct arrays){step->arrays[0], step->arrays[1]};
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    const size_t count = count_of(out);
    N8_TRY(n8_read_array(reader, step->row.indices, count, 2 * sizeof(int32_t), &step->arrays[0]));
    N8_TRY(n8_read_array(reader, step->row.values, count, 2 * sizeof(float), &step->arrays[1]));
    const struct arrays arrays = arrays_of(step);
    const size_t height = (size_t)out->dims[2];
    if (!pairs_ok(&arrays, 0, height, in->dims[2]) ||
        !pairs_ok(&arrays, height, count, in->dims[3])) {
        return n8_malformed(reader, "an index is outside its input, or a weight outside 0 .. 1");
    }
    const struct n8_kernels *kernels = &reader->model->kernels;
    step->kernel_name = out->type == N8_TYPE_F32 ? kernels->blend_f32_name : kernels->blend_s8_name;
    step->units = (size_t)out->dims[0] * height;
    step->packed_size = count * sizeof(struct pair);
    return N8_OK;
}

// The pairs as one array, rows first.
static enum n8_status pack(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const struct arrays arrays = arrays_of(step);
    struct pair *pairs = memory;
    for (size_t i = 0; i < count_of(n8_output(reader->model, step)); i++) {
        pairs[i] = pair_at(&arrays, i);
    }
    return N8_OK;
}

// A unit is a row of the output.
static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const struct n8_tensor *out = n8_output(session->model, step);
    const size_t height = (size_t)out->dims[2], width = (size_t)out->dims[3];
    const struct pair *rows = step->packed, *columns = rows + height;
    const struct n8_kernels *kernels = &session->model->kernels;
    n8_blend_fn *kernel = out->type == N8_TYPE_F32 ? kernels->blend_f32 : kernels->blend_s8;
    const size_t channels = (size_t)out->dims[1];
    const void *four[4];
    struct n8_blend_args args = {
        .in = four,
        .channels = out->type == N8_TYPE_F32 ? channels : n8_round_up(channels, N8_PIXEL),
        .scale = step->row.scale,
        .in_zero_point = in->zero_point,
        .zero_point = out->zero_point,
        .lo = out->lo,
        .hi = out->hi,
    };
    for (size_t unit = begin; unit < end; unit++) {
        const struct pair *row = &rows[unit % height];
        const size_t image = unit / height * (size_t)in->dims[2];
        args.upper = row->weight[0];
        args.lower = row->weight[1];
        for (size_t x = 0; x < width; x++) {
            const struct pair *column = &columns[x];
            for (int i = 0; i < 4; i++) {
                const size_t first = (image + (size_t)row->at[i / 2]) * (size_t)in->dims[3];
                four[i] = n8_in_pixel(session, step, 0, first + (size_t)column->at[i % 2]);
            }
            args.left = column->weight[0];
            args.right = column->weight[1];
            args.out = n8_out_pixel(session, step, unit * width + x);
            kernel(&args);
        }
    }
}

const struct n8_operator n8_op_resize_linear = {
    .name = "resize_linear",
    .inputs = {1, 1},
    .fields = N8_FIELD_SCALE | N8_FIELD_INDICES | N8_FIELD_VALUES,
    .check = check,
    .plan = plan,
    .pack = pack,
    .run = run,
};
