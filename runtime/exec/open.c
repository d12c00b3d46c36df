// SPDX-License-Identifier: Apache-2.0
//
// Opening a model: the file is read twice, first without room for packed weights, to learn how much
// memory they take.
#include "frugal.h"

#include "memory/allocate.h"
#include "memory/plan.h"
#include "model/operator.h"
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
    enum n8_status status = n8_read_tables(reader, (char *)base + l.strings);
    if (status == N8_OK) {
        status = n8_plan_arena(reader);
    }
    if (status == N8_OK) {
        model->memory.tables = l.packed;
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
    uint8_t *at = (uint8_t *)model + model->memory.tables;
    for (size_t s = 0; s < model->facts.step_count; s++) {
        struct n8_step *step = &model->steps[s];
        if (step->op->pack == NULL) {
            continue;
        }
        n8_blame_step(reader, s);
        step->packed = at;
        N8_TRY(step->op->pack(reader, step, at));
        at += n8_round_up(step->packed_size, N8_ALIGN);
    }
    return N8_OK;
}

// Reads the model without its weights. `error` is not NULL.
static enum n8_status measure(const void *bytes, size_t size,
                              const struct n8_model_options *options, uint64_t max_bytes,
                              struct n8_reader *reader, struct n8_kernels *kernels,
                              struct n8_memory *out) {
    if (bytes == NULL) {
        return N8_E_ARGUMENT;
    }
    N8_TRY(n8_kernels_select(options == NULL ? N8_ISA_AUTO : options->isa, kernels));
    N8_TRY(n8_read_header(reader, bytes, size));
    struct n8_model *model = NULL;
    N8_TRY(read_model(reader, kernels, max_bytes, 0, &model));
    *out = model->memory;
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

enum n8_status n8_model_measure(const void *bytes, size_t size,
                                const struct n8_model_options *options, struct n8_memory *out,
                                struct n8_model_error *error) {
    struct n8_model_error ignored;
    struct n8_reader reader = {.error = error == NULL ? &ignored : error};
    *reader.error = (struct n8_model_error){.step = -1};
    if (out == NULL) {
        return explained(N8_E_ARGUMENT, reader.error);
    }
    memset(out, 0, sizeof *out);
    struct n8_kernels kernels;
    const uint64_t given = options == NULL ? 0 : options->max_bytes;
    return explained(
        measure(bytes, size, options, given == 0 ? UINT64_MAX : given, &reader, &kernels, out),
        reader.error);
}

static enum n8_status open_model(const void *bytes, size_t size,
                                 const struct n8_model_options *options, struct n8_reader *reader,
                                 struct n8_model **out) {
    struct n8_kernels kernels;
    struct n8_memory memory;
    const uint64_t given = options == NULL ? 0 : options->max_bytes;
    const uint64_t max_bytes = given == 0 ? N8_DEFAULT_MAX_BYTES : given;
    N8_TRY(measure(bytes, size, options, max_bytes, reader, &kernels, &memory));
    N8_TRY(n8_check_memory(&memory, 1, max_bytes));
    struct n8_model *model = NULL;
    N8_TRY(read_model(reader, &kernels, max_bytes, (size_t)memory.packed, &model));
    model->max_bytes = max_bytes;
    const enum n8_status status = pack(reader);
    if (status != N8_OK) {
        n8_free(model);
        return status;
    }
    *out = model;
    return N8_OK;
}

enum n8_status n8_model_open(const void *bytes, size_t size, const struct n8_model_options *options,
                             struct n8_model **out, struct n8_model_error *error) {
    struct n8_model_error ignored;
    struct n8_reader reader = {.error = error == NULL ? &ignored : error};
    *reader.error = (struct n8_model_error){.step = -1};
    if (out == NULL) {
        return explained(N8_E_ARGUMENT, reader.error);
    }
    *out = NULL;
    return explained(open_model(bytes, size, options, &reader, out), reader.error);
}

void n8_model_close(struct n8_model *model) {
    n8_free(model);
}
