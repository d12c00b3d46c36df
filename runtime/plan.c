// SPDX-License-Identifier: Apache-2.0
//
// Where every activation lives: lifetimes, then which tensors share memory, then places in the
// arena.
#include "ops.h"
#include "place.h"
#include "share.h"
#include "size.h"

#include <stdlib.h>
#include <string.h>

// When each buffer is needed. A tensor is made by one step or is an input, never both.
static enum n8_status find_lifetimes(const struct n8_reader *reader) {
    struct n8_model *model = reader->model;
    struct n8_tensor *tensors = model->tensors;
    const size_t steps = model->facts.step_count;
    for (size_t t = 0; t < model->facts.tensor_count; t++) {
        tensors[t].born = SIZE_MAX;
    }
    for (size_t i = 0; i < model->facts.input_count; i++) {
        tensors[model->inputs[i]].born = 0;
    }
    for (size_t s = 0; s < steps; s++) {
        const struct n8_step *step = &model->steps[s];
        for (size_t i = 0; i < step->row.input_count; i++) {
            struct n8_tensor *in = &tensors[step->inputs[i]];
            if (in->born == SIZE_MAX) {
                n8_blame_step(reader, s);
                return n8_refuse(reader->error, N8_E_FORMAT,
                                 "it reads a tensor that no step before it has made");
            }
            in->dies = s;
        }
        struct n8_tensor *out = &tensors[step->row.output];
        if (out->born != SIZE_MAX) {
            n8_blame_step(reader, s);
            return n8_refuse(reader->error, N8_E_FORMAT,
                             "its output was made before, or is an input of the network");
        }
        out->born = s;
        out->dies = s;
    }
    for (size_t i = 0; i < model->facts.output_count; i++) {
        struct n8_tensor *out = &tensors[model->outputs[i]];
        out->dies = steps;
    }
    for (size_t t = 0; t < model->facts.tensor_count; t++) {
        if (tensors[t].born == SIZE_MAX) {
            n8_blame_tensor(reader, t);
            return n8_refuse(reader->error, N8_E_FORMAT, "no step makes it");
        }
    }
    return N8_OK;
}

// The plan ----------------------------------------------------------------------------

enum { BUDGET = 1 << 22 }; // looks at pairs of tensors

struct planner {
    struct n8_sharing_plan sharing;
    uint64_t least;
    struct n8_block *blocks; // of the groups
    uint32_t *group_of;      // the group of each block
    size_t block_count;
    uint64_t *load;  // at each step
    uint64_t loaded; // the most at one step
    uint64_t excess; // over all steps, how much the load is above the least
};

static const struct n8_group *tail_of(const struct n8_sharing_plan *sharing,
                                      const struct n8_group *group) {
    return &sharing->groups[sharing->members[sharing->links[group->tail].child].group];
}

// Where in the block of a group its tail begins: both end with the same byte in use.
static size_t tail_begin(const struct n8_group *group, const struct n8_group *tail) {
    return group->pixels * group->stride - tail->pixels * tail->stride;
}

// Groups the tensors and sums up what that takes.
static void try_links(struct planner *p) {
    const struct n8_model *model = p->sharing.model;
    n8_group_tensors(&p->sharing);
    p->block_count = 0;
    for (uint32_t t = 0; t < model->facts.tensor_count; t++) {
        const struct n8_group *group = &p->sharing.groups[t];
        if (group->members == 0 || group->is_tail || model->tensors[t].bytes == 0) {
            continue;
        }
        struct n8_block block = {
            .bytes = n8_round_up(n8_add(group->pixels * group->stride, N8_SLACK), N8_ALIGN),
            .born = group->born,
            .dies = group->dies,
        };
        if (group->tail != N8_NOBODY) {
            const struct n8_group *tail = tail_of(&p->sharing, group);
            block.tail = block.bytes - tail_begin(group, tail);
            block.tail_born = tail->born;
        }
        p->group_of[p->block_count] = t;
        p->blocks[p->block_count++] = block;
    }
    p->loaded = n8_load_of(p->blocks, p->block_count, model->facts.step_count, p->load);
    p->excess = 0;
    for (size_t s = 0; s <= model->facts.step_count; s++) {
        p->excess += p->load[s] > p->least ? p->load[s] - p->least : 0;
    }
}

