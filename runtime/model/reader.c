// SPDX-License-Identifier: Apache-2.0
//
// Every table of a model file, checked row by row. What an operator asks of its tensors is in
// ops/. The bytes are copied struct by struct, so that no read depends on the alignment of the
// caller's buffer.
#include "reader.h"

#include "checksum.h"
#include "operator.h"
#include "shapes.h"
#include "size.h"

#include <math.h>
#include <string.h>

enum { MAX_TENSOR_BYTES = INT32_MAX };

static const uint8_t MAGIC[8] = {0x89, 'N', '8', 0x0d, 0x0a, 0x1a, 0x0a, 0x00};

// Header -------------------------------------------------------------------------------

static bool zero_between(const struct n8_reader *r, uint64_t begin, uint64_t end) {
    for (; begin < end; begin++) {
        if (r->bytes[begin] != 0) {
            return false;
        }
    }
    return true;
}

static uint64_t aligned(uint64_t offset, uint64_t align) {
    return (offset + align - 1) / align * align; // offsets are far below 2^63
}

enum n8_status n8_check_part(const struct n8_reader *r, uint64_t at, uint64_t count, uint64_t entry,
                             uint64_t align, uint64_t *end) {
    const uint64_t wanted = aligned(*end, align), size = r->header.file_size;
    if (at != wanted || at > size || count > (size - at) / entry) {
        return n8_malformed(r, "a part of the file is not where it must be");
    }
    if (!zero_between(r, *end, at)) {
        return n8_malformed(r, "a byte between two parts of the file is not 0");
    }
    *end = at + count * entry;
    return N8_OK;
}

// One part after the other, up to the end of the file.
static enum n8_status check_parts(struct n8_reader *r) {
    const struct n8_file_header *h = &r->header;
    const bool open = h->version == N8_FORMAT_VERSION_OPEN;
    uint64_t end = sizeof *h + (open ? sizeof r->shapes.table : 0);
    N8_TRY(n8_check_part(r, h->tensors, h->tensor_count, sizeof(struct n8_file_tensor), 8, &end));
    N8_TRY(n8_check_part(r, h->ops, h->op_count, sizeof(struct n8_file_op), 8, &end));
    N8_TRY(n8_check_part(r, h->links, h->link_count, sizeof(uint32_t), 8, &end));
    N8_TRY(n8_check_part(r, h->strings, h->strings_size, 1, 8, &end));
    if (open) {
        N8_TRY(n8_read_shapes(r, &end));
    }
    N8_TRY(n8_check_part(r, h->data, h->data_size, 1, N8_FORMAT_ALIGN_DATA, &end));
    return end == h->file_size ? N8_OK
                               : n8_malformed(r, "something follows the last part of the file");
}

enum n8_status n8_read_header(struct n8_reader *r, const void *bytes, size_t size) {
    struct n8_file_header *h = &r->header;
    r->bytes = bytes;
    if (size < sizeof MAGIC || memcmp(bytes, MAGIC, sizeof MAGIC) != 0) {
        return n8_malformed(r, "not a neon8 model");
    }
    if (size < sizeof *h) {
        return n8_malformed(r, "the file is cut off in its header");
    }
    memcpy(h, bytes, sizeof *h);
    const bool open = h->version == N8_FORMAT_VERSION_OPEN;
    if (h->version != N8_FORMAT_VERSION && !open) {
        return n8_refuse(r->error, N8_E_VERSION, "a format version that this library cannot read");
    }
    if (h->file_size != size || (open && size < sizeof *h + sizeof r->shapes.table)) {
        return n8_malformed(r, "the file is cut off, or something was added to it");
    }
    const size_t covered = offsetof(struct n8_file_header, checksum) + sizeof h->checksum;
    if (n8_crc32(r->bytes + covered, size - covered) != h->checksum) {
        return n8_refuse(r->error, N8_E_CHECKSUM, "the checksum is wrong: the file was damaged");
    }
    if (h->tensor_count < 1 || h->op_count < 1 || h->input_count < 1 || h->output_count < 1) {
        return n8_malformed(r, "there is no tensor, no step, no input or no output");
    }
    if (h->tensor_count > N8_FORMAT_MAX_COUNT || h->op_count > N8_FORMAT_MAX_COUNT ||
        h->link_count > N8_FORMAT_MAX_COUNT) {
        return n8_malformed(r, "there are more than 16384 tensors, steps or links");
    }
    if (h->input_count > h->link_count || h->output_count > h->link_count - h->input_count) {
        return n8_malformed(r, "there are fewer links than inputs and outputs");
    }
    if (open) {
        memcpy(&r->shapes.table, r->bytes + sizeof *h, sizeof r->shapes.table);
    }
    N8_TRY(check_parts(r));
    if (h->strings_size < 1 || r->bytes[h->strings + h->strings_size - 1] != 0) {
        return n8_malformed(r, "the last name has no end"); // so every name ends in its part
    }
    r->arrays_end = h->data;
    return N8_OK;
}

