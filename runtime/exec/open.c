// SPDX-License-Identifier: Apache-2.0
//
// Opening a model: the file is read twice, first without room for packed weights, to learn how much
// memory they take. A model with open dimensions is read again for each of its shapes.
#include "frugal.h"

#include "memory/allocate.h"
#include "memory/plan.h"
#include "model/operator.h"
#include "model/shapes.h"
#include "origin.h"
#include "size.h"

#include <string.h>

// The parts of the one allocation that holds a model, as offsets from its start.
struct layout {
    size_t tensors, steps, links, strings, packed;
};

static size_t reserve(size_t *end, size_t count, size_t entry) {
    const size_t at = *end;
    *end = n8_round_up(n8_add(at, n8_mul(count, entry)), N8_ALIGN);
    return at;
}

static struct layout lay_out(const struct n8_file_header *h) {
    struct layout l;
    size_t end = 0;
    reserve(&end, 1, sizeof(struct n8_model));
    l.tensors = reserve(&end, h->tensor_count, sizeof(struct n8_tensor));
    l.steps = reserve(&end, h->op_count, sizeof(struct n8_step));
    l.links = reserve(&end, h->link_count, sizeof(uint32_t));
    l.strings = reserve(&end, h->strings_size, 1);
    l.packed = end;
    return l;
}

static void set_facts(struct n8_model *model, const struct n8_file_header *h) {
    model->facts = (struct n8_model_facts){
        .version = h->version,
        .checksum = h->checksum,
        .file_size = h->file_size,
        .data_size = h->data_size,
        .tensor_count = h->tensor_count,
        .step_count = h->op_count,
        .input_count = h->input_count,
        .output_count = h->output_count,
    };
    memcpy(model->facts.source_digest, h->source_digest, sizeof h->source_digest);
}

// The values of open dimensions, of what follows from them, and room for arrays that do.
static enum n8_status choose_shapes(struct n8_reader *reader, const int32_t (*shapes)[8],
                                    bool largest) {
    struct n8_shapes *s = &reader->shapes;
    if (s->table.symbol_count == 0 && shapes == NULL) {
        return N8_OK;
    }
    N8_TRY(n8_bind_shapes(reader, shapes, largest));
    s->sizes = n8_allocate((s->table.size_count + (size_t)1) * sizeof *s->sizes);
    if (s->sizes == NULL) {
        return N8_E_MEMORY;
    }
    N8_TRY(n8_evaluate_sizes(reader));
    s->arrays = n8_allocate(s->arrays_size + 1);
    return s->arrays == NULL ? N8_E_MEMORY : N8_OK;
}

static void forget_shapes(struct n8_reader *reader) {
    n8_free(reader->shapes.sizes);
    n8_free(reader->shapes.arrays);
    reader->shapes.sizes = NULL;
    reader->shapes.arrays = NULL;
}

// Whether a step's packed weights are those of all shapes.
static bool shares_weights(const struct n8_reader *reader, const struct n8_step *step) {
    return reader->shapes.table.symbol_count != 0 && (step->op->fields & N8_FIELD_WEIGHTS) != 0;
}

// The bytes of the model's own packed arrays.
static size_t own_packed(const struct n8_reader *reader) {
    size_t size = 0;
    for (size_t s = 0; s < reader->model->facts.step_count; s++) {
        const struct n8_step *step = &reader->model->steps[s];
        if (!shares_weights(reader, step)) {
            size = n8_add(size, n8_round_up(step->packed_size, N8_ALIGN));
        }
    }
    return size;
}

// Reads and plans into a new model with `packed` bytes of room for weights.
static enum n8_status read_model(struct n8_reader *reader, const struct n8_kernels *kernels,
                                 uint64_t max_bytes, size_t packed, struct n8_model **out) {
    const struct layout l = lay_out(&reader->header);
    struct n8_model *model = n8_allocate(n8_add(l.packed, packed));
    if (model == NULL) {
        return N8_E_MEMORY;
    }
    uint8_t *base = (uint8_t *)model;
    model->kernels = *kernels;
    model->tensors = (struct n8_tensor *)(void *)(base + l.tensors);
    model->steps = (struct n8_step *)(void *)(base + l.steps);
    model->links = (uint32_t *)(void *)(base + l.links);
    set_facts(model, &reader->header);
    reader->model = model;
    reader->arrays_end = reader->header.data;
    reader->shapes.arrays_used = 0;
    reader->shapes.next_form = reader->shapes.next_word = 0;
    enum n8_status status = n8_read_tables(reader, (char *)base + l.strings);
    if (status == N8_OK) {
        status = n8_plan_arena(reader);
    }
    if (status == N8_OK) {
        const bool open = reader->shapes.table.symbol_count != 0;
        model->memory.tables = l.packed + (open ? reader->header.file_size : 0);
        status = n8_plan_weights(model, max_bytes);
    }
    if (status != N8_OK) {
        n8_free(model);
        return status;
    }
    *out = model;
    return N8_OK;
}