// What two ways to share are compared by.
struct cost {
    uint64_t loaded, excess;
};

static struct cost cost_of(const struct planner *p) {
    return (struct cost){p->loaded, p->excess};
}

static bool is_less(struct cost a, struct cost b) {
    return a.loaded != b.loaded ? a.loaded < b.loaded : a.excess < b.excess;
}

static void want(struct planner *p, size_t link, uint32_t step, bool wanted) {
    for (; link < p->sharing.link_count && p->sharing.links[link].step == step; link++) {
        p->sharing.links[link].wanted = wanted;
    }
}

// A piece of a concatenation holds the room of the whole from its own birth on. Where that
// takes more than copying does, it is not written there.
static void drop_links(struct planner *p) {
    struct n8_sharing_plan *sharing = &p->sharing;
    try_links(p);
    bool better = true;
    while (better && p->excess > 0) {
        better = false;
        for (size_t i = 0; i < sharing->link_count && p->excess > 0; i++) {
            const struct n8_link link = sharing->links[i];
            if (!link.used || !link.widens) {
                continue;
            }
            if (sharing->looks > BUDGET) {
                return;
            }
            const struct cost before = cost_of(p);
            sharing->links[i].wanted = false;
            try_links(p);
            if (!is_less(cost_of(p), before)) { // it may wait at the end of the whole
                sharing->links[i].late = true;
                try_links(p);
            }
            if (is_less(cost_of(p), before)) {
                better = true;
                continue;
            }
            sharing->links[i].late = false;
            const bool first = i == 0 || sharing->links[i - 1].step != link.step;
            if (first) { // all of the step together
                want(p, i, link.step, false);
                try_links(p);
                if (is_less(cost_of(p), before)) {
                    better = true;
                    continue;
                }
                want(p, i, link.step, true);
            }
            sharing->links[i].wanted = true;
            try_links(p);
        }
    }
}

// Pieces that were not to be written where they are read, as the room was needed, may come there
// later.
static void add_tails(struct planner *p) {
    for (size_t i = 0; i < p->sharing.link_count && p->excess > 0; i++) {
        struct n8_link *link = &p->sharing.links[i];
        if (link->kind != N8_SHARES_SLICE || link->used || link->late ||
            p->sharing.looks > BUDGET) {
            continue;
        }
        const struct cost before = cost_of(p);
        link->late = true;
        try_links(p);
        if (!is_less(cost_of(p), before)) {
            link->late = false;
            try_links(p);
        }
    }
}

static void write_group(const struct n8_sharing_plan *sharing, const struct n8_group *group,
                        size_t offset, struct n8_tensor *tensors) {
    for (uint32_t t = group->first; t != N8_NOBODY; t = sharing->members[t].next) {
        const struct n8_member *member = &sharing->members[t];
        struct n8_tensor *tensor = &tensors[t];
        tensor->slice = (size_t)tensor->dims[1] * n8_value_size(tensor) != group->bytes;
        tensor->pixel_stride = group->stride;
        tensor->offset = offset + member->pixel * group->stride + member->byte;
    }
}

