// SPDX-License-Identifier: Apache-2.0
#include "share.h"

#include "ops.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_MEMBERS = 512, // of a group: joining two compares all pairs
    ALIGN_APART = 64,  // no kernel reads further beyond the channels of a pixel
};

static size_t used_bytes(const struct n8_tensor *tensor) {
    return (size_t)tensor->dims[1] * n8_value_size(tensor);
}

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

enum n8_status n8_find_links(struct n8_sharing_plan *plan) {
    const struct n8_model *model = plan->model;
    const size_t tensors = model->facts.tensor_count;
    const size_t steps = model->facts.step_count;
    size_t most = 3 * steps;
    for (size_t s = 0; s < steps; s++) {
        most += model->steps[s].row.input_count;
    }
    plan->producer = malloc(tensors * sizeof *plan->producer);
    plan->members = calloc(tensors, sizeof *plan->members);
    plan->groups = calloc(tensors, sizeof *plan->groups);
    plan->links = calloc(most, sizeof *plan->links);
    if (plan->producer == NULL || plan->members == NULL || plan->groups == NULL ||
        plan->links == NULL) {
        n8_free_links(plan);
        return N8_E_MEMORY;
    }
    memset(plan->producer, 0xff, tensors * sizeof *plan->producer); // N8_NOBODY
    for (size_t s = 0; s < steps; s++) {
        plan->producer[model->steps[s].row.output] = (uint32_t)s;
    }
    for (size_t s = 0; s < steps; s++) {
        find_links_of(plan, (uint32_t)s);
    }
    return N8_OK;
}

void n8_free_links(struct n8_sharing_plan *plan) {
    free(plan->producer);
    free(plan->members);
    free(plan->groups);
    free(plan->links);
    plan->producer = NULL;
    plan->members = NULL;
    plan->groups = NULL;
    plan->links = NULL;
}

// Groups ------------------------------------------------------------------------------

// A member as it would lie if its group were moved.
struct place {
    uint32_t tensor;
    size_t pixel, byte;
};

static struct place place_of(const struct n8_sharing_plan *plan, uint32_t tensor) {
    const struct n8_member *member = &plan->members[tensor];
    return (struct place){tensor, member->pixel, member->byte};
}

static const struct n8_tensor *tensor_at(const struct n8_sharing_plan *plan, struct place place) {
    return &plan->model->tensors[place.tensor];
}

static bool overlap(const struct n8_sharing_plan *plan, struct place a, struct place b) {
    const struct n8_tensor *ta = tensor_at(plan, a);
    const struct n8_tensor *tb = tensor_at(plan, b);
    return a.pixel < b.pixel + tb->pixels && b.pixel < a.pixel + ta->pixels &&
           a.byte < b.byte + used_bytes(tb) && b.byte < a.byte + used_bytes(ta);
}

static bool same_place(const struct n8_sharing_plan *plan, struct place a, struct place b) {
    const struct n8_tensor *ta = tensor_at(plan, a);
    const struct n8_tensor *tb = tensor_at(plan, b);
    return a.pixel == b.pixel && a.byte == b.byte && ta->pixels == tb->pixels &&
           used_bytes(ta) == used_bytes(tb);
}

static bool reads(const struct n8_step *step, uint32_t tensor) {
    for (size_t i = 0; i < step->row.input_count; i++) {
        if (step->inputs[i] == tensor) {
            return true;
        }
    }
    return false;
}

// True if the step that makes `out` may do so where `in` lies, as far as `in` is concerned.
static bool may_overwrite(const struct n8_sharing_plan *plan, struct place in, struct place out) {
    const uint32_t producer = plan->producer[out.tensor];
    if (producer == N8_NOBODY || !same_place(plan, in, out)) {
        return false;
    }
    const struct n8_step *step = &plan->model->steps[producer];
    if (!reads(step, in.tensor)) {
        return false;
    }
    for (size_t i = 0; i < step->row.input_count; i++) {
        const uint32_t permission = i == 0 ? N8_OVER_FIRST : i == 1 ? N8_OVER_SECOND : 0;
        if (step->inputs[i] == in.tensor && (step->placing & permission) == 0) {
            return false;
        }
    }
    return true;
}

// A kernel may read the bytes behind the channels of a pixel, whatever they are. If its own
// threads write them at the same time, that is a race, though without an effect.
static bool reads_beside(const struct n8_sharing_plan *plan, struct place in, struct place out) {
    const uint32_t producer = plan->producer[out.tensor];
    return producer != N8_NOBODY && plan->model->steps[producer].op->piece == NULL &&
           used_bytes(tensor_at(plan, in)) % ALIGN_APART != 0 &&
           reads(&plan->model->steps[producer], in.tensor);
}

