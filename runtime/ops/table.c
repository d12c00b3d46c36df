// SPDX-License-Identifier: Apache-2.0
//
// A function of single values as a table, (8).
#include "step.h"

#include <string.h>

enum { ENTRIES = 256 };

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    step->kernel_name = reader->model->kernels.table_s8_name;
    step->packed_size = ENTRIES;
    return n8_read_array(reader, step->row.table, ENTRIES, sizeof(int8_t), &step->arrays[0]);
}

// A unit is a pixel.
static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    for (size_t p = begin; p < end; p += stretch.pixels) {
        session->model->kernels.table_s8(n8_out_pixel(session, step, p),
                                         n8_in_pixel(session, step, 0, p), stretch.count,
                                         step->packed);
    }
}

const struct n8_operator n8_op_table = {
    .name = "table",
    .types = {N8_TYPE_S8, N8_TYPE_S8},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_TABLE,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST | N8_READS_EXACTLY,
    .plan = plan,
    .pack = n8_pack_table,
    .run = run,
};
