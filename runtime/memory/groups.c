// SPDX-License-Identifier: Apache-2.0
//
// Which tensors do share memory: groups, made by following links one after the other.
#include "sharing.h"

#include "model/operator.h"

enum {
    ALIGN_APART = 64,     // no kernel reads further beyond the channels of a pixel
    MOST_LOOKS = 1 << 22, // of one grouping: a tenth of a second
};

// A link that is tried: `inner`, the child's group, comes to lie in `outer`, the parent's, `pixel`
// and `byte` further on. Within the parent's box, `common`, members that hold values of the child
// or of the parent then hold the same.
struct move {
    const struct n8_link *link;
    uint32_t inner, outer;
    size_t pixel, byte;
    struct n8_box common;
};

// Where in its group a tensor lies, or would lie so much further on.
static struct n8_box box_of(const struct n8_sharing_plan *plan, uint32_t tensor, size_t pixel,
                            size_t byte) {
    const struct n8_member *member = &plan->members[tensor];
    return n8_box_at(&plan->model->tensors[tensor], member->pixel + pixel, member->byte + byte);
}

static bool same_box(struct n8_box a, struct n8_box b) {
    return a.pixel == b.pixel && a.byte == b.byte && a.pixel_end == b.pixel_end &&
           a.byte_end == b.byte_end;
}

// True if what both boxes hold is in the third one.
static bool meet_within(struct n8_box a, struct n8_box b, struct n8_box within) {
    return (a.pixel >= within.pixel || b.pixel >= within.pixel) &&
           (a.byte >= within.byte || b.byte >= within.byte) &&
           (a.pixel_end <= within.pixel_end || b.pixel_end <= within.pixel_end) &&
           (a.byte_end <= within.byte_end || b.byte_end <= within.byte_end);
}

static bool reads(const struct n8_step *step, uint32_t tensor) {
    for (size_t i = 0; i < step->row.input_count; i++) {
        if (step->inputs[i] == tensor) {
            return true;
        }
    }
    return false;
}

// True if the step that makes `out` reads `in` and may write over it, value by value.
static bool may_overwrite(const struct n8_sharing_plan *plan, uint32_t in, uint32_t out) {
    if (plan->maker[out] == N8_NOBODY ||
        plan->model->tensors[in].dies != plan->model->tensors[out].born) {
        return false;
    }
    const struct n8_step *step = &plan->model->steps[plan->maker[out]];
    bool found = false;
    for (size_t i = 0; i < step->row.input_count; i++) {
        const uint32_t permission = i == 0 ? N8_OVER_FIRST : i == 1 ? N8_OVER_SECOND : 0;
        if (step->inputs[i] == in) {
            if ((step->placing & permission) == 0) {
                return false;
            }
            found = true;
        }
    }
    return found;
}

// True if the step that makes `out` may read bytes of `in` beyond its channels. Whatever they are
// is without an effect, but where they belong to `out`, threads of the step would write them at the
// same time, which is a race.
static bool reads_beside(const struct n8_sharing_plan *plan, uint32_t in, uint32_t out) {
    if (plan->maker[out] == N8_NOBODY) {
        return false;
    }
    const struct n8_step *step = &plan->model->steps[plan->maker[out]];
    return (step->placing & N8_READS_EXACTLY) == 0 &&
           n8_used_bytes(&plan->model->tensors[in]) % ALIGN_APART != 0 && reads(step, in);
}

// True if two tensors that live at the same time can lie in one block.
static bool agree(const struct n8_sharing_plan *plan, const struct move *move, uint32_t inner,
                  uint32_t outer) {
    const struct n8_box a = box_of(plan, inner, move->pixel, move->byte);
    const struct n8_box b = box_of(plan, outer, 0, 0);
    if (!n8_boxes_meet(a, b)) {
        return !reads_beside(plan, inner, outer) && !reads_beside(plan, outer, inner);
    }
    const uint32_t child = plan->members[move->link->child].value;
    const uint32_t parent = plan->members[move->link->parent].value;
    const uint32_t va = plan->members[inner].value;
    const uint32_t vb = plan->members[outer].value;
    if (move->link->kind != N8_SHARES_PLACE && (va == child || va == parent) &&
        (vb == child || vb == parent) && meet_within(a, b, move->common)) {
        return true;
    }
    return same_box(a, b) &&
           (may_overwrite(plan, inner, outer) || may_overwrite(plan, outer, inner));
}