// The name at `offset`, in the file, or NULL.
static const char *name_at(const struct n8_reader *r, uint32_t offset) {
    if (offset >= r->header.strings_size) {
        return NULL;
    }
    const char *name = (const char *)r->bytes + r->header.strings + offset;
    return strlen(name) <= N8_FORMAT_MAX_NAME ? name : NULL;
}

enum n8_status n8_read_array(struct n8_reader *r, uint64_t offset, size_t count, size_t entry,
                             const void **out) {
    const struct n8_file_header *h = &r->header;
    const size_t size = n8_mul(count, entry);
    if (r->shapes.table.form_count != 0 && offset % 2 != 0) {
        return n8_make_array(r, offset / 2, size, out);
    }
    if (offset != aligned(r->arrays_end, N8_FORMAT_ALIGN_DATA) || offset > h->file_size ||
        size > h->file_size - offset) {
        return n8_malformed(r, "its arrays are not where they must be");
    }
    if (!zero_between(r, r->arrays_end, offset)) {
        return n8_malformed(r, "a byte before one of its arrays is not 0");
    }
    r->arrays_end = offset + size;
    *out = r->bytes + offset;
    return N8_OK;
}

enum n8_status n8_read_optional(struct n8_reader *r, uint64_t offset, size_t count, size_t entry,
                                const void **out) {
    return offset == 0 ? N8_OK : n8_read_array(r, offset, count, entry, out);
}

// Tensors ------------------------------------------------------------------------------

static enum n8_status check_quantization(const struct n8_reader *r,
                                         const struct n8_file_tensor *row) {
    if (row->type != N8_TYPE_S8 && row->type != N8_TYPE_S16) {
        const bool plain =
            row->scale == 1.0f && row->zero_point == 0 && row->lo == -128 && row->hi == 127;
        return plain ? N8_OK
                     : n8_malformed(
                           r, "it is neither int8 nor int16 and has a scale, zero point or range");
    }
    if (!n8_scale_ok(row->scale)) {
        return n8_malformed(r, "its scale is outside 1e-30 .. 1e30");
    }
    const bool s16 = row->type == N8_TYPE_S16;
    const int32_t least = s16 ? INT16_MIN : INT8_MIN, most = s16 ? INT16_MAX : INT8_MAX;
    if (!n8_in_range(row->hi, least, most) || !n8_in_range(row->lo, least, row->hi)) {
        return n8_malformed(r, "its range is empty or beyond its type");
    }
    if (!n8_in_range(row->zero_point, row->lo, row->hi)) {
        return n8_malformed(r, "its zero point is outside its range");
    }
    return N8_OK;
}

