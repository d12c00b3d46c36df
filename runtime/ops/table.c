// SPDX-License-Identifier: Apache-2.0
//
// A function of single values as a table, (8), or as one for each channel.
#include "step.h"

#include "size.h"

#include <string.h>

enum { ENTRIES = 256, MOST_TABLES = 256 };

// What is packed of each channel, before the tables, where channels have tables of their own.
struct channel {
    uint32_t table; // where its own begins
    uint32_t alike; // how many channels from it on have the same
};

// The number of a channel's table, as the file has it.
static int32_t table_of(const struct n8_step *step, int32_t channel) {
    int32_t table;
    memcpy(&table, (const uint8_t *)step->arrays[1] + (size_t)channel * sizeof table, sizeof table);
    return table;
}

// Tables are numbered in the order of the channels that first have them, so that a function has
// one form.
static enum n8_status plan_tables(struct n8_reader *reader, struct n8_step *step) {
    const int32_t channels = step->out->dims[1];
    int32_t next = 0;
    N8_TRY(n8_read_array(reader, step->row.indices, (size_t)channels, sizeof(int32_t),
                         &step->arrays[1]));
    for (int32_t c = 0; c < channels; c++) {
        const int32_t table = table_of(step, c);
        if (!n8_in_range(table, 0, next < MOST_TABLES ? next : MOST_TABLES - 1)) {
            return n8_malformed(reader, "a channel has a table that is not the next one, or none");
        }
        next += table == next;
    }
    if (next < 2) {
        return n8_malformed(reader, "all channels have the same table");
    }
    step->tables = (size_t)next;
    step->packed_size = (size_t)channels * sizeof(struct channel);
    return N8_OK;
}

enum n8_status n8_plan_table(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_kernels *kernels = &reader->model->kernels;
    step->kernel_name = kernels->table_s8_name;
    step->tables = 1;
    if (step->row.indices != 0) {
        N8_TRY(plan_tables(reader, step));
        step->kernel_name = kernels->tables_s8_name;
    }
    step->packed_size += step->tables * ENTRIES;
    return n8_read_array(reader, step->row.table, step->tables * ENTRIES, sizeof(int8_t),
                         &step->arrays[0]);
}

enum n8_status n8_pack_table(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const int32_t channels = step->row.indices == 0 ? 0 : step->out->dims[1];
    struct channel *each = memory;
    const size_t head = (size_t)channels * sizeof *each;
    for (int32_t c = channels - 1; c >= 0; c--) {
        const uint32_t table = (uint32_t)head + (uint32_t)table_of(step, c) * ENTRIES;
        const bool more = c + 1 < channels && each[c + 1].table == table;
        each[c] = (struct channel){table, more ? each[c + 1].alike + 1 : 1};
    }
    return n8_copy_tables(reader, step, (int8_t *)memory + head, step->packed_size - head);
}

enum {
    MANY = 16, // channels with one table, of which one kernel takes a multiple at once
    FEW = 8,   // channels with any tables, which the other one takes
};

// Some pixels where channels have tables of their own.
static void run_channels(const struct n8_session *session, const struct n8_step *step, int8_t *out,
                         const int8_t *in, size_t pixels) {
    const struct n8_kernels *kernels = &session->model->kernels;
    const size_t out_stride = step->out->pixel_stride;
    const size_t in_stride = step->in->pixel_stride;
    const size_t channels = (size_t)step->out->dims[1];
    const int8_t *packed = step->packed;
    const struct channel *of = step->packed;
    for (size_t c = 0; c < channels;) {
        size_t count = of[c].alike;
        if (count < MANY && channels - c >= FEW) {
            const int8_t *each[FEW];
            for (size_t i = 0; i < FEW; i++) {
                each[i] = packed + of[c + i].table;
            }
            count = FEW;
            kernels->tables_s8(out + c, out_stride, in + c, in_stride, pixels, each);
        } else {
            count -= count < MANY ? 0 : count % MANY;
            kernels->table_s8(out + c, out_stride, in + c, in_stride, pixels, count,
                              packed + of[c].table);
        }
        c += count;
    }
}

void n8_look_up(n8_table_fn *kernel, int8_t *out, const int8_t *in, size_t count,
                const int8_t *table) {
    enum { PIXEL = 16 };
    const size_t last = count % PIXEL, whole = count - last;
    kernel(out, PIXEL, in, PIXEL, whole / PIXEL, PIXEL, table);
    kernel(out + whole, last, in + whole, last, 1, last, table);
}

// A unit is a pixel. Those that are not one run of bytes are taken so many at a time that they stay
// in the first cache from some channels to the next.
void n8_run_table(const struct n8_session *session, const struct n8_step *step, size_t begin,
                  size_t end, void *scratch) {
    enum { AT_ONCE = 1 << 14 }; // bytes
    n8_table_fn *kernel = session->model->kernels.table_s8;
    const struct n8_tensor *in = step->in, *out = step->out;
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    const bool one_run = step->tables == 1 && stretch.pixels == end - begin;
    const size_t channels = (size_t)out->dims[1];
    const size_t most = one_run ? end - begin : channels < AT_ONCE ? AT_ONCE / channels : 1;
    for (size_t p = begin, pixels; p < end; p += pixels) {
        pixels = n8_smaller(most, end - p);
        int8_t *to = n8_out_pixel(session, step, p);
        const int8_t *from = n8_in_pixel(session, step, 0, p);
        if (one_run) {
            n8_look_up(kernel, to, from, stretch.count, step->packed);
        } else if (step->tables == 1) {
            kernel(to, out->pixel_stride, from, in->pixel_stride, pixels, channels, step->packed);
        } else {
            run_channels(session, step, to, from, pixels);
        }
    }
}

const struct n8_operator n8_op_table = {
    .name = "table",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_TABLE | N8_FIELD_INDICES,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_READS_EXACTLY,
};
