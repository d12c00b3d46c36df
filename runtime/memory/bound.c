// SPDX-License-Identifier: Apache-2.0
//
// What the activations take at least, however they are placed: every value that is in use counts,
// but only once wherever one tensor may hold it for another.
#include "sharing.h"

#include <stdlib.h>

// When a tensor counts: from `born` on and before `ends`, but not while another tensor lives that
// may hold its values. `covered`: after the last of those, as far as they are known.
struct span {
    size_t born, ends, covered;
    bool narrow; // it may lie between the channels of others: its own padding does not count
};

// A view holds values of its operand, too, after that has died. True if it holds some that an
// earlier view of the same operand holds.
static bool is_repeated(const struct n8_sharing_plan *plan, size_t link) {
    enum { NEIGHBOURS = 16 };
    const struct n8_link *view = &plan->links[link];
    size_t seen = 0;
    for (size_t i = link; i-- > 0 && seen < NEIGHBOURS; seen++) {
        const struct n8_link *other = &plan->links[i];
        if (other->kind == N8_SHARES_VIEW && other->parent == view->parent) {
            const struct n8_tensor *tensor = &plan->model->tensors[view->child];
            const struct n8_tensor *before = &plan->model->tensors[other->child];
            const bool apart =
                view->pixel >= other->pixel + before->pixels ||
                other->pixel >= view->pixel + tensor->pixels ||
                view->byte >= other->byte + (size_t)before->dims[1] * n8_value_size(before) ||
                other->byte >= view->byte + (size_t)tensor->dims[1] * n8_value_size(tensor);
            if (!apart) {
                return true;
            }
        }
    }
    return seen == NEIGHBOURS;
}

// True if the child lies between other channels than its own: it is a piece of a concatenation, or
// some channels of what it is a view of.
static bool is_slice(const struct n8_sharing_plan *plan, const struct n8_link *link) {
    const struct n8_tensor *child = &plan->model->tensors[link->child];
    const struct n8_tensor *parent = &plan->model->tensors[link->parent];
    return link->kind == N8_SHARES_SLICE ||
           (link->kind == N8_SHARES_VIEW && child->dims[1] != parent->dims[1]);
}

// Whoever shares memory with a slice is one itself.
static void find_narrow(const struct n8_sharing_plan *plan, struct span *spans) {
    enum { PASSES = 8 }; // then everything that could is taken for narrow: the bound is lower
    bool changed = true;
    for (size_t pass = 0; changed; pass++) {
        changed = false;
        for (size_t i = 0; i < plan->link_count; i++) {
            const struct n8_link *link = &plan->links[pass % 2 == 0 ? plan->link_count - 1 - i : i];
            struct span *child = &spans[link->child];
            struct span *parent = &spans[link->parent];
            const bool either =
                child->narrow || parent->narrow || is_slice(plan, link) || pass >= PASSES;
            if (either && !child->narrow) {
                child->narrow = changed = true;
            }
            if (either && !parent->narrow && link->kind != N8_SHARES_SLICE) {
                parent->narrow = changed = true;
            }
        }
    }
}

static void find_spans(const struct n8_sharing_plan *plan, struct span *spans) {
    const struct n8_tensor *tensors = plan->model->tensors;
    for (size_t t = 0; t < plan->model->facts.tensor_count; t++) {
        spans[t] = (struct span){.born = tensors[t].born, .ends = tensors[t].dies + 1};
    }
    for (size_t i = 0; i < plan->link_count; i++) {
        const struct n8_link *link = &plan->links[i];
        struct span *child = &spans[link->child];
        if (link->kind != N8_SHARES_PLACE && tensors[link->parent].dies >= child->covered) {
            child->covered = tensors[link->parent].dies + 1;
        }
    }
    find_narrow(plan, spans);
    // One operand of a step needs no room beside the result that may be written over it.
    size_t done = SIZE_MAX;
    for (size_t i = 0; i < plan->link_count; i++) {
        const struct n8_link *link = &plan->links[i];
        struct span *operand = &spans[link->parent];
        if (link->kind == N8_SHARES_PLACE && link->step != done && link->step < operand->ends &&
            operand->covered <= link->step) {
            operand->ends = link->step;
            done = link->step;
        }
    }
}

// Appends the time from `begin` on and before `end`, if there is any.
static void count(struct n8_block *parts, size_t *part_count, size_t bytes, size_t begin,
                  size_t end) {
    if (begin < end) {
        parts[(*part_count)++] = (struct n8_block){.bytes = bytes, .born = begin, .dies = end - 1};
    }
}

// The times at which each tensor counts; at most one for each tensor and one for each link.
static size_t find_parts(const struct n8_sharing_plan *plan, struct span *spans,
                         struct n8_block *parts) {
    const struct n8_model *model = plan->model;
    size_t part_count = 0;
    find_spans(plan, spans);
    for (size_t t = 0; t < model->facts.tensor_count; t++) {
        spans[t].covered = spans[t].born;
    }
    // Concatenations come in the order of their births, and views hold from their own on.
    for (size_t i = 0; i <= plan->link_count + model->facts.tensor_count; i++) {
        const bool rest = i >= plan->link_count; // what is left of each tensor
        const size_t t = rest ? i - plan->link_count : plan->links[i].child;
        if (t >= model->facts.tensor_count || (!rest && plan->links[i].kind == N8_SHARES_PLACE)) {
            continue;
        }
        const struct n8_tensor *tensor = &model->tensors[t];
        struct span *span = &spans[t];
        const size_t values = n8_value_count(tensor) * n8_value_size(tensor);
        const size_t bytes = tensor->bytes == 0 ? 0 : span->narrow ? values : tensor->bytes;
        if (rest) {
            count(parts, &part_count, bytes, span->covered, span->ends);
            continue;
        }
        const struct n8_tensor *holder = &model->tensors[plan->links[i].parent];
        const size_t until = holder->born < span->ends ? holder->born : span->ends;
        count(parts, &part_count, bytes, span->covered, until);
        span->covered = holder->dies >= span->covered ? holder->dies + 1 : span->covered;
        if (plan->links[i].kind == N8_SHARES_VIEW && is_repeated(plan, i)) {
            span->covered = SIZE_MAX;
        }
    }
    return part_count;
}

enum n8_status n8_find_least(const struct n8_sharing_plan *plan, uint64_t *least) {
    const size_t steps = plan->model->facts.step_count;
    const size_t tensors = plan->model->facts.tensor_count;
    struct span *spans = malloc(tensors * sizeof *spans);
    struct n8_block *parts = malloc((tensors + plan->link_count) * sizeof *parts);
    uint64_t *load = malloc((steps + 2) * sizeof *load);
    enum n8_status status = N8_E_MEMORY;
    if (spans != NULL && parts != NULL && load != NULL) {
        *least = n8_load_of(parts, find_parts(plan, spans, parts), steps, load);
        status = N8_OK;
    }
    free(spans);
    free(parts);
    free(load);
    return status;
}