static enum n8_status read_tensor(const struct n8_reader *r, size_t index, const char *strings,
                                  struct n8_tensor *t) {
    struct n8_file_tensor row;
    memcpy(&row, r->bytes + r->header.tensors + index * sizeof row, sizeof row);
    n8_blame_tensor(r, index);
    if (r->error->name == NULL) {
        return n8_malformed(r, "a tensor's name is outside the names, or too long");
    }
    if (row.type < N8_TYPE_S8 || row.type > N8_TYPE_S16) {
        return n8_malformed(r, "its type is unknown");
    }
    if (row.rank > N8_FORMAT_MAX_RANK) {
        return n8_malformed(r, "its rank is above 8");
    }
    N8_TRY(n8_resolve(r, row.dims, N8_FORMAT_MAX_RANK));
    int64_t width = 1;
    for (uint32_t axis = 0; axis < N8_FORMAT_MAX_RANK; axis++) {
        if (!n8_in_range(row.dims[axis], 1, axis < row.rank ? N8_FORMAT_MAX_DIM : 1)) {
            return n8_malformed(r, "a dimension is outside 1 .. 2^20, or not 1 after its rank");
        }
        width *= axis < 3 ? 1 : row.dims[axis];
        if (width > N8_FORMAT_MAX_DIM) {
            return n8_malformed(r,
                                "the product of its dimensions from the fourth on is above 2^20");
        }
    }
    if (row.reason != 0 && (row.type != N8_TYPE_F32 || name_at(r, row.reason) == NULL)) {
        return n8_malformed(r, "its reason is outside the names or too long, or it is not float32");
    }
    N8_TRY(check_quantization(r, &row));
    t->name = strings + row.name;
    t->reason = row.reason == 0 ? NULL : strings + row.reason;
    t->type = (enum n8_type)row.type;
    t->rank = (int32_t)row.rank;
    memcpy(t->onnx_dims, row.dims, sizeof t->onnx_dims);
    memcpy(t->dims, row.dims, sizeof t->dims);
    t->dims[3] = (int32_t)width;
    t->scale = row.scale;
    t->zero_point = row.zero_point;
    t->lo = row.lo;
    t->hi = row.hi;
    t->value_lo = row.lo;
    t->value_hi = row.hi;
    t->input = t->output = -1;
    t->pixels = n8_mul(n8_mul((size_t)t->dims[0], (size_t)t->dims[2]), (size_t)t->dims[3]);
    t->pixel_stride = n8_own_stride(t);
    const size_t used = n8_mul(t->pixels, t->pixel_stride);
    t->bytes = n8_round_up(n8_add(used, N8_SLACK), N8_ALIGN);
    return t->bytes <= MAX_TENSOR_BYTES ? N8_OK : n8_malformed(r, "it is larger than 2 GB");
}

static enum n8_status read_links(const struct n8_reader *r) {
    const struct n8_file_header *h = &r->header;
    struct n8_model *model = r->model;
    memcpy(model->links, r->bytes + h->links, h->link_count * sizeof(uint32_t));
    for (size_t i = 0; i < h->link_count; i++) {
        if (model->links[i] >= h->tensor_count) {
            return n8_malformed(r, "a link names no tensor");
        }
    }
    model->inputs = model->links;
    model->outputs = model->links + h->input_count;
    for (size_t i = 0; i < h->input_count; i++) {
        struct n8_tensor *in = &model->tensors[model->inputs[i]];
        if (in->input >= 0) {
            return n8_malformed(r, "an input of the network is listed twice");
        }
        in->input = (int32_t)i;
        const bool s16 = in->type == N8_TYPE_S16;
        in->value_lo = s16 ? INT16_MIN : INT8_MIN; // the caller's values are taken as they are
        in->value_hi = s16 ? INT16_MAX : INT8_MAX;
        in->caller = true; // unless a step reads it from the arena
    }
    for (size_t i = 0; i < h->output_count; i++) {
        struct n8_tensor *out = &model->tensors[model->outputs[i]];
        out->caller = out->input < 0 && out->output < 0; // unless a step makes it in the arena
        out->output = (int32_t)i;
    }
    for (size_t i = h->input_count + h->output_count; i < h->link_count; i++) {
        struct n8_tensor *read = &model->tensors[model->links[i]];
        read->caller = read->caller && read->output < 0;
    }
    for (size_t i = 0; i < h->tensor_count; i++) {
        const struct n8_tensor *t = &model->tensors[i];
        if (t->type == N8_TYPE_U8 && (t->input < 0 || t->output >= 0)) {
            n8_blame_tensor(r, i);
            return n8_malformed(r, "it is uint8, which only inputs of the network are");
        }
    }
    return N8_OK;
}

