// SPDX-License-Identifier: Apache-2.0
//
// Values taken from, and put to, places that a tensor of integers names, (37).
#include "ref/floats.h"
#include "size.h"
#include "step.h"

#include <string.h>

enum { MOST_PARTS = 8 };

// As the file has it. A tensor of values is `outer` blocks of rows of `inner` values. An index of
// `parts` numbers names one of the rows of a block of the tensor with places, each number one along
// an axis.
struct places {
    int32_t outer, count, inner; // count: indices, of a block if `by_outer`
    int32_t by_outer,
        by_inner; // whether blocks, and the values of a row, have indices of their own
    int32_t parts, sizes[MOST_PARTS];
};

static size_t rows_of(const struct places *places) {
    size_t rows = 1;
    for (size_t i = 0; i < MOST_PARTS; i++) {
        rows = n8_mul(rows, (size_t)places->sizes[i]);
    }
    return rows;
}

// Rows are pixels, or, where they are of one value, the channels of pixels that are blocks.
static bool lies(const struct n8_tensor *tensor, int32_t outer, size_t rows, int32_t inner) {
    const size_t channels = inner == 1 ? rows : (size_t)inner;
    return n8_value_count(tensor) == n8_mul(n8_mul((size_t)outer, rows), (size_t)inner) &&
           (size_t)tensor->dims[1] == channels;
}

enum n8_status n8_plan_indexed(struct n8_reader *reader, struct n8_step *step) {
    struct n8_model *model = reader->model;
    struct places places;
    N8_TRY(n8_read_array(reader, step->row.indices, 1, sizeof places, &step->arrays[0]));
    memcpy(&places, step->arrays[0], sizeof places);
    bool fits = n8_in_range(places.by_outer, 0, 1) && n8_in_range(places.by_inner, 0, 1) &&
                n8_in_range(places.parts, 1, places.by_inner ? 1 : MOST_PARTS) &&
                places.outer > 0 && places.count > 0 && places.inner > 0;
    for (int32_t i = 0; i < MOST_PARTS; i++) {
        fits = fits && places.sizes[i] > 0 && (i < places.parts || places.sizes[i] == 1);
    }
    if (!fits) {
        return n8_malformed(reader, "its blocks, rows or indices are outside their limits");
    }
    const bool puts = step->row.input_count == 3;
    const size_t count = (size_t)places.count;
    fits = lies(step->in, places.outer, rows_of(&places), places.inner) &&
           lies(n8_input(model, step, 1), places.by_outer ? places.outer : 1,
                n8_mul(count, (size_t)places.parts), places.by_inner ? places.inner : 1);
    const struct n8_tensor *out = step->out;
    if (puts) {
        fits = fits && lies(n8_input(model, step, 2), places.outer, count, places.inner) &&
               memcmp(step->in->dims, out->dims, sizeof out->dims) == 0;
    } else {
        fits = fits && lies(out, places.outer, count, places.inner);
    }
    if (!fits) {
        return n8_malformed(reader, "its blocks, rows and indices are not those of its tensors");
    }
    step->kernel_name = "copy";
    step->units = puts ? (size_t)places.outer : n8_mul((size_t)places.outer, count);
    step->packed_size = sizeof places;
    return N8_OK;
}

// The row that an index names. A negative number counts from the end; one that is outside is the
// nearest that is not.
static size_t row_of(const struct places *places, const int32_t *index) {
    size_t row = 0;
    for (int32_t i = 0; i < places->parts; i++) {
        const int32_t size = places->sizes[i];
        int32_t at = index[i] < 0 ? (index[i] < -size ? 0 : index[i] + size) : index[i];
        at = at < size ? at : size - 1;
        row = row * (size_t)size + (size_t)at;
    }
    return row;
}

// What moves values keeps their scale.
enum n8_status n8_check_take(struct n8_reader *reader, const struct n8_step *step) {
    return n8_check_moved(reader, step->in, step->out);
}

enum n8_status n8_check_put(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    const bool quantized = out->type != N8_TYPE_F32 && out->type != N8_TYPE_S32;
    const uint32_t function = step->row.function;
    const bool moves = function == N8_FUNCTION_NONE || function == N8_FUNCTION_MINIMUM ||
                       function == N8_FUNCTION_MAXIMUM;
    const bool computes = function == N8_FUNCTION_ADD || function == N8_FUNCTION_MULTIPLY;
    if (!moves && (!computes || quantized)) {
        return n8_malformed(reader, "its function is none that it has for its type");
    }
    N8_TRY(n8_check_moved(reader, n8_input(reader->model, step, 2), out));
    return n8_check_take(reader, step);
}

// A tensor as blocks of rows.
struct blocks {
    uint8_t *at;
    size_t block, row; // bytes from one to the next
};

static struct blocks blocks_of(uint8_t *at, const struct n8_tensor *tensor, size_t rows,
                               int32_t inner) {
    const size_t pixel = tensor->pixel_stride;
    return inner == 1 ? (struct blocks){at, pixel, n8_value_size(tensor)}
                      : (struct blocks){at, n8_mul(rows, pixel), pixel};
}

static uint8_t *row_at(const struct blocks *blocks, size_t block, size_t row) {
    return blocks->at + block * blocks->block + row * blocks->row;
}

// What both steps run over.
struct work {
    const struct places *places;
    struct blocks values, indices, others; // others: what is taken, or what is put
    size_t size;                           // bytes of a value
    size_t run;                            // values that share an index
};

