// SPDX-License-Identifier: Apache-2.0
//
// What the activations take at least, however they are placed. Every value counts once while a
// tensor that holds it is in use: those of a concatenation as those of its pieces, those of a view
// as those of its operand.
#include "sharing.h"

#include "size.h"

#include <stdlib.h>

struct span {
    size_t from, ends;    // the tensor counts from one step on and before another
    size_t reach;         // from then on nothing that it has values of, or that has its, counts
    size_t bytes;         // that it does not have from pieces
    uint32_t step;        // the last concatenation that it is a piece of, or N8_NOBODY
    bool narrow;          // it may lie between the channels of others: its padding does not count
    struct n8_box viewed; // what views of it hold, and what lies between them
};

// Pieces of a concatenation and views of some channels lie between the channels of others, and so
// does whoever shares memory with one that does.
static void find_narrow(const struct n8_sharing_plan *plan, struct span *spans) {
    enum { PASSES = 8 }; // then all that share are taken for narrow: the bound is lower
    bool changed = true;
    for (size_t pass = 0; changed; pass++) {
        changed = false;
        for (size_t i = 0; i < plan->link_count; i++) {
            const struct n8_link *link = &plan->links[pass % 2 == 0 ? plan->link_count - 1 - i : i];
            struct span *child = &spans[link->child];
            struct span *parent = &spans[link->parent];
            const bool slice = link->kind == N8_SHARES_SLICE;
            const bool cut = plan->model->tensors[link->child].dims[1] !=
                             plan->model->tensors[link->parent].dims[1];
            if (!slice && !cut && pass < PASSES && !child->narrow && !parent->narrow) {
                continue;
            }
            changed = changed || !child->narrow || (!slice && !parent->narrow);
            child->narrow = true;
            parent->narrow = parent->narrow || !slice;
        }
    }
}

// True if a view holds what views of the same operand before it hold, too.
static bool is_repeated(const struct n8_tensor *tensors, const struct n8_link *view,
                        struct n8_box *viewed) {
    const struct n8_box box = n8_box_at(&tensors[view->child], view->pixel, view->byte);
    const bool first = viewed->pixel_end == 0;
    const bool repeated = n8_boxes_meet(box, *viewed);
    viewed->pixel = first ? box.pixel : n8_smaller(box.pixel, viewed->pixel);
    viewed->byte = first ? box.byte : n8_smaller(box.byte, viewed->byte);
    viewed->pixel_end = n8_larger(box.pixel_end, viewed->pixel_end);
    viewed->byte_end = n8_larger(box.byte_end, viewed->byte_end);
    return repeated;
}

static void find_spans(const struct n8_sharing_plan *plan, struct span *spans) {
    const struct n8_tensor *tensors = plan->model->tensors;
    for (size_t t = 0; t < plan->model->facts.tensor_count; t++) {
        spans[t] =
            (struct span){.from = tensors[t].born, .ends = tensors[t].dies + 1, .step = N8_NOBODY};
    }
    find_narrow(plan, spans);
    for (size_t i = plan->link_count; i-- > 0;) { // a concatenation before its pieces
        const struct n8_link *link = &plan->links[i];
        if (link->kind == N8_SHARES_SLICE) {
            spans[link->child].ends = n8_larger(spans[link->child].ends, spans[link->parent].ends);
        }
    }
    for (size_t t = 0; t < plan->model->facts.tensor_count; t++) {
        const size_t used = tensors[t].pixels * n8_used_bytes(&tensors[t]);
        spans[t].reach = spans[t].ends;
        spans[t].bytes = tensors[t].bytes == 0 || !spans[t].narrow ? tensors[t].bytes : used;
    }
    for (size_t i = 0; i < plan->link_count; i++) {
        const struct n8_link *link = &plan->links[i];
        struct span *child = &spans[link->child];
        struct span *parent = &spans[link->parent];
        if (link->kind == N8_SHARES_SLICE) {
            parent->reach = n8_larger(parent->reach, child->reach);
            if (child->step != link->step) { // a concatenation that has it twice needs room for it
                child->step = link->step;
                parent->bytes -= tensors[link->child].pixels * n8_used_bytes(&tensors[link->child]);
            }
        } else if (link->kind == N8_SHARES_VIEW) {
            const bool repeated = is_repeated(tensors, link, &parent->viewed);
            child->from = repeated ? SIZE_MAX : n8_larger(parent->reach, child->from);
            child->reach = n8_larger(child->from, child->reach);
        } else { // while the step runs, it may lie over the operand
            child->from = n8_larger(child->from, link->step + (size_t)1);
        }
    }
}

enum n8_status n8_find_least(const struct n8_sharing_plan *plan, uint64_t *least) {
    const size_t steps = plan->model->facts.step_count;
    struct span *spans = malloc(plan->model->facts.tensor_count * sizeof *spans);
    uint64_t *changes = calloc(steps + 2, sizeof *changes);
    enum n8_status status = N8_E_MEMORY;
    if (spans != NULL && changes != NULL) {
        find_spans(plan, spans);
        for (size_t t = 0; t < plan->model->facts.tensor_count; t++) {
            if (spans[t].from < spans[t].ends) { // modulo 2^64
                changes[spans[t].from] += spans[t].bytes;
                changes[spans[t].ends] -= spans[t].bytes;
            }
        }
        uint64_t load = 0;
        *least = 0;
        for (size_t s = 0; s <= steps; s++) {
            load += changes[s];
            *least = load > *least ? load : *least;
        }
        status = N8_OK;
    }
    free(spans);
    free(changes);
    return status;
}
