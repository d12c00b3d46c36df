// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include "memory/allocate.h"
#include "model/operator.h"
#include "move/planes.h"
#include "size.h"

#include <string.h>

enum n8_status n8_session_create(const struct n8_model *model,
                                 const struct n8_session_options *options,
                                 struct n8_session **out) {
    if (out == NULL) {
        return N8_E_ARGUMENT;
    }
    *out = NULL;
    static const struct n8_session_options plain = {.threads = 1};
    const struct n8_session_options *given = options == NULL ? &plain : options;
    struct n8_threads *pool = given->pool;
    const int32_t own = given->threads;
    if (model == NULL || !N8_NOTHING_RESERVED(given) ||
        (pool == NULL ? own < 1 || own > N8_MAX_THREADS : own != 0)) {
        return N8_E_ARGUMENT;
    }
    const size_t threads = pool == NULL ? (size_t)own : n8_threads_count(pool);
    const struct n8_memory *memory = &model->memory;
    const enum n8_status allowed = n8_check_memory(memory, threads, model->max_bytes);
    if (allowed != N8_OK) {
        return allowed;
    }
    const size_t times = given->clock == NULL ? 0 : model->facts.step_count + 3;
    // Session, times, arena and the threads' scratch in one allocation.
    const size_t head = n8_round_up(sizeof(struct n8_session) + times * sizeof(uint64_t), N8_ALIGN);
    const size_t scratch = (size_t)memory->scratch;
    const size_t arena = (size_t)memory->arena;
    struct n8_session *session = n8_allocate(n8_add(n8_add(head, arena), n8_mul(scratch, threads)));
    if (session == NULL) {
        return N8_E_MEMORY;
    }
    session->model = model;
    session->arena = (uint8_t *)session + head;
    session->scratch = session->arena + arena;
    session->scratch_stride = scratch;
    session->clock = given->clock;
    session->clock_context = given->clock_context;
    if (own > 1) {
        const enum n8_status status = n8_threads_create(own, &session->own);
        if (status != N8_OK) {
            n8_free(session);
            return status;
        }
    }
    session->threads = pool == NULL ? session->own : pool;
    *out = session;
    return N8_OK;
}

void n8_session_destroy(struct n8_session *session) {
    if (session != NULL) {
        n8_threads_destroy(session->own);
        n8_free(session);
    }
}

struct job {
    const struct n8_session *session;
    const struct n8_step *step;     // of a step
    const struct n8_tensor *tensor; // of a copy
    uint8_t *arena;
    const uint8_t *in;
    uint8_t *out;
};

static void run_units(void *context, size_t begin, size_t end, size_t worker) {
    const struct job *job = context;
    const struct n8_session *session = job->session;
    n8_run_step(session, job->step, begin, end,
                session->scratch + worker * session->scratch_stride);
}

// From the first pixel on, on one thread: source and destination overlap.
static void spread(const struct n8_session *session, const struct n8_spread *spread) {
    const struct n8_tensor *tensor = &session->model->tensors[spread->tensor];
    const uint8_t *from = n8_buffer(session, spread->tensor);
    uint8_t *to = session->arena + spread->offset;
    for (size_t p = 0; p < tensor->pixels; p++) {
        memmove(to, from, (size_t)tensor->dims[1] * n8_value_size(tensor));
        from += tensor->pixel_stride;
        to += spread->stride;
    }
}

static void run_step(const struct n8_session *session, const struct n8_step *step) {
    if (step->spread.wanted) {
        spread(session, &step->spread);
    }
    struct job job = {.session = session, .step = step};
    n8_threads_run(session->threads, step->units, step->grain, run_units, &job);
}