void n8_blame_tensor(const struct n8_reader *r, size_t index) {
    struct n8_file_tensor row;
    memcpy(&row, r->bytes + r->header.tensors + index * sizeof row, sizeof row);
    r->error->name = name_at(r, row.name);
}

// Steps --------------------------------------------------------------------------------

// What each of enum n8_fields allows to be set.
static const struct {
    uint32_t fields, flags;
} FLAGS[] = {
    {N8_FIELD_COUNT_PAD, N8_OP_COUNT_PAD},
    {N8_FIELD_REVERSE, N8_OP_REVERSE},
    {N8_FIELD_RECURRENT, N8_OP_REVERSE | N8_OP_LINEAR_BEFORE_RESET},
    {N8_FIELD_WEIGHTS, N8_OP_WINOGRAD_WHOLE | N8_OP_WINOGRAD_HALF | N8_OP_WEIGHTS_S16},
};

#define AT(field) offsetof(struct n8_file_op, field), sizeof((struct n8_file_op){0}.field)
static const struct {
    uint32_t fields;
    uint16_t at, size;
} FIELDS[] = {
    {N8_FIELD_WINDOW, AT(kernel)},
    {N8_FIELD_WINDOW, AT(stride)},
    {N8_FIELD_WINDOW, AT(dilation)},
    {N8_FIELD_WINDOW, AT(pad)},
    {N8_FIELD_WINDOW, AT(pad_end)},
    {N8_FIELD_CLAMP, AT(lo)},
    {N8_FIELD_CLAMP, AT(hi)},
    {N8_FIELD_SCALE, AT(scale)},
    {N8_FIELD_RESIDUAL, AT(residual_scale)},
    {N8_FIELD_SLOPE, AT(slope)},
    {N8_FIELD_AXIS, AT(axis)},
    {N8_FIELD_FILL, AT(fill)},
    {N8_FIELD_FUNCTION, AT(function)},
    {N8_FIELD_TABLE | N8_FIELD_LINES, AT(table)},
    {N8_FIELD_INDICES, AT(indices)},
    {N8_FIELD_VALUES, AT(values)},
    {N8_FIELD_WEIGHTS | N8_FIELD_GROUPS, AT(groups)},
    {N8_FIELD_WEIGHTS, AT(int16_depth)},
    {N8_FIELD_WEIGHTS, AT(acc_bound)},
    {N8_FIELD_WEIGHTS, AT(bias)},
    {N8_FIELD_WEIGHTS, AT(slopes)},
    {N8_FIELD_WEIGHTS | N8_FIELD_S8_VALUES | N8_FIELD_MATRICES, AT(weights)},
    {N8_FIELD_WEIGHTS | N8_FIELD_MATRICES | N8_FIELD_MULTIPLIER, AT(multiplier)},
    {N8_FIELD_WEIGHTS | N8_FIELD_MATRICES | N8_FIELD_BIAS_F32, AT(bias_f32)},
};
#undef AT

