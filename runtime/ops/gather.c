// SPDX-License-Identifier: Apache-2.0
//
// Moves values: for each axis of the output a list says where in the input they are, or that a
// constant stands there. Where lists count upwards, which most do, whole runs are copied.
#include "step.h"

#include <math.h>
#include <string.h>

enum { NONE = -1 }; // the index of what is not in the input

// An entry of a list: an index, and how many entries from here on count upwards.
struct entry {
    int32_t at, run;
};

// The lists, one after another, N C H W.
struct lists {
    bool pixels;    // all channels are taken as they are
    bool scattered; // runs of channels are so short that they are not worth a call
    struct entry entries[];
};

static size_t count_of(const struct n8_tensor *out) {
    return (size_t)out->dims[0] + (size_t)out->dims[1] + (size_t)out->dims[2] +
           (size_t)out->dims[3];
}

enum n8_status n8_check_gather(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    const float fill = step->row.fill;
    const bool s32 = out->type == N8_TYPE_S32;
    const float lo = s32 ? -0x1p24f : (float)out->lo, hi = s32 ? 0x1p24f : (float)out->hi;
    if (out->type == N8_TYPE_F32 ? isnan(fill)
                                 : !(fill >= lo && fill <= hi) || fill != (float)(int32_t)fill) {
        return n8_malformed(reader, "its fill is no value of its output");
    }
    return n8_check_moved(reader, step->in, out);
}

enum n8_status n8_plan_gather(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    N8_TRY(
        n8_read_array(reader, step->row.indices, count_of(out), sizeof(int32_t), &step->arrays[0]));
    const uint8_t *next = step->arrays[0]; // aligned to nothing
    for (int axis = 0; axis < 4; axis++) {
        for (int32_t i = 0; i < out->dims[axis]; i++, next += sizeof(int32_t)) {
            int32_t at;
            memcpy(&at, next, sizeof at);
            if (!n8_in_range(at, NONE, step->in->dims[axis] - 1)) {
                return n8_malformed(reader, "an index is outside its input");
            }
        }
    }
    step->kernel_name = "copy";
    step->units = (size_t)out->dims[0] * (size_t)out->dims[2];
    step->packed_size = sizeof(struct lists) + count_of(out) * sizeof(struct entry);
    return N8_OK;
}

// The first of `count` neighbours that a list takes, or NONE. Moves on to the next list.
static int32_t first_of(const uint8_t **list, int32_t count) {
    int32_t first;
    memcpy(&first, *list, sizeof first);
    for (int32_t i = 0; i < count; i++, *list += sizeof(int32_t)) {
        int32_t at;
        memcpy(&at, *list, sizeof at);
        if (first != NONE && at != first + i) {
            first = NONE;
        }
    }
    return first;
}

// Some channels of neighbouring pixels, as of a split: whole rows, and of several images all.
bool n8_view_gather(const struct n8_model *model, const struct n8_step *step, size_t *pixel,
                    size_t *byte) {
    const struct n8_tensor *in = step->in, *out = step->out;
    const uint8_t *list = step->arrays[0]; // of the file: nothing is packed yet
    int32_t first[4];
    bool neighbours = true;
    for (int axis = 0; axis < 4; axis++) {
        first[axis] = first_of(&list, out->dims[axis]);
        neighbours = neighbours && first[axis] != NONE;
    }
    const bool rows = out->dims[3] == in->dims[3] || (out->dims[2] == 1 && out->dims[0] == 1);
    const bool images = out->dims[2] == in->dims[2] || out->dims[0] == 1;
    if (!neighbours || !rows || !images) {
        return false;
    }
    *pixel = ((size_t)first[0] * (size_t)in->dims[2] + (size_t)first[2]) * (size_t)in->dims[3] +
             (size_t)first[3];
    *byte = (size_t)first[1] * n8_value_size(in);
    return true;
}

enum n8_status n8_pack_gather(struct n8_reader *reader, struct n8_step *step, void *memory) {
    struct lists *lists = memory;
    const uint8_t *from = step->arrays[0];
    struct entry *list = lists->entries;
    for (int axis = 0; axis < 4; axis++) {
        const int32_t count = step->out->dims[axis];
        int32_t runs = 0;
        for (int32_t i = count - 1; i >= 0; i--) {
            memcpy(&list[i].at, from + (size_t)i * sizeof(int32_t), sizeof(int32_t));
            const bool on =
                i + 1 < count &&
                (list[i].at == NONE ? list[i + 1].at == NONE : list[i + 1].at == list[i].at + 1);
            list[i].run = on ? list[i + 1].run + 1 : 1;
            runs += !on;
        }
        if (axis == 1) {
            lists->pixels = list[0].at == 0 && list[0].run == count && count == step->in->dims[1];
            lists->scattered = count / runs < 8;
        }
        list += count;
        from += (size_t)count * sizeof(int32_t);
    }
    return N8_OK;
}

