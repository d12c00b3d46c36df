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

// The choice of links -------------------------------------------------------------------

enum { BUDGET = 1 << 22 }; // looks at tensors: no other choice is tried after that many

// What one grouping is compared with another by.
struct cost {
    uint64_t loaded; // the largest sum of blocks in use at one step
    uint64_t excess; // over all steps, how much that sum is above the least
};

struct planner {
    struct n8_sharing_plan sharing;
    uint64_t *changes;       // room: of the sum of blocks in use, from one step to the next
    struct cost cost;        // of the groups as they are
    struct n8_block *blocks; // of the groups
    uint32_t *group_of;      // the group of each block
    size_t block_count;
};

// Where in the block of a group its tail begins: both end with the same byte in use.
static size_t tail_begin(const struct n8_group *group, const struct n8_group *tail) {
    return group->pixels * group->stride - tail->pixels * tail->stride;
}

static struct n8_group *tail_of(const struct n8_sharing_plan *sharing,
                                const struct n8_group *group) {
    const uint32_t child = sharing->links[group->tail].child;
    return &sharing->groups[sharing->members[child].group];
}

// Pixels of a group that only younger members have are free until the first of these is born, as
// where images are joined, one made after the other.
static void find_early(struct planner *p, const struct n8_group *group, struct n8_block *block) {
    struct n8_sharing_plan *sharing = &p->sharing;
    const struct n8_member *members = sharing->members;
    uint32_t first = group->youngest;
    while (members[first].elder != N8_NOBODY) {
        first = members[first].elder;
        sharing->looks++;
    }
    const size_t begin = members[first].pixel;
    const size_t end = begin + sharing->model->tensors[first].pixels;
    if (end - begin == group->pixels) {
        return;
    }
    for (uint32_t t = group->youngest; t != first; t = members[t].elder) {
        const struct n8_tensor *tensor = &sharing->model->tensors[t];
        if (members[t].pixel < begin || members[t].pixel + tensor->pixels > end) {
            block->born = tensor->born;
        }
        sharing->looks++;
    }
    if (block->born > group->born) {
        block->early_begin = begin * group->stride / N8_ALIGN * N8_ALIGN;
        block->early_end = n8_round_up(n8_add(end * group->stride, N8_SLACK), N8_ALIGN);
        block->early_born = group->born;
    }
}

static void find_blocks(struct planner *p) {
    const struct n8_sharing_plan *sharing = &p->sharing;
    p->block_count = 0;
    for (uint32_t t = 0; t < sharing->model->facts.tensor_count; t++) {
        const struct n8_group *group = &sharing->groups[t];
        if (group->youngest == N8_NOBODY || group->waits || sharing->model->tensors[t].bytes == 0) {
            continue;
        }
        struct n8_block block = {
            .bytes = n8_round_up(n8_add(group->pixels * group->stride, N8_SLACK), N8_ALIGN),
            .born = group->born,
            .dies = group->dies,
        };
        if (group->tail != N8_NOBODY) {
            const struct n8_group *tail = tail_of(sharing, group);
            block.early_begin = tail_begin(group, tail);
            block.early_end = block.bytes;
            block.early_born = tail->born;
        } else {
            find_early(p, group, &block);
        }
        p->group_of[p->block_count] = t;
        p->blocks[p->block_count++] = block;
    }
}

// Groups all tensors by the wishes for the links. Returns what that takes.
static struct cost group(struct planner *p) {
    enum { STEPS_OF_A_LOOK = 8 }; // that take as long as one
    struct n8_sharing_plan *sharing = &p->sharing;
    const size_t steps = sharing->model->facts.step_count;
    const uint64_t least = sharing->model->memory.arena_least;
    n8_group_tensors(sharing);
    find_blocks(p);
    memset(p->changes, 0, (steps + 2) * sizeof *p->changes);
    for (size_t i = 0; i < p->block_count; i++) { // modulo 2^64
        const struct n8_block *block = &p->blocks[i];
        const size_t early = block->early_end - block->early_begin;
        p->changes[block->early_born] += early;
        p->changes[block->born] += block->bytes - early;
        p->changes[block->dies + 1] -= block->bytes;
    }
    struct cost cost = {0};
    uint64_t load = 0;
    for (size_t s = 0; s <= steps; s++) {
        load += p->changes[s];
        cost.loaded = load > cost.loaded ? load : cost.loaded;
        cost.excess += load > least ? load - least : 0;
    }
    sharing->looks += steps / STEPS_OF_A_LOOK;
    return cost;
}

// True if it takes less memory to have this wish for `count` links from `first` on. Else they keep
// theirs.
static bool try_wish(struct planner *p, size_t first, size_t count, enum n8_wish wish) {
    struct n8_link *links = p->sharing.links + first;
    for (size_t i = 0; i < count; i++) {
        links[i].kept = links[i].wish;
        links[i].wish = wish;
    }
    const struct cost cost = group(p);
    if (cost.loaded < p->cost.loaded ||
        (cost.loaded == p->cost.loaded && cost.excess < p->cost.excess)) {
        p->cost = cost;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        links[i].wish = links[i].kept;
    }
    group(p);
    return false;
}