// The row as it would be if its kind had no fields but `fields`.
static struct n8_file_op without_others(const struct n8_file_op *row, uint32_t fields) {
    struct n8_file_op plain = {
        .kind = row->kind,
        .name = row->name,
        .inputs = row->inputs,
        .input_count = row->input_count,
        .output = row->output,
        .kernel = {1, 1},
        .stride = {1, 1},
        .dilation = {1, 1},
        .groups = 1,
        .lo = -128,
        .hi = 127,
        .slope = 1.0f,
        .int16_depth = 2,
    };
    for (size_t i = 0; i < sizeof FLAGS / sizeof FLAGS[0]; i++) {
        plain.flags |= fields & FLAGS[i].fields ? row->flags & FLAGS[i].flags : 0;
    }
    for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++) {
        if (fields & FIELDS[i].fields) {
            memcpy((char *)&plain + FIELDS[i].at, (const char *)row + FIELDS[i].at, FIELDS[i].size);
        }
    }
    return plain;
}

// What holds for a field whatever the operator. Unused fields pass: they hold their defaults.
static enum n8_status check_fields(const struct n8_reader *r, const struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *out = step->out;
    const struct n8_file_op plain = without_others(row, step->op->fields);
    if (memcmp(row, &plain, sizeof plain) != 0) {
        return n8_malformed(r, "a flag is unknown, or a field that it does not use is set");
    }
    for (int axis = 0; axis < 2; axis++) {
        if (!n8_in_range(row->kernel[axis], 1, N8_FORMAT_MAX_DIM) ||
            !n8_in_range(row->stride[axis], 1, N8_FORMAT_MAX_DIM) ||
            !n8_in_range(row->dilation[axis], 1, N8_FORMAT_MAX_DIM) ||
            !n8_in_range(row->pad[axis], 0, N8_FORMAT_MAX_DIM) ||
            !n8_in_range(row->pad_end[axis], 0, N8_FORMAT_MAX_DIM)) {
            return n8_malformed(r, "a kernel, stride, dilation or pad is outside its limits");
        }
    }
    const bool clamps = (step->op->fields & N8_FIELD_CLAMP) != 0;
    if (clamps &&
        (!n8_in_range(row->lo, out->lo, out->hi) || !n8_in_range(row->hi, row->lo, out->hi))) {
        return n8_malformed(r, "its clamp is empty or outside the range of its output");
    }
    if (!n8_multiplier_ok(row->scale) || !n8_multiplier_ok(fabsf(row->residual_scale))) {
        return n8_malformed(r, "a scale is neither 0 nor in 1e-30 .. 2^64");
    }
    if (!n8_slope_ok(row->slope)) {
        return n8_malformed(r, "its slope is outside +-2^30");
    }
    return N8_OK;
}

// int16 stands for int8 where an operator knows it.
static bool is_of(const struct n8_operator *op, enum n8_type type, enum n8_type wanted) {
    return type == wanted || (op->s16 && type == N8_TYPE_S16 && wanted == N8_TYPE_S8);
}

static enum n8_status check_ends(const struct n8_reader *r, const struct n8_step *step) {
    const struct n8_operator *op = step->op;
    const enum n8_type made = step->out->type;
    if (step->row.input_count < op->inputs.least || step->row.input_count > op->inputs.most) {
        return n8_malformed(r, "it has too few or too many inputs");
    }
    for (size_t i = 0; i < step->row.input_count; i++) {
        const struct n8_tensor *in = n8_input(r->model, step, i);
        const bool s32 = i < 32 && (op->s32_inputs >> i & 1) != 0;
        const enum n8_type wanted = s32 ? N8_TYPE_S32 : op->types.in;
        const bool alike = op->types.out != 0 || in->type == made;
        if (wanted == 0 ? !alike : !is_of(op, in->type, wanted)) {
            return n8_malformed(r, "an input is not of the type that it takes");
        }
        if ((op->ends & N8_END_INPUT) == 0) {
            r->model->tensors[step->inputs[i]].caller = false;
        }
    }
    if ((op->ends & N8_END_OUTPUT) == 0) {
        r->model->tensors[step->row.output].caller = false;
    }
    const bool other = (made == N8_TYPE_S16 && !op->s16) || (made == N8_TYPE_S32 && !op->s32);
    if (op->types.out == 0 ? other : !is_of(op, made, op->types.out)) {
        return n8_malformed(r, "its output is not of the type that it makes");
    }
    for (size_t i = 0; op->same_shape && i < step->row.input_count; i++) {
        if (memcmp(n8_input(r->model, step, i)->dims, step->out->dims, sizeof(int32_t[4])) != 0) {
            return n8_malformed(r, "its inputs and output differ in shape");
        }
    }
    return N8_OK;
}