// Everything but the packed weights is in place.
static enum n8_status pack(struct n8_reader *reader) {
    struct n8_model *model = reader->model;
    uint8_t *at = (uint8_t *)model + lay_out(&reader->header).packed;
    for (size_t s = 0; s < model->facts.step_count; s++) {
        struct n8_step *step = &model->steps[s];
        n8_blame_step(reader, s);
        if (shares_weights(reader, step)) {
            N8_TRY(n8_origin_pack(model->origin, reader, s));
            continue;
        }
        step->packed = at;
        N8_TRY(n8_pack_step(reader, step, at));
        at += n8_round_up(step->packed_size, N8_ALIGN);
    }
    return N8_OK;
}

// Reads the model without its weights. `packed`: those of its own, in bytes.
static enum n8_status measure(struct n8_reader *reader, const struct n8_kernels *kernels,
                              uint64_t max_bytes, struct n8_memory *out, size_t *packed) {
    struct n8_model *model = NULL;
    N8_TRY(read_model(reader, kernels, max_bytes, 0, &model));
    *out = model->memory;
    *packed = own_packed(reader);
    n8_free(model);
    return N8_OK;
}

// Every error has a reason.
static enum n8_status explained(enum n8_status status, struct n8_model_error *error) {
    if (status != N8_OK && error->reason == NULL) {
        error->reason = n8_status_string(status);
    }
    return status;
}

// Kernels, header and shapes.
static enum n8_status begin(const void *bytes, size_t size, const struct n8_model_options *options,
                            struct n8_reader *reader, struct n8_kernels *kernels) {
    const struct n8_model_options plain = {0};
    const struct n8_model_options *given = options == NULL ? &plain : options;
    if (bytes == NULL || (given->shapes != NULL && given->largest != 0) ||
        !N8_NOTHING_RESERVED(given)) {
        return N8_E_ARGUMENT;
    }
    if (n8_kernels_select(given->isa, kernels) != N8_OK) {
        reader->error->reason = "it has no such instruction set, or computes wrongly with it";
        return N8_E_UNSUPPORTED;
    }
    N8_TRY(n8_read_header(reader, bytes, size));
    return choose_shapes(reader, given->shapes, given->largest != 0);
}

static enum n8_status measure_file(const void *bytes, size_t size,
                                   const struct n8_model_options *options, struct n8_reader *reader,
                                   struct n8_memory *out) {
    const uint64_t given = options == NULL ? 0 : options->max_bytes;
    struct n8_kernels kernels;
    size_t packed;
    N8_TRY(begin(bytes, size, options, reader, &kernels));
    return measure(reader, &kernels, given == 0 ? UINT64_MAX : given, out, &packed);
}

enum n8_status n8_model_measure(const void *bytes, size_t size,
                                const struct n8_model_options *options, struct n8_memory *out,
                                struct n8_model_error *error) {
    struct n8_model_error ignored;
    struct n8_reader reader = {.error = error == NULL ? &ignored : error};
    *reader.error = (struct n8_model_error){.step = -1, .axis = -1};
    if (out == NULL) {
        return explained(N8_E_ARGUMENT, reader.error);
    }
    memset(out, 0, sizeof *out);
    const enum n8_status status = measure_file(bytes, size, options, &reader, out);
    forget_shapes(&reader);
    return explained(status, reader.error);
}

