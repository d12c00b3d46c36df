// SPDX-License-Identifier: Apache-2.0
//
// Where every activation lives: lifetimes, then which tensors share memory, then places in the
// arena.
#include "plan.h"

#include "model/operator.h"
#include "offsets.h"
#include "sharing.h"
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

enum { CHUNK = 128 };

struct planner {
    struct n8_sharing_plan sharing;
    uint64_t least;
    struct n8_block *blocks; // of the groups
    uint32_t *group_of;      // the group of each block
    size_t block_count;
    uint64_t *load;    // at each step: the sum of the blocks in use
    uint64_t *changes; // of it that are to come, from one step to the next
    uint64_t *most;    // of each CHUNK of steps
    uint64_t loaded;   // the most at one step
    uint64_t excess;   // over all steps, how much the load is above the least
};

static struct n8_group *tail_of(struct n8_sharing_plan *sharing, const struct n8_group *group) {
    return &sharing->groups[n8_place_in_group(sharing, sharing->links[group->tail].child).group];
}

// Where in the block of a group its tail begins: both end with the same byte in use.
static size_t tail_begin(const struct n8_group *group, const struct n8_group *tail) {
    return group->pixels * group->stride - tail->pixels * tail->stride;
}

// True if the tensor's number is that of a group with a block of its own.
static bool has_block(const struct n8_sharing_plan *sharing, uint32_t tensor) {
    const struct n8_group *group = &sharing->groups[tensor];
    return group->members > 0 && !group->is_tail && sharing->model->tensors[tensor].bytes > 0;
}

static struct n8_block block_of(struct n8_sharing_plan *sharing, const struct n8_group *group) {
    struct n8_block block = {
        .bytes = n8_round_up(n8_add(group->pixels * group->stride, N8_SLACK), N8_ALIGN),
        .born = group->born,
        .dies = group->dies,
    };
    if (group->tail != N8_NOBODY) {
        const struct n8_group *tail = tail_of(sharing, group);
        block.tail = block.bytes - tail_begin(group, tail);
        block.tail_born = tail->born;
    }
    return block;
}

static void count_blocks(struct planner *p, uint32_t component, uint64_t times) {
    struct n8_sharing_plan *sharing = &p->sharing;
    const struct n8_component *it = &sharing->components[component];
    for (uint32_t i = 0; i < it->tensors; i++) {
        const uint32_t t = sharing->tensors_of[it->first_tensor + i];
        if (has_block(sharing, t)) {
            const struct n8_block block = block_of(sharing, &sharing->groups[t]);
            n8_count_block(&block, times, p->changes);
        }
    }
}

static uint64_t above_least(const struct planner *p, size_t step) {
    return p->load[step] > p->least ? p->load[step] - p->least : 0;
}

// Makes the changes, all of which are at steps from .. to + 1.
static void change_load(struct planner *p, size_t from, size_t to) {
    enum { STEPS_OF_A_LOOK = 8 }; // that take as long as one
    const size_t steps = p->sharing.model->facts.step_count;
    uint64_t change = 0;
    for (size_t s = from; s <= to; s++) {
        change += p->changes[s];
        p->changes[s] = 0;
        p->excess -= above_least(p, s);
        p->load[s] += change;
        p->excess += above_least(p, s);
    }
    p->changes[to + 1] = 0;
    for (size_t chunk = from / CHUNK; chunk <= to / CHUNK; chunk++) {
        p->most[chunk] = 0;
        for (size_t s = chunk * CHUNK; s <= steps && s < (chunk + 1) * CHUNK; s++) {
            p->most[chunk] = p->load[s] > p->most[chunk] ? p->load[s] : p->most[chunk];
        }
    }
    p->loaded = 0;
    for (size_t chunk = 0; chunk <= steps / CHUNK; chunk++) {
        p->loaded = p->most[chunk] > p->loaded ? p->most[chunk] : p->loaded;
    }
    p->sharing.looks += (to - from + CHUNK + steps / CHUNK) / STEPS_OF_A_LOOK;
}