void n8_blame_step(const struct n8_reader *r, size_t index) {
    struct n8_file_op row;
    memcpy(&row, r->bytes + r->header.ops + index * sizeof row, sizeof row);
    r->error->step = (int32_t)index;
    r->error->name = name_at(r, row.name);
}

// `next_link` is the first link that no earlier step has; moves it on.
static enum n8_status read_step(struct n8_reader *r, size_t index, const char *strings,
                                uint32_t *next_link) {
    const struct n8_file_header *h = &r->header;
    struct n8_step *step = &r->model->steps[index];
    memcpy(&step->row, r->bytes + h->ops + index * sizeof step->row, sizeof step->row);
    n8_blame_step(r, index);
    if (r->error->name == NULL) {
        return n8_malformed(r, "its name is outside the names, or too long");
    }
    step->name = strings + step->row.name;
    step->op = n8_operator_of(step->row.kind);
    if (step->op == NULL) {
        return n8_malformed(r, "its kind is unknown");
    }
    if (step->row.output >= h->tensor_count) {
        return n8_malformed(r, "its output is no tensor");
    }
    if (step->row.inputs != *next_link || step->row.input_count > h->link_count - *next_link) {
        return n8_malformed(r, "its links do not follow those of the step before");
    }
    *next_link += step->row.input_count;
    step->inputs = r->model->links + step->row.inputs;
    step->in = step->row.input_count == 0 ? NULL : n8_input(r->model, step, 0);
    step->out = &r->model->tensors[step->row.output];
    step->kernel_name = "scalar";
    step->units = step->out->pixels;
    N8_TRY(n8_resolve(r, step->row.kernel, 2));
    N8_TRY(n8_resolve(r, step->row.pad, 2));
    N8_TRY(n8_resolve(r, step->row.pad_end, 2));
    step->placing = step->op->placing;
    N8_TRY(check_ends(r, step));
    N8_TRY(check_fields(r, step));
    N8_TRY(n8_check_step(r, step));
    N8_TRY(n8_plan_step(r, step));
    step->grain = n8_grain(r->model, step);
    n8_find_value_range(r, step);
    return N8_OK;
}

enum n8_status n8_read_tables(struct n8_reader *r, char *strings) {
    const struct n8_file_header *h = &r->header;
    memcpy(strings, r->bytes + h->strings, h->strings_size);
    for (size_t i = 0; i < h->tensor_count; i++) {
        N8_TRY(read_tensor(r, i, strings, &r->model->tensors[i]));
    }
    r->error->name = NULL;
    N8_TRY(read_links(r));
    uint32_t next_link = h->input_count + h->output_count;
    for (size_t i = 0; i < h->op_count; i++) {
        N8_TRY(read_step(r, i, strings, &next_link));
    }
    r->error->name = NULL;
    r->error->step = -1;
    if (next_link != h->link_count) {
        return n8_malformed(r, "a link belongs to no step");
    }
    if (r->arrays_end != h->file_size || r->shapes.next_form != r->shapes.table.form_count) {
        return n8_malformed(r, "an array belongs to no step");
    }
    for (size_t i = 0; i < h->tensor_count; i++) {
        struct n8_tensor *tensor = &r->model->tensors[i];
        tensor->bytes = tensor->caller ? 0 : tensor->bytes;
    }
    return N8_OK;
}