// A reader whose shapes are chosen: the model, packed.
static enum n8_status make_model(struct n8_reader *reader, const struct n8_kernels *kernels,
                                 uint64_t max_bytes, struct n8_origin *origin,
                                 struct n8_model **out) {
    struct n8_memory memory;
    size_t packed;
    N8_TRY(measure(reader, kernels, max_bytes, &memory, &packed));
    N8_TRY(n8_check_memory(&memory, 1, max_bytes));
    struct n8_model *model = NULL;
    N8_TRY(read_model(reader, kernels, max_bytes, packed, &model));
    model->max_bytes = max_bytes;
    model->origin = origin;
    const enum n8_status status = pack(reader);
    if (status != N8_OK) {
        n8_free(model);
        return status;
    }
    *out = model;
    return N8_OK;
}

static enum n8_status open_model(const void *bytes, size_t size,
                                 const struct n8_model_options *options, struct n8_reader *reader,
                                 struct n8_model **out) {
    struct n8_kernels kernels;
    const uint64_t given = options == NULL ? 0 : options->max_bytes;
    const uint64_t max_bytes = given == 0 ? N8_DEFAULT_MAX_BYTES : given;
    N8_TRY(begin(bytes, size, options, reader, &kernels));
    struct n8_origin *origin = NULL;
    if (reader->shapes.table.symbol_count != 0) {
        origin = n8_origin_create(reader);
        if (origin == NULL) {
            return N8_E_MEMORY;
        }
    }
    const enum n8_status status = make_model(reader, &kernels, max_bytes, origin, out);
    if (status != N8_OK) {
        n8_origin_close(origin);
        return status;
    }
    (*out)->opened = true;
    return N8_OK;
}

enum n8_status n8_model_open(const void *bytes, size_t size, const struct n8_model_options *options,
                             struct n8_model **out, struct n8_model_error *error) {
    struct n8_model_error ignored;
    struct n8_reader reader = {.error = error == NULL ? &ignored : error};
    *reader.error = (struct n8_model_error){.step = -1, .axis = -1};
    if (out == NULL) {
        return explained(N8_E_ARGUMENT, reader.error);
    }
    *out = NULL;
    const enum n8_status status = open_model(bytes, size, options, &reader, out);
    forget_shapes(&reader);
    return explained(status, reader.error);
}

// What the file is refused for at these shapes: it was opened at others.
static enum n8_status of_shapes(enum n8_status status) {
    return status == N8_E_FORMAT || status == N8_E_OVERFLOW || status == N8_E_UNSUPPORTED
               ? N8_E_SHAPE
               : status;
}

enum n8_status n8_model_reshape(const struct n8_model *model, const int32_t (*shapes)[8],
                                struct n8_model **out, struct n8_model_error *error) {
    struct n8_model_error ignored;
    struct n8_reader reader = {.error = error == NULL ? &ignored : error};
    *reader.error = (struct n8_model_error){.step = -1, .axis = -1};
    if (out == NULL) {
        return explained(N8_E_ARGUMENT, reader.error);
    }
    *out = NULL;
    if (model == NULL || model->origin == NULL) {
        reader.error->reason = "it has no open dimensions";
        return N8_E_ARGUMENT;
    }
    n8_origin_read(model->origin, &reader);
    enum n8_status status = choose_shapes(&reader, shapes, false);
    if (status == N8_OK) {
        status = make_model(&reader, &model->kernels, model->max_bytes, model->origin, out);
    }
    forget_shapes(&reader);
    return explained(of_shapes(status), reader.error);
}

enum n8_status n8_model_bounds(const struct n8_model *model, size_t index, size_t axis,
                               struct n8_dimension *out) {
    if (model == NULL || out == NULL || index >= model->facts.input_count) {
        return N8_E_ARGUMENT;
    }
    if (model->origin != NULL) {
        struct n8_model_error ignored;
        struct n8_reader reader = {.error = &ignored};
        n8_origin_read(model->origin, &reader);
        return n8_read_bounds(&reader, index, axis, out);
    }
    const struct n8_tensor *in = &model->tensors[model->inputs[index]];
    if (axis >= (size_t)in->rank) {
        return N8_E_ARGUMENT;
    }
    *out = (struct n8_dimension){
        .lo = in->onnx_dims[axis], .hi = in->onnx_dims[axis], .step = 1, .same = 8 * index + axis};
    return N8_OK;
}

void n8_model_close(struct n8_model *model) {
    if (model != NULL && model->opened) {
        n8_origin_close(model->origin);
    }
    n8_free(model);
}