// From the caller's N C H W to the arena's N H W C where there is an `in`, else back.
static void copy_pieces(void *context, size_t begin, size_t end, size_t worker) {
    const struct job *job = context;
    const struct n8_kernels *kernels = &job->session->model->kernels;
    const struct n8_tensor *tensor = job->tensor;
    const size_t channels = (size_t)tensor->dims[1];
    const size_t area = tensor->pixels / (size_t)tensor->dims[0];
    const size_t size = n8_value_size(tensor), stride = tensor->pixel_stride;
    const size_t room = n8_pixel_room(tensor);
    for (size_t unit = begin; unit < end; unit++) {
        const struct n8_piece piece = n8_piece_at(tensor, unit);
        uint8_t *pixels = job->arena + (piece.image * area + piece.first) * stride;
        const size_t planes = (piece.image * channels * area + piece.first) * size;
        if (area == 1) {
            memcpy(job->in != NULL ? pixels : job->out + planes,
                   job->in != NULL ? job->in + planes : pixels, channels * size);
        } else if (job->in != NULL) {
            n8_interleave(kernels, pixels, stride, room, job->in + planes, area * size, channels,
                          piece.count, size);
        } else {
            n8_deinterleave(kernels, job->out + planes, area * size, pixels, stride, channels,
                            piece.count, size);
        }
    }
}

// Copies a tensor from or to the caller.
static void copy(const struct n8_session *session, uint32_t number, const void *in, void *out) {
    const struct n8_tensor *tensor = &session->model->tensors[number];
    struct job job = {
        .session = session,
        .tensor = tensor,
        .arena = n8_buffer(session, number),
        .in = in,
        .out = out,
    };
    const size_t area = tensor->pixels / (size_t)tensor->dims[0];
    const size_t piece = n8_smaller(area, N8_PIECE);
    n8_threads_run(session->threads, n8_piece_count(tensor),
                   n8_grain_of(piece * tensor->pixel_stride), copy_pieces, &job);
}

// Where what the clock shows is kept.
static uint64_t *times_of(const struct n8_session *session) {
    return session->clock == NULL ? NULL : (uint64_t *)(session + 1);
}

static void look(const struct n8_session *session, size_t index) {
    if (session->clock != NULL) {
        times_of(session)[index] = session->clock(session->clock_context);
    }
}

const uint64_t *n8_session_profile(const struct n8_session *session) {
    return session == NULL ? NULL : times_of(session);
}

enum n8_status n8_session_run(struct n8_session *session, const void *const *inputs,
                              void *const *outputs) {
    if (session == NULL || inputs == NULL || outputs == NULL) {
        return N8_E_ARGUMENT;
    }
    const struct n8_model *model = session->model;
    const size_t steps = model->facts.step_count;
    const size_t in_count = model->facts.input_count, out_count = model->facts.output_count;
    for (size_t i = 0; i < in_count; i++) {
        if (inputs[i] == NULL) {
            return N8_E_ARGUMENT;
        }
    }
    for (size_t i = 0; i < out_count; i++) {
        if (outputs[i] == NULL) {
            return N8_E_ARGUMENT;
        }
    }
    session->inputs = inputs;
    session->outputs = outputs;
    look(session, 0);
    for (size_t i = 0; i < in_count; i++) {
        if (!model->tensors[model->inputs[i]].caller) {
            copy(session, model->inputs[i], inputs[i], NULL);
        }
    }
    for (size_t s = 0; s < steps; s++) {
        look(session, s + 1);
        run_step(session, &model->steps[s]);
    }
    look(session, steps + 1);
    for (size_t i = 0; i < out_count; i++) {
        if (!model->tensors[model->outputs[i]].caller) {
            copy(session, model->outputs[i], NULL, outputs[i]);
        }
    }
    look(session, steps + 2);
    return N8_OK;
}

enum n8_status n8_session_bind(struct n8_session *session, const void *const *inputs,
                               void *const *outputs) {
    if (session == NULL || inputs == NULL || outputs == NULL) {
        return N8_E_ARGUMENT;
    }
    session->bound_inputs = inputs;
    session->bound_outputs = outputs;
    return N8_OK;
}

enum n8_status n8_session_run_bound(struct n8_session *session) {
    return session == NULL ? N8_E_ARGUMENT
                           : n8_session_run(session, session->bound_inputs, session->bound_outputs);
}