// True if all members of the two groups agree. Only those are compared that live at the same
// time: of two members, the younger one is looked at while the older one still lives.
static bool all_agree(struct n8_sharing_plan *plan, const struct move *move, uint64_t end) {
    const struct n8_tensor *tensors = plan->model->tensors;
    const struct n8_member *members = plan->members;
    uint32_t inner = plan->groups[move->inner].youngest;
    uint32_t outer = plan->groups[move->outer].youngest;
    while (inner != N8_NOBODY && outer != N8_NOBODY) {
        const bool is_inner = tensors[inner].born >= tensors[outer].born;
        const uint32_t younger = is_inner ? inner : outer;
        const size_t born = tensors[younger].born;
        for (uint32_t older = is_inner ? outer : inner;
             older != N8_NOBODY && members[older].last >= born; older = members[older].elder) {
            plan->looks++;
            if (plan->looks > end ||
                (tensors[older].dies >= born &&
                 !agree(plan, move, is_inner ? younger : older, is_inner ? older : younger))) {
                return false;
            }
        }
        plan->looks++;
        inner = is_inner ? members[inner].elder : inner;
        outer = is_inner ? outer : members[outer].elder;
    }
    return true;
}

// Two lists of members, from the youngest on, become one.
static uint32_t merge(struct n8_sharing_plan *plan, uint32_t a, uint32_t b) {
    const struct n8_tensor *tensors = plan->model->tensors;
    struct n8_member *members = plan->members;
    uint32_t taken = N8_NOBODY; // the oldest of those that are in order; `elder` leads back
    while (a != N8_NOBODY && b != N8_NOBODY) {
        uint32_t *next = tensors[a].born >= tensors[b].born ? &a : &b;
        const uint32_t t = *next;
        *next = members[t].elder;
        members[t].elder = taken;
        taken = t;
        plan->looks++;
    }
    uint32_t youngest = a != N8_NOBODY ? a : b;
    while (taken != N8_NOBODY) {
        const uint32_t t = taken;
        const size_t before = youngest == N8_NOBODY ? 0 : members[youngest].last;
        taken = members[t].elder;
        members[t].elder = youngest;
        members[t].last = tensors[t].dies > before ? tensors[t].dies : before;
        youngest = t;
    }
    return youngest;
}

// True if the tensor is as large as its group.
static bool is_frame(const struct n8_sharing_plan *plan, uint32_t tensor) {
    const struct n8_group *group = &plan->groups[plan->members[tensor].group];
    return same_box(box_of(plan, tensor, 0, 0), (struct n8_box){0, 0, group->pixels, group->bytes});
}

// Moves a group into another one, if that is allowed.
static bool embed(struct n8_sharing_plan *plan, const struct move *move, uint64_t end) {
    struct n8_group *in = &plan->groups[move->inner];
    struct n8_group *out = &plan->groups[move->outer];
    const struct n8_box box = {move->pixel, move->byte, move->pixel + in->pixels,
                               move->byte + in->bytes};
    const bool whole = in->bytes == out->bytes && in->stride == out->stride;
    if (box.pixel_end > out->pixels || box.byte_end > out->bytes || (!whole && !in->sliceable) ||
        !all_agree(plan, move, end)) {
        return false;
    }
    const uint32_t child = plan->members[move->link->child].value;
    const uint32_t parent = plan->members[move->link->parent].value;
    const bool same = move->link->kind != N8_SHARES_PLACE && meet_within(box, box, move->common);
    for (uint32_t t = in->youngest; t != N8_NOBODY; t = plan->members[t].elder) {
        struct n8_member *member = &plan->members[t];
        member->group = move->outer;
        member->pixel += move->pixel;
        member->byte += move->byte;
        member->value = same && member->value == child ? parent : member->value;
        plan->looks++;
    }
    out->youngest = merge(plan, in->youngest, out->youngest);
    out->sliceable = out->sliceable && in->sliceable;
    out->born = in->born < out->born ? in->born : out->born;
    out->dies = in->dies > out->dies ? in->dies : out->dies;
    in->youngest = N8_NOBODY;
    return true;
}

// True if the group of a piece can be moved as it is into the concatenation of a link, as where one
// concatenation has the pieces of another and some more: the pieces whose places it takes are
// members of it, lie right, and hold the same as this one where they overlap.
static bool pieces_agree(struct n8_sharing_plan *plan, const struct move *move) {
    const struct n8_link *link = move->link;
    const struct n8_model *model = plan->model;
    const struct n8_step *step = &model->steps[link->step];
    const struct n8_member *members = plan->members;
    const struct n8_group *group = &plan->groups[move->inner];
    const struct n8_box taken = {move->pixel, move->byte, move->pixel + group->pixels,
                                 move->byte + group->bytes};
    const uint32_t value = members[link->child].value;
    size_t pixel = 0;
    size_t byte = 0;
    for (size_t i = 0; i < step->row.input_count; i++) {
        plan->looks++;
        if (!n8_piece_of(model, step, i, &pixel, &byte)) {
            return false;
        }
        const uint32_t t = step->inputs[i];
        const struct n8_box wanted =
            n8_box_at(&model->tensors[t], members[link->parent].pixel + pixel,
                      members[link->parent].byte + byte);
        if (n8_boxes_meet(wanted, taken) &&
            (members[t].value != value || members[t].group != move->inner ||
             !same_box(wanted, box_of(plan, t, move->pixel, move->byte)))) {
            return false;
        }
    }
    return true;
}

