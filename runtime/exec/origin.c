// SPDX-License-Identifier: Apache-2.0
#include "origin.h"

#include "memory/allocate.h"
#include "model/operator.h"
#include "size.h"

#include <pthread.h>
#include <string.h>

// What one step packed for a kernel; its bytes follow, aligned.
struct packed {
    struct packed *next; // of the same step
    struct n8_conv conv;
    struct n8_conv_proof proof;
};

struct n8_origin {
    pthread_mutex_t lock; // of `packed`
    struct n8_file_header header;
    struct n8_file_shapes shapes;
    const uint8_t *bytes;
    struct packed *packed[]; // of each step
};

struct n8_origin *n8_origin_create(const struct n8_reader *reader) {
    const struct n8_file_header *h = &reader->header;
    const size_t head =
        n8_round_up(sizeof(struct n8_origin) + h->op_count * sizeof(struct packed *), N8_ALIGN);
    struct n8_origin *origin = n8_allocate(n8_add(head, (size_t)h->file_size));
    if (origin == NULL || pthread_mutex_init(&origin->lock, NULL) != 0) {
        n8_free(origin);
        return NULL;
    }
    uint8_t *bytes = (uint8_t *)origin + head;
    memcpy(bytes, reader->bytes, (size_t)h->file_size);
    origin->bytes = bytes;
    origin->header = *h;
    origin->shapes = reader->shapes.table;
    return origin;
}

void n8_origin_close(struct n8_origin *origin) {
    if (origin == NULL) {
        return;
    }
    for (size_t s = 0; s < origin->header.op_count; s++) {
        for (struct packed *it = origin->packed[s], *next; it != NULL; it = next) {
            next = it->next;
            n8_free(it);
        }
    }
    pthread_mutex_destroy(&origin->lock);
    n8_free(origin);
}

void n8_origin_read(const struct n8_origin *origin, struct n8_reader *reader) {
    reader->bytes = origin->bytes;
    reader->header = origin->header;
    reader->shapes.table = origin->shapes;
    reader->arrays_end = origin->header.data;
}

static enum n8_status pack_or_take(struct n8_origin *origin, struct n8_reader *reader,
                                   size_t index) {
    struct n8_step *step = &reader->model->steps[index];
    const size_t head = n8_round_up(sizeof(struct packed), N8_ALIGN);
    struct packed *it = origin->packed[index];
    while (it != NULL && !n8_conv_packs_alike(&it->conv, &step->conv)) {
        it = it->next;
    }
    if (it != NULL) {
        n8_conv_adopt(&step->conv, &it->conv);
        step->proof = it->proof;
        step->packed = (uint8_t *)it + head;
        return N8_OK;
    }
    it = n8_allocate(n8_add(head, step->packed_size));
    if (it == NULL) {
        return N8_E_MEMORY;
    }
    step->packed = (uint8_t *)it + head;
    const enum n8_status status = n8_pack_step(reader, step, (uint8_t *)it + head);
    if (status != N8_OK) {
        n8_free(it);
        return status;
    }
    it->conv = step->conv;
    it->proof = step->proof;
    it->next = origin->packed[index];
    origin->packed[index] = it;
    return N8_OK;
}

enum n8_status n8_origin_pack(struct n8_origin *origin, struct n8_reader *reader, size_t step) {
    pthread_mutex_lock(&origin->lock);
    const enum n8_status status = pack_or_take(origin, reader, step);
    pthread_mutex_unlock(&origin->lock);
    return status;
}