// True if both can lie in one block as said. `same`: they hold the same values.
static bool compatible(const struct n8_sharing_plan *plan, struct place a, struct place b,
                       bool same) {
    const struct n8_tensor *ta = tensor_at(plan, a);
    const struct n8_tensor *tb = tensor_at(plan, b);
    if (!overlap(plan, a, b)) {
        return !reads_beside(plan, a, b) && !reads_beside(plan, b, a);
    }
    if (same || ta->dies < tb->born || tb->dies < ta->born) {
        return true;
    }
    return (ta->dies == tb->born && may_overwrite(plan, a, b)) ||
           (tb->dies == ta->born && may_overwrite(plan, b, a));
}

bool n8_is_frame(const struct n8_sharing_plan *plan, uint32_t tensor) {
    const struct n8_member *member = &plan->members[tensor];
    const struct n8_group *group = &plan->groups[member->group];
    const struct n8_tensor *t = &plan->model->tensors[tensor];
    return member->pixel == 0 && member->byte == 0 && t->pixels == group->pixels &&
           used_bytes(t) == group->bytes;
}

// Moves the group `inner` to a place within the group `outer`, if that is allowed.
static bool embed(struct n8_sharing_plan *plan, struct n8_link *link, uint32_t inner,
                  uint32_t outer, size_t pixel, size_t byte) {
    struct n8_group *in = &plan->groups[inner];
    struct n8_group *out = &plan->groups[outer];
    const bool whole = in->bytes == out->bytes && in->stride == out->stride;
    if (in->members + out->members > MAX_MEMBERS || pixel + in->pixels > out->pixels ||
        byte + in->bytes > out->bytes || (!whole && !in->sliceable)) {
        return false;
    }
    const uint32_t child_value = plan->members[link->child].value;
    const uint32_t parent_value = plan->members[link->parent].value;
    for (uint32_t i = in->first; i != N8_NOBODY; i = plan->members[i].next) {
        struct place moved = place_of(plan, i);
        moved.pixel += pixel;
        moved.byte += byte;
        plan->looks += out->members;
        for (uint32_t o = out->first; o != N8_NOBODY; o = plan->members[o].next) {
            const uint32_t vi = plan->members[i].value;
            const uint32_t vo = plan->members[o].value;
            const bool same = link->kind != N8_SHARES_PLACE &&
                              (vi == child_value || vi == parent_value) &&
                              (vo == child_value || vo == parent_value);
            if (!compatible(plan, moved, place_of(plan, o), same)) {
                return false;
            }
        }
    }
    uint32_t last = N8_NOBODY;
    for (uint32_t i = in->first; i != N8_NOBODY; i = plan->members[i].next) {
        struct n8_member *member = &plan->members[i];
        member->group = outer;
        member->pixel += pixel;
        member->byte += byte;
        last = i;
    }
    plan->members[last].next = out->first;
    out->first = in->first;
    out->members += in->members;
    out->sliceable = out->sliceable && in->sliceable;
    out->born = in->born < out->born ? in->born : out->born;
    out->dies = in->dies > out->dies ? in->dies : out->dies;
    link->widens = !whole || in->pixels != out->pixels;
    in->members = 0;
    for (uint32_t i = out->first; link->kind != N8_SHARES_PLACE && i != N8_NOBODY;
         i = plan->members[i].next) {
        if (plan->members[i].value == child_value) {
            plan->members[i].value = parent_value;
        }
    }
    return true;
}

// True if the group of a piece can be moved as it is into the concatenation of a link: the other
// pieces that come to lie in it are its members, and in the right places. So it is where one
// concatenation has the pieces of another and some more.
static bool pieces_agree(struct n8_sharing_plan *plan, const struct n8_link *link,
                         struct place moved) {
    const struct n8_model *model = plan->model;
    const struct n8_step *step = &model->steps[link->step];
    const struct n8_member *parent = &plan->members[link->parent];
    const uint32_t inner = plan->members[link->child].group;
    const struct n8_group *group = &plan->groups[inner];
    size_t pixel = 0;
    size_t byte = 0;
    plan->looks += step->row.input_count;
    for (size_t i = 0; i < step->row.input_count; i++) {
        if (!step->op->piece(model, step, i, &pixel, &byte)) {
            return false;
        }
        const struct n8_tensor *piece = n8_input(model, step, i);
        const struct n8_member *member = &plan->members[step->inputs[i]];
        const size_t p = parent->pixel + pixel;
        const size_t b = parent->byte + byte;
        const bool meets = p < moved.pixel + group->pixels && moved.pixel < p + piece->pixels &&
                           b < moved.byte + group->bytes && moved.byte < b + used_bytes(piece);
        if (meets && (member->group != inner || moved.pixel + member->pixel != p ||
                      moved.byte + member->byte != b)) {
            return false;
        }
    }
    return true;
}

