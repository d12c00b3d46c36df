// SPDX-License-Identifier: Apache-2.0
//
// Which tensors could share memory: the links between them.
#include "sharing.h"

#include "model/operator.h"

#include <stdlib.h>
#include <string.h>

static void add_link(struct n8_sharing_plan *plan, const struct n8_link *link) {
    const struct n8_tensor *tensors = plan->model->tensors;
    if (link->child != link->parent && tensors[link->child].bytes != 0 &&
        tensors[link->parent].bytes != 0) { // neither is constant or the caller's
        plan->links[plan->link_count++] = *link;
    }
}

static bool may_write_over(const struct n8_model *model, const struct n8_step *step, size_t index) {
    const struct n8_tensor *in = n8_input(model, step, index);
    const struct n8_tensor *out = step->out;
    return (step->placing & (index == 0 ? N8_OVER_FIRST : N8_OVER_SECOND)) != 0 &&
           in->dies == out->born && in->type == out->type &&
           memcmp(in->dims, out->dims, sizeof in->dims) == 0;
}

static void find_links_of(struct n8_sharing_plan *plan, uint32_t number) {
    const struct n8_model *model = plan->model;
    const struct n8_step *step = &model->steps[number];
    const uint32_t out = step->row.output;
    size_t pixel = 0;
    size_t byte = 0;
    for (size_t i = 0; i < step->row.input_count; i++) {
        if (n8_piece_of(model, step, i, &pixel, &byte)) {
            add_link(plan, &(struct n8_link){.kind = N8_SHARES_SLICE,
                                             .step = number,
                                             .child = step->inputs[i],
                                             .parent = out,
                                             .pixel = pixel,
                                             .byte = byte});
        }
    }
    if (n8_view_of(model, step, &pixel, &byte)) {
        add_link(plan, &(struct n8_link){.kind = N8_SHARES_VIEW,
                                         .step = number,
                                         .child = out,
                                         .parent = step->inputs[0],
                                         .pixel = pixel,
                                         .byte = byte});
    }
    for (size_t i = 0; i < step->row.input_count && i < 2; i++) {
        if (may_write_over(model, step, i)) {
            add_link(plan, &(struct n8_link){.kind = N8_SHARES_PLACE,
                                             .step = number,
                                             .child = out,
                                             .parent = step->inputs[i]});
        }
    }
}

static void find_makers(struct n8_sharing_plan *plan) {
    const struct n8_model *model = plan->model;
    for (size_t t = 0; t < model->facts.tensor_count; t++) {
        plan->maker[t] = N8_NOBODY;
        plan->sliceable[t] = true;
    }
    for (uint32_t s = 0; s < model->facts.step_count; s++) {
        const struct n8_step *step = &model->steps[s];
        plan->maker[step->row.output] = s;
        if ((step->placing & N8_WRITES_SLICES) == 0) {
            plan->sliceable[step->row.output] = false;
        }
        for (size_t i = 0; (step->placing & N8_READS_SLICES) == 0 && i < step->row.input_count;
             i++) {
            plan->sliceable[step->inputs[i]] = false;
        }
    }
}

enum n8_status n8_find_links(struct n8_sharing_plan *plan) {
    const struct n8_model *model = plan->model;
    const size_t tensors = model->facts.tensor_count;
    size_t most = 1;
    for (size_t s = 0; s < model->facts.step_count; s++) {
        most += 3 + model->steps[s].row.input_count; // a view, two places and the slices
    }
    plan->links = calloc(most, sizeof *plan->links);
    plan->maker = calloc(tensors, sizeof *plan->maker);
    plan->sliceable = calloc(tensors, sizeof *plan->sliceable);
    plan->members = calloc(tensors, sizeof *plan->members);
    plan->groups = calloc(tensors, sizeof *plan->groups);
    if (plan->links == NULL || plan->maker == NULL || plan->sliceable == NULL ||
        plan->members == NULL || plan->groups == NULL) {
        n8_free_links(plan);
        return N8_E_MEMORY;
    }
    find_makers(plan);
    for (size_t s = 0; s < model->facts.step_count; s++) {
        find_links_of(plan, (uint32_t)s);
    }
    return N8_OK;
}

void n8_free_links(struct n8_sharing_plan *plan) {
    free(plan->links);
    free(plan->maker);
    free(plan->sliceable);
    free(plan->members);
    free(plan->groups);
}
