// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include "memory.h"
#include "size.h"

#include <stdlib.h>

enum { MAX_THREADS = 64 };

struct conv_context {
    const struct n8_session *session;
    const struct n8_conv *conv;
    struct n8_conv_io io;
};

static void conv_work(void *argument, size_t begin, size_t end, size_t worker) {
    const struct conv_context *context = argument;
    const struct n8_session *session = context->session;
    n8_conv_run(context->conv, &context->io, begin, end,
                session->scratch + worker * session->scratch_stride);
}

static void run_conv(struct n8_session *session, const struct n8_step *step) {
    const struct n8_tensor *tensors = session->model->tensors;
    struct conv_context context = {
        .session = session,
        .conv = &step->conv,
        .io =
            {
                .out = n8_buffer(session, step->output),
                .out_stride = (ptrdiff_t)tensors[step->output].pixel_stride,
                .in = (const int8_t *)n8_buffer(session, step->inputs[0]),
                .in_stride = (ptrdiff_t)tensors[step->inputs[0]].pixel_stride,
            },
    };
    if (step->input_count == 2) {
        context.io.residual = (const int8_t *)n8_buffer(session, step->inputs[1]);
        context.io.residual_stride = (ptrdiff_t)tensors[step->inputs[1]].pixel_stride;
    }
    n8_pool_run(session->pool, step->conv.units, conv_work, &context);
}

static void run_step(struct n8_session *session, const struct n8_step *step) {
    switch (step->kind) {
    case N8_OP_QUANTIZE:
        n8_run_quantize(session, step);
        break;
    case N8_OP_DEQUANTIZE:
        n8_run_dequantize(session, step);
        break;
    case N8_OP_CONV2D:
        run_conv(session, step);
        break;
    case N8_OP_ADD:
    case N8_OP_REQUANTIZE:
        n8_run_pointwise(session, step);
        break;
    case N8_OP_MAX_POOL:
    case N8_OP_AVERAGE_POOL:
        n8_run_pool(session, step);
        break;
    case N8_OP_CONCAT:
        n8_run_concat(session, step);
        break;
    case N8_OP_RESHAPE:
        n8_run_reshape(session, step);
        break;
    case N8_OP_SOFTMAX:
        n8_run_softmax(session, step);
        break;
    }
}

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
    // Session, arena and the threads' scratch in one allocation.
    const size_t head = n8_round_up(sizeof(struct n8_session), N8_ALIGN);
    const size_t scratch = n8_round_up(model->scratch_size, N8_ALIGN);
    const size_t size = n8_add(n8_add(head, model->arena_size), n8_mul(scratch, (size_t)threads));
    struct n8_session *session = n8_allocate(size);
    if (session == NULL) {
        return N8_E_MEMORY;
    }
    session->model = model;
    session->arena = (uint8_t *)session + head;
    session->scratch = session->arena + model->arena_size;
    session->scratch_stride = scratch;
    if (threads > 1) {
        session->pool = n8_pool_create((size_t)threads);
        if (session->pool == NULL) {
            free(session);
            return N8_E_MEMORY;
        }
    }
    *out = session;
    return N8_OK;
}

void n8_session_destroy(struct n8_session *session) {
    if (session != NULL) {
        n8_pool_destroy(session->pool);
        free(session);
    }
}

enum n8_status n8_session_run(struct n8_session *session, const void *const *inputs,
                              void *const *outputs) {
    if (session == NULL || inputs == NULL || outputs == NULL) {
        return N8_E_ARGUMENT;
    }
    const struct n8_model *model = session->model;
    for (size_t i = 0; i < model->input_count; i++) {
        if (inputs[i] == NULL) {
            return N8_E_ARGUMENT;
        }
    }
    for (size_t i = 0; i < model->output_count; i++) {
        if (outputs[i] == NULL) {
            return N8_E_ARGUMENT;
        }
    }
    session->inputs = inputs;
    for (size_t i = 0; i < model->input_count; i++) {
        const struct n8_tensor *tensor = &model->tensors[model->inputs[i]];
        if (tensor->type == N8_TYPE_S8) {
            n8_copy_in(tensor, n8_buffer(session, model->inputs[i]), inputs[i]);
        }
    }
    for (size_t s = 0; s < model->step_count; s++) {
        run_step(session, &model->steps[s]);
    }
    for (size_t i = 0; i < model->output_count; i++) {
        const struct n8_tensor *tensor = &model->tensors[model->outputs[i]];
        n8_copy_out(tensor, n8_buffer(session, model->outputs[i]), outputs[i]);
    }
    return N8_OK;
}