// Follows a link, if nothing that was linked before stands against it.
static bool follow(struct n8_sharing_plan *plan, struct n8_link *link) {
    enum { MOST_LOOKS = 1 << 24 };
    const struct n8_member child = plan->members[link->child];
    const struct n8_member parent = plan->members[link->parent];
    const size_t pixel = parent.pixel + link->pixel;
    const size_t byte = parent.byte + link->byte;
    if (child.group == parent.group) {
        return false;
    }
    if (n8_is_frame(plan, link->child)) {
        return embed(plan, link, child.group, parent.group, pixel, byte);
    }
    if (link->kind == N8_SHARES_SLICE && pixel >= child.pixel && byte >= child.byte &&
        plan->looks < MOST_LOOKS) {
        const struct place moved = {link->child, pixel - child.pixel, byte - child.byte};
        return pieces_agree(plan, link, moved) &&
               embed(plan, link, child.group, parent.group, moved.pixel, moved.byte);
    }
    return link->pixel == 0 && link->byte == 0 && n8_is_frame(plan, link->parent) &&
           embed(plan, link, parent.group, child.group, child.pixel, child.byte);
}

// True if whoever makes and whoever reads the tensor finds its channels between others.
static void find_sliceable(struct n8_sharing_plan *plan) {
    const struct n8_model *model = plan->model;
    for (size_t s = 0; s < model->facts.step_count; s++) {
        const struct n8_step *step = &model->steps[s];
        if ((step->placing & N8_WRITES_SLICES) == 0) {
            plan->groups[step->row.output].sliceable = false;
        }
        for (size_t i = 0; (step->placing & N8_READS_SLICES) == 0 && i < step->row.input_count;
             i++) {
            plan->groups[step->inputs[i]].sliceable = false;
        }
    }
}

// A piece of a concatenation that is not written there at once may still come there without room
// of its own: it lies at the end of the whole until that is born, and is then spread, pixel by
// pixel from the first on. No pixel is written over one that is still to be moved, since the
// pixels are further apart where they go. True if nobody looks for the piece after that.
static bool may_come_late(struct n8_sharing_plan *plan, const struct n8_link *link) {
    const struct n8_member *parent = &plan->members[link->parent];
    const struct n8_group *from = &plan->groups[plan->members[link->child].group];
    const struct n8_group *to = &plan->groups[parent->group];
    const struct n8_tensor *child = &plan->model->tensors[link->child];
    if (link->kind != N8_SHARES_SLICE || from == to || link->used ||
        !n8_is_frame(plan, link->child) || child->pixels != to->pixels ||
        parent->pixel + link->pixel != 0 || from->tail != N8_NOBODY || from->is_tail ||
        to->tail != N8_NOBODY || to->is_tail || from->born >= to->born || to->born > link->step ||
        from->dies != link->step) {
        return false;
    }
    for (uint32_t m = from->first; m != N8_NOBODY; m = plan->members[m].next) {
        if (m != link->child && plan->model->tensors[m].dies >= to->born) {
            return false;
        }
    }
    size_t readers = 0;
    for (size_t s = to->born; s <= link->step; s++) {
        const struct n8_step *step = &plan->model->steps[s];
        plan->looks += step->row.input_count;
        for (size_t i = 0; i < step->row.input_count; i++) {
            readers += step->inputs[i] == link->child;
        }
    }
    return readers == 1; // the concatenation itself
}

void n8_group_tensors(struct n8_sharing_plan *plan) {
    for (uint32_t t = 0; t < plan->model->facts.tensor_count; t++) {
        const struct n8_tensor *tensor = &plan->model->tensors[t];
        plan->members[t] = (struct n8_member){.group = t, .next = N8_NOBODY, .value = t};
        plan->groups[t] = (struct n8_group){
            .pixels = tensor->pixels,
            .stride = n8_own_stride(tensor),
            .bytes = used_bytes(tensor),
            .members = 1,
            .first = t,
            .sliceable = true,
            .tail = N8_NOBODY,
            .born = tensor->born,
            .dies = tensor->dies,
        };
    }
    find_sliceable(plan);
    plan->looks += plan->model->facts.tensor_count;
    for (size_t i = 0; i < plan->link_count; i++) {
        struct n8_link *link = &plan->links[i];
        link->widens = false;
        link->used = link->wanted && follow(plan, link);
    }
    for (uint32_t i = 0; i < plan->link_count; i++) {
        if (plan->links[i].late && may_come_late(plan, &plan->links[i])) {
            const struct n8_link *link = &plan->links[i];
            plan->groups[plan->members[link->parent].group].tail = i;
            plan->groups[plan->members[link->child].group].is_tail = true;
        }
    }
}
