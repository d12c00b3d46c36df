// SPDX-License-Identifier: Apache-2.0
//
// A session: the memory of one run, and the steps that fill it.
#ifndef N8_RUN_H
#define N8_RUN_H

#include "model.h"
#include "pool.h"

struct n8_session {
    const struct n8_model *model;
    struct n8_pool *pool; // NULL for one thread
    uint8_t *arena;
    uint8_t *scratch; // threads x scratch_stride
    size_t scratch_stride;
    const void *const *inputs; // of the current run
};

// Where a tensor lives; not for float inputs of the graph.
static inline uint8_t *n8_buffer(const struct n8_session *session, uint32_t tensor) {
    return session->arena + session->model->tensors[tensor].offset;
}

// run_steps.c: steps without weights, on the calling thread.
void n8_run_quantize(struct n8_session *session, const struct n8_step *step);
void n8_run_dequantize(struct n8_session *session, const struct n8_step *step);
void n8_run_pointwise(struct n8_session *session, const struct n8_step *step);
void n8_run_pool(struct n8_session *session, const struct n8_step *step);
void n8_run_concat(struct n8_session *session, const struct n8_step *step);
void n8_run_reshape(struct n8_session *session, const struct n8_step *step);
void n8_run_softmax(struct n8_session *session, const struct n8_step *step);

// run_io.c: between the caller's N C H W buffers and the arena's N H W C.
void n8_copy_in(const struct n8_tensor *tensor, uint8_t *arena, const void *in);
void n8_copy_out(const struct n8_tensor *tensor, const uint8_t *arena, void *out);

#endif // N8_RUN_H
