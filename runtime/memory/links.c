// SPDX-License-Identifier: Apache-2.0
//
// Which tensors could share memory: the links between them, and what these connect.
#include "sharing.h"

#include "model/operator.h"

#include <stdlib.h>
#include <string.h>

// Links -------------------------------------------------------------------------------

static void add_link(struct n8_sharing_plan *plan, const struct n8_link *link) {
    const struct n8_tensor *child = &plan->model->tensors[link->child];
    const struct n8_tensor *parent = &plan->model->tensors[link->parent];
    if (link->child != link->parent && child->bytes != 0 && parent->bytes != 0) {
        plan->links[plan->link_count] = *link;
        plan->links[plan->link_count++].wanted = true;
    }
}

static void find_links_of(struct n8_sharing_plan *plan, uint32_t number) {
    const struct n8_model *model = plan->model;
    const struct n8_step *step = &model->steps[number];
    struct n8_link link = {.step = number};
    for (size_t i = 0; step->op->piece != NULL && i < step->row.input_count; i++) {
        link.kind = N8_SHARES_SLICE;
        link.child = step->inputs[i];
        link.parent = step->row.output;
        if (step->op->piece(model, step, i, &link.pixel, &link.byte)) {
            add_link(plan, &link);
        }
    }
    if (step->row.input_count == 0) {
        return;
    }
    link.child = step->row.output;
    link.parent = step->inputs[0];
    if (step->op->view != NULL && step->op->view(model, step, &link.pixel, &link.byte)) {
        link.kind = N8_SHARES_VIEW;
        add_link(plan, &link);
    }
    link.pixel = link.byte = 0;
    link.kind = N8_SHARES_PLACE;
    for (size_t i = 0; i < step->row.input_count && i < 2; i++) {
        const struct n8_tensor *in = n8_input(model, step, i);
        const struct n8_tensor *out = n8_output(model, step);
        link.parent = step->inputs[i];
        if ((step->placing & (i == 0 ? N8_OVER_FIRST : N8_OVER_SECOND)) != 0 &&
            in->dies == number && in->type == out->type &&
            memcmp(in->dims, out->dims, sizeof in->dims) == 0) {
            add_link(plan, &link);
        }
    }
}

static void find_readers(struct n8_sharing_plan *plan) {
    const struct n8_model *model = plan->model;
    uint32_t *first = plan->first_reader; // as yet: the number of readers of the tensor before
    for (size_t s = 0; s < model->facts.step_count; s++) {
        for (size_t i = 0; i < model->steps[s].row.input_count; i++) {
            first[model->steps[s].inputs[i] + 1]++;
        }
    }
    for (size_t t = 0; t < model->facts.tensor_count; t++) {
        first[t + 1] += first[t];
    }
    const uint32_t total = first[model->facts.tensor_count];
    for (size_t s = model->facts.step_count; s-- > 0;) { // each list from its end
        for (size_t i = 0; i < model->steps[s].row.input_count; i++) {
            const uint32_t t = model->steps[s].inputs[i];
            plan->readers[--first[t + 1]] = (uint32_t)s;
        }
    }
    for (size_t t = 0; t < model->facts.tensor_count; t++) { // what was its end is its beginning
        first[t] = first[t + 1];
    }
    first[model->facts.tensor_count] = total;
}

// True if whoever makes and whoever reads the tensor finds its channels between others.
static void find_sliceable(struct n8_sharing_plan *plan) {
    const struct n8_model *model = plan->model;
    for (size_t t = 0; t < model->facts.tensor_count; t++) {
        plan->sliceable[t] = true;
    }
    for (size_t s = 0; s < model->facts.step_count; s++) {
        const struct n8_step *step = &model->steps[s];
        if ((step->placing & N8_WRITES_SLICES) == 0) {
            plan->sliceable[step->row.output] = false;
        }
        for (size_t i = 0; (step->placing & N8_READS_SLICES) == 0 && i < step->row.input_count;
             i++) {
            plan->sliceable[step->inputs[i]] = false;
        }
    }
}

// Components --------------------------------------------------------------------------

static uint32_t root_of(uint32_t *above, uint32_t tensor) {
    while (above[tensor] != tensor) {
        above[tensor] = above[above[tensor]];
        tensor = above[tensor];
    }
    return tensor;
}