// Follows a link, if nothing that was linked before stands against it.
static bool follow(struct n8_sharing_plan *plan, const struct n8_link *link, uint64_t end) {
    const struct n8_member *child = &plan->members[link->child];
    const struct n8_member *parent = &plan->members[link->parent];
    const size_t pixel = parent->pixel + link->pixel;
    const size_t byte = parent->byte + link->byte;
    const struct move move = {
        .link = link,
        .inner = child->group,
        .outer = parent->group,
        .pixel = pixel - child->pixel,
        .byte = byte - child->byte,
        .common = box_of(plan, link->parent, 0, 0),
    };
    if (child->group == parent->group || pixel < child->pixel || byte < child->byte) {
        return false;
    }
    const bool fits =
        is_frame(plan, link->child) || (link->kind == N8_SHARES_SLICE && pieces_agree(plan, &move));
    return fits && embed(plan, &move, end);
}

// A piece of a concatenation that is not written there at once may still need no memory of its own:
// it lies at the end of the whole until that is born, and is then spread, pixel by pixel from the
// first on. No pixel is written over one that is still to be moved, since pixels are further apart
// where they go. True if only the concatenation looks for the piece after that.
static bool may_wait(struct n8_sharing_plan *plan, const struct n8_link *link) {
    const struct n8_member *parent = &plan->members[link->parent];
    const struct n8_group *from = &plan->groups[plan->members[link->child].group];
    const struct n8_group *to = &plan->groups[parent->group];
    if (link->kind != N8_SHARES_SLICE || from == to || !is_frame(plan, link->child) ||
        from->pixels != to->pixels || parent->pixel + link->pixel != 0 || from->tail != N8_NOBODY ||
        from->waits || to->tail != N8_NOBODY || to->waits || from->born >= to->born ||
        to->born > link->step || from->dies != link->step) {
        return false;
    }
    for (uint32_t m = from->youngest; m != N8_NOBODY && plan->members[m].last >= to->born;
         m = plan->members[m].elder) {
        plan->looks++;
        if (m != link->child && plan->model->tensors[m].dies >= to->born) {
            return false;
        }
    }
    size_t times = 0; // that it is read from then on, by the concatenation itself
    for (size_t s = to->born; s <= link->step; s++) {
        const struct n8_step *step = &plan->model->steps[s];
        for (size_t i = 0; i < step->row.input_count; i++) {
            times += step->inputs[i] == link->child;
            plan->looks++;
        }
    }
    return times == 1;
}

void n8_group_tensors(struct n8_sharing_plan *plan) {
    const struct n8_model *model = plan->model;
    for (uint32_t t = 0; t < model->facts.tensor_count; t++) {
        const struct n8_tensor *tensor = &model->tensors[t];
        plan->members[t] =
            (struct n8_member){.group = t, .value = t, .elder = N8_NOBODY, .last = tensor->dies};
        plan->groups[t] = (struct n8_group){
            .pixels = tensor->pixels,
            .stride = n8_own_stride(tensor),
            .bytes = n8_used_bytes(tensor),
            .youngest = t,
            .sliceable = plan->sliceable[t],
            .tail = N8_NOBODY,
            .born = tensor->born,
            .dies = tensor->dies,
        };
    }
    plan->looks += model->facts.tensor_count;
    const uint64_t end = plan->looks + MOST_LOOKS;
    for (size_t i = 0; i < plan->link_count; i++) {
        struct n8_link *link = &plan->links[i];
        link->used = link->wish == N8_WISH_USE && plan->looks <= end && follow(plan, link, end);
    }
    for (uint32_t i = 0; i < plan->link_count; i++) {
        const struct n8_link *link = &plan->links[i];
        if (link->wish == N8_WISH_WAIT && plan->looks <= end && may_wait(plan, link)) {
            plan->groups[plan->members[link->parent].group].tail = i;
            plan->groups[plan->members[link->child].group].waits = true;
        }
    }
}