static struct work work_of(const struct n8_session *session, const struct n8_step *step) {
    const struct n8_model *model = session->model;
    const struct places *places = step->packed;
    const bool puts = step->row.input_count == 3;
    const uint32_t values = puts ? step->row.output : step->inputs[0];
    const uint32_t others = puts ? step->inputs[2] : step->row.output;
    const size_t count = (size_t)places->count;
    struct work work = {
        .places = places,
        .values = blocks_of(n8_buffer(session, values), &model->tensors[values], rows_of(places),
                            places->inner),
        .indices = blocks_of(n8_in_buffer(session, step, 1), n8_input(model, step, 1), count,
                             places->by_inner ? places->inner : 1),
        .others =
            blocks_of(n8_buffer(session, others), &model->tensors[others], count, places->inner),
        .size = n8_value_size(step->out),
        .run = places->by_inner ? 1 : (size_t)places->inner,
    };
    work.indices.row *= places->by_inner && places->inner > 1 ? 1 : (size_t)places->parts;
    return work;
}

static const int32_t *index_at(const struct work *work, size_t block, size_t count) {
    return (const int32_t *)row_at(&work->indices, work->places->by_outer ? block : 0, count);
}

// A unit is a row of the output.
void n8_run_take(const struct n8_session *session, const struct n8_step *step, size_t begin,
                 size_t end, void *scratch) {
    const struct work work = work_of(session, step);
    const size_t count = (size_t)work.places->count;
    for (size_t unit = begin; unit < end; unit++) {
        const size_t block = unit / count;
        const int32_t *index = index_at(&work, block, unit % count);
        uint8_t *to = row_at(&work.others, block, unit % count);
        for (size_t i = 0; i < (size_t)work.places->inner; i += work.run) {
            const uint8_t *from = row_at(&work.values, block, row_of(work.places, index + i));
            memcpy(to + i * work.size, from + i * work.size, work.run * work.size);
        }
    }
}

static int32_t integer_at(const uint8_t *at, enum n8_type type) {
    return type == N8_TYPE_S8    ? *(const int8_t *)at
           : type == N8_TYPE_S16 ? *(const int16_t *)at
                                 : *(const int32_t *)at;
}

// Whether `from` replaces `to`. Floats of which both are 0, or one is NaN: as (22).
static bool takes(const uint8_t *to, const uint8_t *from, enum n8_type type, bool larger) {
    if (type != N8_TYPE_F32) {
        const int32_t a = integer_at(to, type), b = integer_at(from, type);
        return larger ? !(a > b) : !(a < b);
    }
    const float a = *(const float *)to, b = *(const float *)from;
    return a == a && (larger ? !(a > b) : !(a < b));
}

static void accumulate(uint8_t *to, const uint8_t *from, enum n8_type type, bool product) {
    if (type == N8_TYPE_F32) {
        float *sum = (float *)to;
        const float with = *(const float *)from;
        *sum = n8_one_nan(product ? *sum * with : *sum + with);
    } else { // modulo 2^32
        uint32_t *sum = (uint32_t *)to;
        const uint32_t with = *(const uint32_t *)from;
        *sum = product ? *sum * with : *sum + with;
    }
}

static void put(const struct work *work, const struct n8_step *step, enum n8_type type, uint8_t *to,
                const uint8_t *from) {
    const uint32_t function = step->row.function;
    if (function == N8_FUNCTION_NONE) {
        memcpy(to, from, work->run * work->size);
        return;
    }
    for (size_t i = 0; i < work->run; i++, to += work->size, from += work->size) {
        if (function == N8_FUNCTION_ADD || function == N8_FUNCTION_MULTIPLY) {
            accumulate(to, from, type, function == N8_FUNCTION_MULTIPLY);
        } else if (takes(to, from, type, function == N8_FUNCTION_MAXIMUM)) {
            memcpy(to, from, work->size);
        }
    }
}

// A unit is a block: what is put twice to one place is put in order.
void n8_run_put(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    const struct work work = work_of(session, step);
    const struct places *places = work.places;
    const struct n8_tensor *in = step->in;
    const uint8_t *given = n8_in_buffer(session, step, 0);
    const size_t count = (size_t)places->count;
    const size_t pixels = in->pixels / (size_t)places->outer;
    for (size_t block = begin; block < end; block++) {
        for (size_t p = 0; given != work.values.at && p < pixels; p++) {
            memcpy(n8_out_pixel(session, step, block * pixels + p),
                   n8_in_pixel(session, step, 0, block * pixels + p),
                   (size_t)in->dims[1] * work.size);
        }
        for (size_t k = 0; k < count; k++) {
            const int32_t *index = index_at(&work, block, k);
            const uint8_t *from = row_at(&work.others, block, k);
            for (size_t i = 0; i < (size_t)places->inner; i += work.run) {
                uint8_t *to = row_at(&work.values, block, row_of(places, index + i));
                put(&work, step, in->type, to + i * work.size, from + i * work.size);
            }
        }
    }
}

#define INDEXED(symbol, count, more_fields, over)                                                  \
    const struct n8_operator n8_op_##symbol = {                                                    \
        .name = #symbol,                                                                           \
        .inputs = {count, count},                                                                  \
        .fields = N8_FIELD_INDICES | (more_fields),                                                \
        .moves = true,                                                                             \
        .s16 = true,                                                                               \
        .s32 = true,                                                                               \
        .s32_inputs = 2,                                                                           \
        .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_READS_EXACTLY | (over),                 \
    }

INDEXED(take, 2, 0, 0);
INDEXED(put, 3, N8_FIELD_FUNCTION, N8_OVER_FIRST);