// What the rows of one step have in common.
struct row {
    const struct lists *lists;
    const struct entry *channels, *columns;
    size_t channel_count, column_count;
    size_t in_stride, out_stride, size; // bytes of pixels and of a value
    bool whole;                         // pixels that follow one another can be copied as one
    float fill;
    int32_t fill_bits; // of a value of 4 bytes
};

static void fill_values(const struct row *row, uint8_t *to, size_t count) {
    if (row->size == 1) {
        memset(to, (int8_t)row->fill, count);
        return;
    }
    const int16_t value = row->size == sizeof value ? (int16_t)row->fill : 0;
    for (size_t i = 0; i < count; i++) {
        if (row->size == sizeof value) {
            memcpy(to + i * sizeof value, &value, sizeof value);
        } else {
            memcpy(to + i * sizeof(float), &row->fill_bits, sizeof(float));
        }
    }
}

static void take_channels(const struct row *row, uint8_t *to, const uint8_t *from) {
    const struct entry *channels = row->channels;
    const size_t size = row->size;
    if (row->lists->scattered && size == 1) {
        const uint8_t fill = (uint8_t)(int8_t)row->fill;
        for (size_t c = 0; c < row->channel_count; c++) {
            to[c] = channels[c].at == NONE ? fill : from[channels[c].at];
        }
        return;
    }
    for (size_t c = 0; c < row->channel_count; c += (size_t)channels[c].run) {
        if (channels[c].at == NONE) {
            fill_values(row, to + c * size, (size_t)channels[c].run);
        } else {
            memcpy(to + c * size, from + (size_t)channels[c].at * size,
                   (size_t)channels[c].run * size);
        }
    }
}

// `count` pixels of a row, the first of which is at `from`.
static void take_pixels(const struct row *row, uint8_t *to, const uint8_t *from, size_t count) {
    const size_t used = row->channel_count * row->size;
    if (row->whole) {
        memcpy(to, from, (count - 1) * row->in_stride + used);
        return;
    }
    for (size_t i = 0; i < count; i++, to += row->out_stride, from += row->in_stride) {
        if (row->lists->pixels) {
            memcpy(to, from, used);
        } else {
            take_channels(row, to, from);
        }
    }
}

static void fill_pixels(const struct row *row, uint8_t *to, size_t count) {
    for (size_t i = 0; i < count; i++, to += row->out_stride) {
        fill_values(row, to, row->channel_count);
    }
}

static void take_row(const struct row *row, uint8_t *to, const uint8_t *from) {
    for (size_t x = 0; x < row->column_count; x += (size_t)row->columns[x].run) {
        const struct entry column = row->columns[x];
        uint8_t *out = to + x * row->out_stride;
        if (column.at == NONE) {
            fill_pixels(row, out, (size_t)column.run);
        } else {
            take_pixels(row, out, from + (size_t)column.at * row->in_stride, (size_t)column.run);
        }
    }
}

// A unit is a row of the output. One that is like the row before it is copied from there.
void n8_run_gather(const struct n8_session *session, const struct n8_step *step, size_t begin,
                   size_t end, void *scratch) {
    const struct n8_tensor *in = step->in, *out = step->out;
    const struct lists *lists = step->packed;
    const size_t height = (size_t)out->dims[2];
    const struct entry *images = lists->entries;
    const struct entry *channels = images + out->dims[0];
    const struct entry *rows = channels + out->dims[1];
    struct row row = {
        .lists = lists,
        .channels = channels,
        .columns = rows + height,
        .channel_count = (size_t)out->dims[1],
        .column_count = (size_t)out->dims[3],
        .in_stride = in->pixel_stride,
        .out_stride = out->pixel_stride,
        .size = n8_value_size(in),
        .whole = lists->pixels && in->pixel_stride == out->pixel_stride && !out->slice,
        .fill = step->row.fill,
    };
    if (out->type == N8_TYPE_S32) {
        row.fill_bits = (int32_t)row.fill;
    } else {
        memcpy(&row.fill_bits, &row.fill, sizeof row.fill);
    }
    const size_t out_row = row.column_count * row.out_stride;
    uint8_t *to = n8_out_pixel(session, step, begin * row.column_count);
    for (size_t unit = begin; unit < end; unit++, to += out_row) {
        const int32_t image = images[unit / height].at;
        const int32_t y = rows[unit % height].at;
        const bool again = unit > begin && unit % height != 0 && y == rows[unit % height - 1].at;
        if (again && !out->slice) {
            memcpy(to, to - out_row, out_row);
        } else if (image == NONE || y == NONE) {
            fill_pixels(&row, to, row.column_count);
        } else {
            const size_t place = (size_t)image * (size_t)in->dims[2] + (size_t)y;
            take_row(&row, to, n8_in_pixel(session, step, 0, place * (size_t)in->dims[3]));
        }
    }
}

const struct n8_operator n8_op_gather = {
    .name = "gather",
    .inputs = {1, 1},
    .fields = N8_FIELD_INDICES | N8_FIELD_FILL,
    .moves = true,
    .s16 = true,
    .s32 = true,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_READS_EXACTLY,
};
