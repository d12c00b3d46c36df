// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include "memory.h"
#include "ops.h"
#include "size.h"

#include <string.h>

enum { MAX_THREADS = 64 };

enum n8_status n8_session_create(const struct n8_model *model,
                                 const struct n8_session_options *options,
                                 struct n8_session **out) {
    if (out == NULL) {
        return N8_E_ARGUMENT;
    }
    *out = NULL;
    const int32_t threads = options == NULL ? 1 : options->threads;
    if (model == NULL || threads < 1 || threads > MAX_THREADS) {
        return N8_E_ARGUMENT;
    }
    const struct n8_memory *memory = &model->memory;
    // The model was opened within its limit, with one thread: only threads are left to count.
    const uint64_t left = model->max_bytes - memory->tables - memory->packed - memory->arena;
    if (memory->scratch > left / (uint64_t)threads) {
        return N8_E_LIMIT;
    }
    // Session, arena and the threads' scratch in one allocation.
    const size_t head = n8_round_up(sizeof(struct n8_session), N8_ALIGN);
    const size_t scratch = (size_t)memory->scratch;
    const size_t arena = (size_t)memory->arena;
    struct n8_session *session =
        n8_allocate(n8_add(n8_add(head, arena), n8_mul(scratch, (size_t)threads)));
    if (session == NULL) {
        return N8_E_MEMORY;
    }
    session->model = model;
    session->arena = (uint8_t *)session + head;
    session->scratch = session->arena + arena;
    session->scratch_stride = scratch;
    if (threads > 1) {
        session->threads = n8_threads_create((size_t)threads);
        if (session->threads == NULL) {
            n8_free(session);
            return N8_E_MEMORY;
        }
    }
    *out = session;
    return N8_OK;
}

void n8_session_destroy(struct n8_session *session) {
    if (session != NULL) {
        n8_threads_destroy(session->threads);
        n8_free(session);
    }
}

// An input from the caller's N C H W to the arena's N H W C.
static void copy_in(const struct n8_tensor *tensor, uint8_t *arena, const void *in) {
    const uint8_t *from = in;
    const size_t channels = (size_t)tensor->dims[1];
    const size_t area = tensor->pixels / (size_t)tensor->dims[0];
    const size_t entry = tensor->type == N8_TYPE_F32 ? sizeof(float) : 1;
    for (size_t n = 0; n < (size_t)tensor->dims[0]; n++) {
        uint8_t *image = arena + n * area * tensor->pixel_stride;
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < area; p++, from += entry) {
                memcpy(image + p * tensor->pixel_stride + c * entry, from, entry);
            }
        }
    }
}

static void copy_out(const struct n8_tensor *tensor, const uint8_t *arena, void *out) {
    const size_t channels = (size_t)tensor->dims[1];
    const size_t area = tensor->pixels / (size_t)tensor->dims[0];
    const size_t entry = tensor->type == N8_TYPE_F32 ? sizeof(float) : 1;
    uint8_t *to = out;
    for (size_t n = 0; n < (size_t)tensor->dims[0]; n++) {
        const uint8_t *image = arena + n * area * tensor->pixel_stride;
        if (area == 1) {
            memcpy(to, image, channels * entry);
            to += channels * entry;
            continue;
        }
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < area; p++, to += entry) {
                memcpy(to, image + p * tensor->pixel_stride + c * entry, entry);
            }
        }
    }
}

enum n8_status n8_session_run(struct n8_session *session, const void *const *inputs,
                              void *const *outputs) {
    if (session == NULL || inputs == NULL || outputs == NULL) {
        return N8_E_ARGUMENT;
    }
    const struct n8_model *model = session->model;
    for (size_t i = 0; i < model->facts.input_count; i++) {
        if (inputs[i] == NULL) {
            return N8_E_ARGUMENT;
        }
    }
    for (size_t i = 0; i < model->facts.output_count; i++) {
        if (outputs[i] == NULL) {
            return N8_E_ARGUMENT;
        }
    }
    session->inputs = inputs;
    for (size_t i = 0; i < model->facts.input_count; i++) {
        const struct n8_tensor *tensor = &model->tensors[model->inputs[i]];
        if (!tensor->caller) {
            copy_in(tensor, n8_buffer(session, model->inputs[i]), inputs[i]);
        }
    }
    for (size_t s = 0; s < model->facts.step_count; s++) {
        model->steps[s].op->run(session, &model->steps[s]);
    }
    for (size_t i = 0; i < model->facts.output_count; i++) {
        const struct n8_tensor *tensor = &model->tensors[model->outputs[i]];
        copy_out(tensor, n8_buffer(session, model->outputs[i]), outputs[i]);
    }
    return N8_OK;
}