// Tries another wish for a link and, where it is the first of its step, for all of that. True if
// that takes less memory.
static bool improve(struct planner *p, size_t i, size_t first) {
    const struct n8_sharing_plan *sharing = &p->sharing;
    const struct n8_link *link = &sharing->links[i];
    size_t count = 1;
    while (i + count < sharing->link_count && sharing->links[i + count].step == link->step) {
        count++;
    }
    return (link->used && try_wish(p, i, 1, N8_WISH_DROP)) ||
           (link->kind == N8_SHARES_SLICE && link->wish != N8_WISH_WAIT &&
            try_wish(p, i, 1, N8_WISH_WAIT)) ||
           (link->wish != N8_WISH_USE && try_wish(p, i, 1, N8_WISH_USE)) ||
           (i == first && link->used && try_wish(p, i, count, N8_WISH_DROP));
}

// A link that saves a copy may cost memory: a piece of a concatenation takes the memory of the
// whole from its own birth on, but for pixels that no other piece has yet. As long as more than the
// least is in use at some step, other wishes for the links are tried one by one.
static void choose_links(struct planner *p) {
    const struct n8_sharing_plan *sharing = &p->sharing;
    p->cost = group(p);
    for (bool better = true; better;) {
        better = false;
        size_t first = 0; // link of the same step
        for (size_t i = 0; i < sharing->link_count && p->cost.excess > 0 && sharing->looks < BUDGET;
             i++) {
            first = sharing->links[i].step == sharing->links[first].step ? first : i;
            better = improve(p, i, first) || better;
        }
    }
}

// The result ----------------------------------------------------------------------------

static void write_places(const struct planner *p, struct n8_model *model) {
    const struct n8_sharing_plan *sharing = &p->sharing;
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
        const struct n8_member *member = &sharing->members[t];
        const struct n8_group *group = &sharing->groups[member->group];
        tensor->sharing = tensor->caller ? N8_SHARES_CALLER : N8_SHARES_NOTHING;
        tensor->shared = t;
        if (tensor->bytes != 0) { // neither with the caller nor constant
            tensor->slice = n8_used_bytes(tensor) != group->bytes;
            tensor->pixel_stride = group->stride;
            tensor->offset = group->offset + member->pixel * group->stride + member->byte;
        }
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
        const struct n8_tensor *out = step->out;
        size_t pixel = 0;
        size_t byte = 0;
        bool done = step->row.input_count != 0;
        for (size_t i = 0; done && i < step->row.input_count; i++) {
            done = n8_piece_of(model, step, i, &pixel, &byte) &&
                   (n8_is_spread(model, step, i) ||
                    lies_at(n8_input(model, step, i), out, pixel, byte));
        }
        if (n8_view_of(model, step, &pixel, &byte)) {
            done = done || lies_at(out, step->in, pixel, byte);
        }
        if (done) {
            step->units = 0;
            step->kernel_name = "none";
        }
    }
}

static enum n8_status plan_places(struct planner *p, struct n8_model *model) {
    enum n8_status status = n8_find_least(&p->sharing, &model->memory.arena_least);
    if (status != N8_OK) {
        return status;
    }
    choose_links(p);
    if (p->cost.loaded > PTRDIFF_MAX) { // who measures is told at least this; nobody can open it
        model->memory.arena = p->cost.loaded;
        return N8_OK;
    }
    status = n8_place_blocks(p->blocks, p->block_count, p->cost.loaded, &model->memory.arena);
    if (status == N8_OK) {
        write_places(p, model);
        clear_moves(model);
    }
    return status;
}

enum n8_status n8_plan_arena(const struct n8_reader *reader) {
    struct n8_model *model = reader->model;
    const size_t tensors = model->facts.tensor_count;
    enum n8_status status = find_lifetimes(reader);
    if (status != N8_OK) {
        return status;
    }
    struct planner planner = {
        .sharing = {.model = model},
        .changes = malloc((model->facts.step_count + 2) * sizeof *planner.changes),
        .blocks = malloc(tensors * sizeof *planner.blocks),
        .group_of = malloc(tensors * sizeof *planner.group_of),
    };
    status = N8_E_MEMORY;
    if (planner.changes != NULL && planner.blocks != NULL && planner.group_of != NULL) {
        status = n8_find_links(&planner.sharing);
    }
    if (status == N8_OK) {
        status = plan_places(&planner, model);
        n8_free_links(&planner.sharing);
    }
    free(planner.changes);
    free(planner.blocks);
    free(planner.group_of);
    return status;
}