// Groups all tensors and sums up what that takes.
static void group_all(struct planner *p) {
    const size_t steps = p->sharing.model->facts.step_count;
    for (uint32_t c = 0; c < p->sharing.component_count; c++) {
        n8_group_component(&p->sharing, c);
        count_blocks(p, c, 1);
    }
    change_load(p, 0, steps);
}

// Groups those tensors anew that a changed link may be for.
static void try_link(struct planner *p, const struct n8_link *link) {
    const uint32_t component = p->sharing.component[link->child];
    const struct n8_component *it = &p->sharing.components[component];
    count_blocks(p, component, UINT64_MAX);
    n8_group_component(&p->sharing, component);
    count_blocks(p, component, 1);
    change_load(p, it->born, it->dies);
}

static void find_blocks(struct planner *p) {
    for (uint32_t t = 0; t < p->sharing.model->facts.tensor_count; t++) {
        if (has_block(&p->sharing, t)) {
            p->group_of[p->block_count] = t;
            p->blocks[p->block_count++] = block_of(&p->sharing, &p->sharing.groups[t]);
        }
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
            try_link(p, &link);
            if (!is_less(cost_of(p), before)) { // it may wait at the end of the whole
                sharing->links[i].late = true;
                try_link(p, &link);
            }
            if (is_less(cost_of(p), before)) {
                better = true;
                continue;
            }
            sharing->links[i].late = false;
            const bool first = i == 0 || sharing->links[i - 1].step != link.step;
            if (first) { // all of the step together
                want(p, i, link.step, false);
                try_link(p, &link);
                if (is_less(cost_of(p), before)) {
                    better = true;
                    continue;
                }
                want(p, i, link.step, true);
            }
            sharing->links[i].wanted = true;
            try_link(p, &link);
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
        try_link(p, link);
        if (!is_less(cost_of(p), before)) {
            link->late = false;
            try_link(p, link);
        }
    }
}

static void write_places(struct planner *p, struct n8_model *model) {
    struct n8_sharing_plan *sharing = &p->sharing;
    for (size_t b = 0; b < p->block_count; b++) {
        struct n8_group *group = &sharing->groups[p->group_of[b]];
        group->offset = p->blocks[b].offset;
        if (group->tail != N8_NOBODY) {
            struct n8_group *tail = tail_of(sharing, group);
            tail->offset = group->offset + tail_begin(group, tail);
        }
    }
    for (uint32_t t = 0; t < model->facts.tensor_count; t++) {
        struct n8_tensor *tensor = &model->tensors[t];
        const struct n8_place place = n8_place_in_group(sharing, t);
        const struct n8_group *group = &sharing->groups[place.group];
        if (tensor->bytes != 0) { // neither with the caller nor constant
            tensor->slice = (size_t)tensor->dims[1] * n8_value_size(tensor) != group->bytes;
            tensor->pixel_stride = group->stride;
            tensor->offset = group->offset + place.pixel * group->stride + place.byte;
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
    group_all(p);
    drop_links(p);
    add_tails(p);
    find_blocks(p);
    model->memory.arena_least = p->least;
    if (p->loaded > PTRDIFF_MAX) { // who measures is told at least this; nobody can open it
        model->memory.arena = p->loaded;
        return N8_OK;
    }
    status = n8_place_blocks(p->blocks, p->block_count, p->loaded, &model->memory.arena);
    if (status == N8_OK) {
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
    const size_t steps = model->facts.step_count + 2;
    planner.load = calloc(steps, sizeof *planner.load);
    planner.changes = calloc(steps, sizeof *planner.changes);
    planner.most = calloc(steps / CHUNK + 1, sizeof *planner.most);
    if (planner.blocks == NULL || planner.group_of == NULL || planner.load == NULL ||
        planner.changes == NULL || planner.most == NULL) {
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
    free(planner.changes);
    free(planner.most);
    return status;
}