static void find_components(struct n8_sharing_plan *plan) {
    const uint32_t tensors = (uint32_t)plan->model->facts.tensor_count;
    uint32_t *above = plan->merged; // of each tensor: one of its component, or itself
    for (uint32_t t = 0; t < tensors; t++) {
        above[t] = t;
    }
    for (size_t i = 0; i < plan->link_count; i++) {
        above[root_of(above, plan->links[i].child)] = root_of(above, plan->links[i].parent);
    }
    for (uint32_t t = 0; t < tensors; t++) { // numbers of the roots, then of all
        plan->component[t] = above[t] == t ? (uint32_t)plan->component_count++ : 0;
    }
    for (uint32_t t = 0; t < tensors; t++) {
        plan->component[t] = plan->component[root_of(above, t)];
        plan->components[plan->component[t]].tensors++;
    }
    for (size_t i = 0; i < plan->link_count; i++) {
        plan->components[plan->component[plan->links[i].child]].links++;
    }
    for (size_t c = 1; c < plan->component_count; c++) {
        const struct n8_component *before = &plan->components[c - 1];
        plan->components[c].first_tensor = before->first_tensor + before->tensors;
        plan->components[c].first_link = before->first_link + before->links;
    }
    for (size_t c = 0; c < plan->component_count; c++) { // counted anew as they are put down
        plan->components[c].tensors = plan->components[c].links = 0;
        plan->components[c].born = SIZE_MAX;
    }
    for (uint32_t t = 0; t < tensors; t++) {
        struct n8_component *component = &plan->components[plan->component[t]];
        const struct n8_tensor *tensor = &plan->model->tensors[t];
        plan->tensors_of[component->first_tensor + component->tensors++] = t;
        component->born = tensor->born < component->born ? tensor->born : component->born;
        component->dies = tensor->dies > component->dies ? tensor->dies : component->dies;
    }
    for (uint32_t i = 0; i < plan->link_count; i++) {
        struct n8_component *component = &plan->components[plan->component[plan->links[i].child]];
        plan->links_of[component->first_link + component->links++] = i;
    }
}

enum n8_status n8_find_links(struct n8_sharing_plan *plan) {
    const struct n8_model *model = plan->model;
    const size_t tensors = model->facts.tensor_count;
    const size_t steps = model->facts.step_count;
    size_t most = 3 * steps;
    for (size_t s = 0; s < steps; s++) {
        most += model->steps[s].row.input_count;
    }
    plan->producer = malloc(tensors * sizeof *plan->producer);
    plan->readers = malloc((most + 1) * sizeof *plan->readers);
    plan->first_reader = calloc(tensors + 1, sizeof *plan->first_reader);
    plan->members = calloc(tensors, sizeof *plan->members);
    plan->groups = calloc(tensors, sizeof *plan->groups);
    plan->pieces = calloc(tensors, sizeof *plan->pieces);
    plan->merged = malloc(tensors * sizeof *plan->merged);
    plan->sliceable = malloc(tensors * sizeof *plan->sliceable);
    plan->links = calloc(most, sizeof *plan->links);
    plan->tensors_of = malloc(tensors * sizeof *plan->tensors_of);
    plan->links_of = malloc(most * sizeof *plan->links_of);
    plan->components = calloc(tensors, sizeof *plan->components);
    plan->component = malloc(tensors * sizeof *plan->component);
    if (plan->producer == NULL || plan->readers == NULL || plan->first_reader == NULL ||
        plan->members == NULL || plan->groups == NULL || plan->pieces == NULL ||
        plan->merged == NULL || plan->sliceable == NULL || plan->links == NULL ||
        plan->tensors_of == NULL || plan->links_of == NULL || plan->components == NULL ||
        plan->component == NULL) {
        n8_free_links(plan);
        return N8_E_MEMORY;
    }
    memset(plan->producer, 0xff, tensors * sizeof *plan->producer); // N8_NOBODY
    for (size_t s = 0; s < steps; s++) {
        plan->producer[model->steps[s].row.output] = (uint32_t)s;
    }
    find_readers(plan);
    for (size_t s = 0; s < steps; s++) {
        find_links_of(plan, (uint32_t)s);
    }
    find_sliceable(plan);
    find_components(plan);
    return N8_OK;
}

void n8_free_links(struct n8_sharing_plan *plan) {
    free(plan->producer);
    free(plan->readers);
    free(plan->first_reader);
    free(plan->members);
    free(plan->groups);
    free(plan->pieces);
    free(plan->merged);
    free(plan->sliceable);
    free(plan->links);
    free(plan->tensors_of);
    free(plan->links_of);
    free(plan->components);
    free(plan->component);
}