static void write_places(struct planner *p, struct n8_model *model) {
    struct n8_sharing_plan *sharing = &p->sharing;
    for (size_t b = 0; b < p->block_count; b++) {
        const struct n8_group *group = &sharing->groups[p->group_of[b]];
        write_group(sharing, group, p->blocks[b].offset, model->tensors);
        if (group->tail != N8_NOBODY) {
            const struct n8_group *tail = tail_of(sharing, group);
            write_group(sharing, tail, p->blocks[b].offset + tail_begin(group, tail),
                        model->tensors);
        }
    }
    for (uint32_t t = 0; t < model->facts.tensor_count; t++) {
        struct n8_tensor *tensor = &model->tensors[t];
        tensor->sharing = tensor->caller ? N8_SHARES_CALLER : N8_SHARES_NOTHING;
        tensor->shared = t;
    }
    for (size_t i = 0; i < sharing->link_count; i++) {
        const struct n8_link *link = &sharing->links[i];
        if (link->used) {
            model->tensors[link->child].sharing = link->kind;
            model->tensors[link->child].shared = link->parent;
        }
    }
    for (size_t b = 0; b < p->block_count; b++) {
        const struct n8_group *group = &sharing->groups[p->group_of[b]];
        if (group->tail != N8_NOBODY) {
            const struct n8_link *link = &sharing->links[group->tail];
            const struct n8_tensor *whole = &model->tensors[link->parent];
            struct n8_tensor *child = &model->tensors[link->child];
            child->sharing = N8_SHARES_TAIL;
            child->shared = link->parent;
            model->steps[group->born].spread = (struct n8_spread){
                .tensor = link->child,
                .wanted = true,
                .offset = whole->offset + link->byte,
                .stride = whole->pixel_stride,
            };
        }
    }
}

static bool lies_at(const struct n8_tensor *part, const struct n8_tensor *whole, size_t pixel,
                    size_t byte) {
    const bool placed = part->bytes != 0 && whole->bytes != 0; // not a constant
    return placed && part->pixel_stride == whole->pixel_stride &&
           part->offset == whole->offset + pixel * whole->pixel_stride + byte;
}

// Steps that would move values to where they are have no work.
static void clear_moves(struct n8_model *model) {
    for (size_t s = 0; s < model->facts.step_count; s++) {
        struct n8_step *step = &model->steps[s];
        const struct n8_tensor *out = n8_output(model, step);
        size_t pixel = 0;
        size_t byte = 0;
        bool done = step->op->piece != NULL;
        for (size_t i = 0; done && i < step->row.input_count; i++) {
            done = step->op->piece(model, step, i, &pixel, &byte) &&
                   (n8_is_spread(model, step, i) ||
                    lies_at(n8_input(model, step, i), out, pixel, byte));
        }
        if (step->op->view != NULL && step->op->view(model, step, &pixel, &byte)) {
            done = done || lies_at(out, n8_input(model, step, 0), pixel, byte);
        }
        if (done) {
            step->units = 0;
            step->kernel_name = "none";
        }
    }
}

static enum n8_status plan_places(struct planner *p, struct n8_model *model) {
    enum n8_status status = n8_find_least(&p->sharing, &p->least);
    if (status != N8_OK) {
        return status;
    }
    drop_links(p);
    add_tails(p);
    status = n8_place_blocks(p->blocks, p->block_count, p->loaded, &model->memory.arena);
    if (status == N8_OK) {
        model->memory.arena_least = p->least;
        write_places(p, model);
        clear_moves(model);
    }
    return status;
}

enum n8_status n8_plan_arena(const struct n8_reader *reader) {
    struct n8_model *model = reader->model;
    const size_t count = model->facts.tensor_count;
    enum n8_status status = find_lifetimes(reader);
    if (status != N8_OK) {
        return status;
    }
    struct planner planner = {.sharing = {.model = model}};
    planner.blocks = malloc(count * sizeof *planner.blocks);
    planner.group_of = malloc(count * sizeof *planner.group_of);
    planner.load = malloc((model->facts.step_count + 2) * sizeof *planner.load);
    if (planner.blocks == NULL || planner.group_of == NULL || planner.load == NULL) {
        status = N8_E_MEMORY;
    } else {
        status = n8_find_links(&planner.sharing);
    }
    if (status == N8_OK) {
        status = plan_places(&planner, model);
        n8_free_links(&planner.sharing);
    }
    free(planner.blocks);
    free(planner.group_of);
    free(planner.load);
    return status;
}
