// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an image, N H W C as the caller has them, to int8: a table for each channel, (8).
#include "step.h"

#include <string.h>

enum { ENTRIES = 256, CHANNELS = 3 };

enum n8_status n8_check_image(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    const int32_t last[4] = {out->dims[0], out->dims[2], out->dims[3], out->dims[1]};
    if (memcmp(step->in->dims, last, sizeof last) != 0) {
        return n8_malformed(reader, "its input is not N H W C where its output is N C H W");
    }
    return N8_OK;
}

static size_t entries_of(const struct n8_tensor *out) {
    return (size_t)out->dims[1] * ENTRIES;
}

enum n8_status n8_plan_image(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    step->kernel_name = "table";
    step->tables = (size_t)out->dims[1];
    step->packed_size = entries_of(out);
    return n8_read_array(reader, step->row.table, entries_of(out), sizeof(int8_t),
                         &step->arrays[0]);
}

enum n8_status n8_pack_image(struct n8_reader *reader, struct n8_step *step, void *memory) {
    return n8_copy_tables(reader, step, memory, step->packed_size);
}

static inline __attribute__((always_inline)) void look_up(int8_t *restrict to, size_t stride,
                                                          const uint8_t *restrict from,
                                                          size_t channels, size_t pixels,
                                                          const int8_t *restrict table) {
    for (size_t p = 0; p < pixels; p++, to += stride, from += channels) {
#pragma GCC unroll 4
        for (size_t c = 0; c < channels; c++) {
            to[c] = table[c * ENTRIES + from[c]];
        }
    }
}

void n8_run_image(const struct n8_session *session, const struct n8_step *step, size_t begin,
                  size_t end, void *scratch) {
    const struct n8_tensor *out = step->out;
    const size_t channels = (size_t)out->dims[1];
    const uint8_t *from = session->inputs[step->in->input];
    int8_t *to = n8_out_pixel(session, step, begin);
    from += begin * channels;
    if (channels == CHANNELS) { // a constant, for speed
        look_up(to, out->pixel_stride, from, CHANNELS, end - begin, step->packed);
    } else if (channels == 1) {
        look_up(to, out->pixel_stride, from, 1, end - begin, step->packed);
    } else {
        look_up(to, out->pixel_stride, from, channels, end - begin, step->packed);
    }
}

const struct n8_operator n8_op_image = {
    .name = "image",
    .types = {N8_TYPE_U8, N8_TYPE_S8},
    .inputs = {1, 1},
    .fields = N8_FIELD_TABLE,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
    .ends = N8_END_INPUT,
};
