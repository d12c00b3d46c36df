// SPDX-License-Identifier: Apache-2.0
//
// A session: the memory of one run, and the threads that share its work.
#ifndef N8_SESSION_H
#define N8_SESSION_H

#include "model/model.h"
#include "threads.h"

struct n8_session {
    const struct n8_model *model;
    struct n8_threads *threads; // NULL for one thread
    struct n8_threads *own;     // those of them that end with the session, or NULL
    uint8_t *arena;
    uint8_t *scratch; // threads x scratch_stride
    size_t scratch_stride;
    const void *const *inputs; // of the current run
    void *const *outputs;
    const void *const *bound_inputs; // NULL, or what runs use that name none
    void *const *bound_outputs;
    uint64_t (*clock)(void *context); // NULL, or what it showed in the last run follows the struct
    void *clock_context;
};

// Where a tensor lives; not for one that stays with the caller.
static inline uint8_t *n8_buffer(const struct n8_session *session, uint32_t tensor) {
    const struct n8_tensor *t = &session->model->tensors[tensor];
    return t->fixed != NULL ? t->fixed : session->arena + t->offset;
}

static inline void *n8_in_buffer(const struct n8_session *session, const struct n8_step *step,
                                 size_t index) {
    return n8_buffer(session, step->inputs[index]);
}

static inline void *n8_out_buffer(const struct n8_session *session, const struct n8_step *step) {
    return n8_buffer(session, step->row.output);
}

// Pixel `pixel` of an input and of the output of a step. Pixels are numbered in N H W order; the
// channels of one are contiguous.
static inline const void *n8_in_pixel(const struct n8_session *session, const struct n8_step *step,
                                      size_t index, size_t pixel) {
    return n8_buffer(session, step->inputs[index]) +
           pixel * n8_input(session->model, step, index)->pixel_stride;
}

static inline void *n8_out_pixel(const struct n8_session *session, const struct n8_step *step,
                                 size_t pixel) {
    return n8_buffer(session, step->row.output) + pixel * step->out->pixel_stride;
}

// Bytes of a pixel that may be written: what pads it, too, unless the tensor is a slice, when
// that is another tensor's.
static inline size_t n8_pixel_room(const struct n8_tensor *tensor) {
    return tensor->slice ? (size_t)tensor->dims[1] * n8_value_size(tensor) : tensor->pixel_stride;
}

// A unit of what converts between planes and pixels: pixels [first, first + count) of an image.
struct n8_piece {
    size_t image, first, count;
};

enum { N8_PIECE = 1024 }; // pixels of a plane that stay in L1

static inline size_t n8_piece_count(const struct n8_tensor *tensor) {
    const size_t images = (size_t)tensor->dims[0];
    return images * n8_pieces(tensor->pixels / images, N8_PIECE);
}

static inline struct n8_piece n8_piece_at(const struct n8_tensor *tensor, size_t unit) {
    const size_t area = tensor->pixels / (size_t)tensor->dims[0];
    const size_t pieces = n8_pieces(area, N8_PIECE);
    const size_t first = unit % pieces * N8_PIECE, rest = area - first;
    return (struct n8_piece){unit / pieces, first, rest < N8_PIECE ? rest : N8_PIECE};
}

#endif // N8_SESSION_H
