// SPDX-License-Identifier: Apache-2.0
//
// Each pixel a weighted sum of some rows and columns of the input, (17).
#include "ref/epilogue.h"
#include "ref/floats.h"
#include "size.h"
#include "step.h"

enum {
    LINEAR = 2, // taps of what has kernels
    PIECE = N8_PIXEL,
};

static const float MOST_WEIGHT = 65536.0f;

// A row or a column of the input.
struct tap {
    int32_t at;
    float weight;
};

static size_t taps_of(const struct n8_step *step) {
    return (size_t)step->row.groups + 1;
}

static size_t count_of(const struct n8_tensor *out) {
    return (size_t)out->dims[2] + (size_t)out->dims[3];
}

enum n8_status n8_check_resize(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    if (step->in->dims[0] != out->dims[0] || step->in->dims[1] != out->dims[1]) {
        return n8_malformed(reader, "its output has another batch or channels");
    }
    if (out->type == N8_TYPE_F32 && step->row.scale != 1.0f) {
        return n8_malformed(reader, "it is float32 and has a scale");
    }
    if (!n8_in_range(step->row.groups, LINEAR - 1, N8_MOST_TAPS - 1)) {
        return n8_malformed(reader, "it has fewer than 2 taps, or more than 256");
    }
    return N8_OK;
}

// Tap `i` of the file, whose arrays are aligned to nothing: those of rows, then those of columns.
static struct tap tap_at(const struct n8_step *step, size_t i) {
    struct tap tap;
    memcpy(&tap.at, (const uint8_t *)step->arrays[0] + i * sizeof tap.at, sizeof tap.at);
    memcpy(&tap.weight, (const uint8_t *)step->arrays[1] + i * sizeof tap.weight,
           sizeof tap.weight);
    return tap;
}

static bool taps_ok(const struct n8_step *step, size_t begin, size_t end, int32_t size) {
    const bool linear = taps_of(step) == LINEAR;
    const float least = linear ? 0.0f : -MOST_WEIGHT, most = linear ? 1.0f : MOST_WEIGHT;
    for (size_t i = begin; i < end; i++) {
        const struct tap tap = tap_at(step, i);
        if (!n8_in_range(tap.at, 0, size - 1) || !(tap.weight >= least) || !(tap.weight <= most)) {
            return false;
        }
    }
    return true;
}

enum n8_status n8_plan_resize(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    const size_t taps = taps_of(step), height = (size_t)out->dims[2] * taps;
    const size_t count = count_of(out) * taps;
    N8_TRY(n8_read_array(reader, step->row.indices, count, sizeof(int32_t), &step->arrays[0]));
    N8_TRY(n8_read_array(reader, step->row.values, count, sizeof(float), &step->arrays[1]));
    if (!taps_ok(step, 0, height, step->in->dims[2]) ||
        !taps_ok(step, height, count, step->in->dims[3])) {
        return n8_malformed(reader, "an index is outside its input, or a weight is too large");
    }
    if (out->type == N8_TYPE_S8 && out->dims[1] % N8_PIXEL != 0) {
        step->placing = N8_READS_SLICES; // the padding of the channels is written
    }
    if (taps == LINEAR) {
        const struct n8_kernels *kernels = &reader->model->kernels;
        step->kernel_name =
            out->type == N8_TYPE_F32 ? kernels->blend_f32_name : kernels->blend_s8_name;
    }
    step->units = (size_t)out->dims[0] * (size_t)out->dims[2];
    step->packed_size = count * sizeof(struct tap);
    return N8_OK;
}

// The taps as one array, those of rows first.
enum n8_status n8_pack_resize(struct n8_reader *reader, struct n8_step *step, void *memory) {
    struct tap *taps = memory;
    for (size_t i = 0; i < step->packed_size / sizeof *taps; i++) {
        taps[i] = tap_at(step, i);
    }
    return N8_OK;
}

// What run() knows of a row of the output.
struct row {
    const struct n8_session *session;
    const struct n8_step *step;
    const struct tap *rows; // of this one
    size_t first;           // pixel of the image
};

static const void *pixel_of(const struct row *row, size_t tap, const struct tap *column) {
    const struct n8_tensor *in = row->step->in;
    const size_t first = row->first + (size_t)row->rows[tap].at * (size_t)in->dims[3];
    return n8_in_pixel(row->session, row->step, 0, first + (size_t)column->at);
}

// Channels [begin, begin + count) of one pixel, of which `to` is the first. Adds from tap to tap,
// where one that weighs nothing counts only among the first two.
static void sum(const struct row *row, const struct tap *columns, void *to, size_t begin,
                size_t count) {
    const struct n8_tensor *in = row->step->in, *out = row->step->out;
    const size_t taps = taps_of(row->step);
    float total[PIECE] = {0}, across[PIECE] = {0};
    for (size_t r = 0; r < taps; r++) {
        const float below = row->rows[r].weight;
        if (r > 1 && below == 0.0f) {
            continue;
        }
        for (size_t c = 0; c < taps; c++) {
            const float weight = columns[c].weight;
            if (c > 1 && weight == 0.0f) {
                continue;
            }
            const void *from = pixel_of(row, r, &columns[c]);
            for (size_t i = 0; i < count; i++) {
                const float v = in->type == N8_TYPE_F32
                                    ? ((const float *)from)[begin + i]
                                    : (float)(((const int8_t *)from)[begin + i] - in->zero_point);
                across[i] = c == 0 ? v * weight : across[i] + v * weight;
            }
        }
        for (size_t i = 0; i < count; i++) {
            total[i] = r == 0 ? across[i] * below : total[i] + across[i] * below;
        }
    }
    const struct n8_bounds limits = n8_bounds_of(out->zero_point, out->lo, out->hi);
    for (size_t i = 0; i < count; i++) {
        if (out->type == N8_TYPE_F32) {
            ((float *)to)[begin + i] = n8_one_nan(total[i]);
        } else {
            ((int8_t *)to)[begin + i] = n8_round_s8(total[i] * row->step->row.scale, limits);
        }
    }
}

// A unit is a row of the output.
void n8_run_resize(const struct n8_session *session, const struct n8_step *step, size_t begin,
                   size_t end, void *scratch) {
    const struct n8_tensor *in = step->in, *out = step->out;
    const size_t height = (size_t)out->dims[2], width = (size_t)out->dims[3];
    const size_t taps = taps_of(step);
    const struct tap *rows = step->packed, *columns = rows + height * taps;
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
        const struct row row = {session, step, rows + unit % height * taps,
                                unit / height * (size_t)(in->dims[2] * in->dims[3])};
        for (size_t x = 0; x < width; x++) {
            const struct tap *column = columns + x * taps;
            uint8_t *to = n8_out_pixel(session, step, unit * width + x);
            for (size_t done = 0; taps > LINEAR && done < channels; done += PIECE) {
                const size_t rest = channels - done;
                sum(&row, column, to, done, n8_smaller(rest, PIECE));
            }
            if (taps > LINEAR) {
                continue;
            }
            for (size_t i = 0; i < 4; i++) {
                four[i] = pixel_of(&row, i / 2, &column[i % 2]);
            }
            args.left = column[0].weight;
            args.right = column[1].weight;
            args.upper = row.rows[0].weight;
            args.lower = row.rows[1].weight;
            args.out = to;
            kernel(&args);
        }
    }
}

const struct n8_operator n8_op_resize = {
    .name = "resize",
    .inputs = {1, 1},
    .fields = N8_FIELD_SCALE | N8_FIELD_GROUPS | N8_FIELD_INDICES | N8_FIELD_VALUES,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
};
