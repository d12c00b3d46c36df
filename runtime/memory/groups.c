// SPDX-License-Identifier: Apache-2.0
//
// Which tensors do share memory: groups, made by following links one after the other.
#include "sharing.h"

#include "model/operator.h"

enum {
    ALIGN_APART = 64,     // no kernel reads further beyond the channels of a pixel
    MOST_LOOKS = 1 << 24, // of one grouping: some hundredths of a second
};

static size_t used_bytes(const struct n8_tensor *tensor) {
    return (size_t)tensor->dims[1] * n8_value_size(tensor);
}

struct n8_place n8_place_in_group(struct n8_sharing_plan *plan, uint32_t tensor) {
    struct n8_member *members = plan->members;
    struct n8_place place = {.group = tensor};
    while (members[place.group].in != place.group) {
        place.pixel += members[place.group].pixel;
        place.byte += members[place.group].byte;
        place.group = members[place.group].in;
    }
    struct n8_place rest = place; // next time there is one step to go
    for (uint32_t t = tensor; members[t].in != place.group;) {
        const struct n8_member member = members[t];
        members[t].in = place.group;
        members[t].pixel = rest.pixel;
        members[t].byte = rest.byte;
        rest.pixel -= member.pixel;
        rest.byte -= member.byte;
        t = member.in;
    }
    return place;
}

// The tensor that stands for all that hold the same values.
static uint32_t value_of(struct n8_sharing_plan *plan, uint32_t tensor) {
    struct n8_member *members = plan->members;
    while (members[tensor].value != tensor) {
        members[tensor].value = members[members[tensor].value].value;
        tensor = members[tensor].value;
    }
    return tensor;
}

// Some bytes of some pixels of a group.
struct box {
    size_t pixel, byte, pixels, bytes;
};

// A link that is tried: the group `inner` comes to lie in `outer`, `pixel` and `byte` further on.
// Within the box `common` of the outer group, whoever holds values of the child and whoever holds
// values of the parent hold the same.
struct move {
    const struct n8_link *link;
    uint32_t inner, outer;
    size_t pixel, byte;
    struct box common;
    uint32_t child_value, parent_value;
};

// A tensor, and where it would lie in the outer group.
struct place {
    uint32_t tensor;
    size_t pixel, byte;
};

static struct place place_after(struct n8_sharing_plan *plan, const struct move *move,
                                uint32_t tensor) {
    const struct n8_place place = n8_place_in_group(plan, tensor);
    const bool moved = place.group == move->inner;
    return (struct place){
        .tensor = tensor,
        .pixel = place.pixel + (moved ? move->pixel : 0),
        .byte = place.byte + (moved ? move->byte : 0),
    };
}

static const struct n8_tensor *tensor_at(const struct n8_sharing_plan *plan, struct place place) {
    return &plan->model->tensors[place.tensor];
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static struct box box_of(const struct n8_sharing_plan *plan, struct place place) {
    const struct n8_tensor *tensor = tensor_at(plan, place);
    return (struct box){place.pixel, place.byte, tensor->pixels, used_bytes(tensor)};
}

// What two boxes have in common; without pixels or bytes if they have nothing.
static struct box overlap_of(struct box a, struct box b) {
    const size_t pixel = larger(a.pixel, b.pixel);
    const size_t byte = larger(a.byte, b.byte);
    const size_t pixel_end = smaller(a.pixel + a.pixels, b.pixel + b.pixels);
    const size_t byte_end = smaller(a.byte + a.bytes, b.byte + b.bytes);
    return (struct box){
        .pixel = pixel,
        .byte = byte,
        .pixels = pixel_end > pixel ? pixel_end - pixel : 0,
        .bytes = byte_end > byte ? byte_end - byte : 0,
    };
}

static bool is_empty(struct box box) {
    return box.pixels == 0 || box.bytes == 0;
}

static bool holds(struct box outer, struct box inner) {
    return inner.pixel >= outer.pixel && inner.byte >= outer.byte &&
           inner.pixel + inner.pixels <= outer.pixel + outer.pixels &&
           inner.byte + inner.bytes <= outer.byte + outer.bytes;
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

// True if a member of each group can lie in one block, and both live at the same time.
static bool agree(struct n8_sharing_plan *plan, const struct move *move, uint32_t inner,
                  uint32_t outer) {
    const struct place a = place_after(plan, move, inner);
    const struct place b = place_after(plan, move, outer);
    const struct box both = overlap_of(box_of(plan, a), box_of(plan, b));
    if (is_empty(both)) {
        return true;
    }
    const uint32_t va = value_of(plan, inner);
    const uint32_t vb = value_of(plan, outer);
    if (move->link->kind != N8_SHARES_PLACE && holds(move->common, both) &&
        (va == move->child_value || va == move->parent_value) &&
        (vb == move->child_value || vb == move->parent_value)) {
        return true;
    }
    const struct n8_tensor *ta = tensor_at(plan, a);
    const struct n8_tensor *tb = tensor_at(plan, b);
    return (ta->dies == tb->born && may_overwrite(plan, a, b)) ||
           (tb->dies == ta->born && may_overwrite(plan, b, a));
}

// True if all members of the two groups agree. Only those are compared that live at the same
// time: of two members, the younger one is looked at while the older one still lives.
static bool all_agree(struct n8_sharing_plan *plan, const struct move *move) {
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
            if (plan->looks > plan->end ||
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

// A kernel may read the bytes behind the channels of a pixel, whatever they are. If its own
// threads write them at the same time, that is a race, though without an effect. True if `in`,
// which a step reads, and `out`, which it makes, would lie so.
static bool reads_beside(struct n8_sharing_plan *plan, const struct move *move, uint32_t in,
                         uint32_t out) {
    const struct n8_step *step = &plan->model->steps[plan->producer[out]];
    return (step->placing & N8_READS_EXACTLY) == 0 &&
           used_bytes(&plan->model->tensors[in]) % ALIGN_APART != 0 &&
           is_empty(overlap_of(box_of(plan, place_after(plan, move, in)),
                               box_of(plan, place_after(plan, move, out))));
}

// True if no step reads beside a member of one group and makes a member of the other. The members
// of `group` are gone through.
static bool none_reads_beside(struct n8_sharing_plan *plan, const struct move *move,
                              uint32_t group) {
    const struct n8_step *steps = plan->model->steps;
    const uint32_t other = group == move->inner ? move->outer : move->inner;
    for (uint32_t t = plan->groups[group].youngest; t != N8_NOBODY; t = plan->members[t].elder) {
        const uint32_t maker = plan->producer[t];
        const bool moves = maker != N8_NOBODY && steps[maker].op->piece != NULL;
        const uint32_t inputs = maker == N8_NOBODY || moves ? 0 : steps[maker].row.input_count;
        for (size_t i = 0; i < inputs; i++) {
            const uint32_t in = steps[maker].inputs[i];
            if (n8_place_in_group(plan, in).group == other && reads_beside(plan, move, in, t)) {
                return false;
            }
        }
        const uint32_t end = plan->first_reader[t + 1];
        for (uint32_t r = plan->first_reader[t]; r < end; r++) {
            const struct n8_step *reader = &steps[plan->readers[r]];
            const uint32_t out = reader->row.output;
            if (reader->op->piece == NULL && n8_place_in_group(plan, out).group == other &&
                reads_beside(plan, move, t, out)) {
                return false;
            }
        }
        plan->looks += 1 + inputs + end - plan->first_reader[t];
    }
    return plan->looks <= plan->end;
}

// Two lists of members become one, from the youngest on.
static uint32_t merge(struct n8_sharing_plan *plan, uint32_t a, uint32_t b) {
    const struct n8_tensor *tensors = plan->model->tensors;
    struct n8_member *members = plan->members;
    size_t count = 0;
    while (a != N8_NOBODY && b != N8_NOBODY) {
        uint32_t *next = tensors[a].born >= tensors[b].born ? &a : &b;
        plan->merged[count++] = *next;
        *next = members[*next].elder;
    }
    plan->looks += count;
    uint32_t youngest = a != N8_NOBODY ? a : b;
    while (count > 0) {
        const uint32_t t = plan->merged[--count];
        const size_t before = youngest == N8_NOBODY ? 0 : members[youngest].last;
        members[t].elder = youngest;
        members[t].last = tensors[t].dies > before ? tensors[t].dies : before;
        youngest = t;
    }
    return youngest;
}

// Puts the pieces of a concatenation among the other members; two lists at a time, so that each
// is merged no more often than the number of lists has digits.
static void settle(struct n8_sharing_plan *plan, struct n8_group *group) {
    struct n8_piece *pieces = plan->pieces;
    while (group->pieces != N8_NOBODY && pieces[group->pieces].before != N8_NOBODY) {
        uint32_t merged = N8_NOBODY;
        for (uint32_t a = group->pieces; a != N8_NOBODY;) {
            const uint32_t b = pieces[a].before;
            const uint32_t next = b == N8_NOBODY ? N8_NOBODY : pieces[b].before;
            if (b != N8_NOBODY) {
                pieces[a].youngest = merge(plan, pieces[a].youngest, pieces[b].youngest);
            }
            pieces[a].before = merged;
            merged = a;
            a = next;
        }
        group->pieces = merged;
    }
    if (group->pieces != N8_NOBODY) {
        group->youngest = merge(plan, group->youngest, pieces[group->pieces].youngest);
        group->pieces = N8_NOBODY;
    }
}

// True if the tensor is as large as its group.
static bool is_frame(struct n8_sharing_plan *plan, uint32_t tensor) {
    const struct n8_place place = n8_place_in_group(plan, tensor);
    const struct n8_group *group = &plan->groups[place.group];
    const struct n8_tensor *t = &plan->model->tensors[tensor];
    return place.pixel == 0 && place.byte == 0 && t->pixels == group->pixels &&
           used_bytes(t) == group->bytes;
}

// Moves the group `inner` to a place within the group `outer`, if that is allowed. `is_piece`: it
// is no larger than the piece of a concatenation that it is there for.
static bool embed(struct n8_sharing_plan *plan, struct n8_link *link, const struct move *given,
                  bool is_piece) {
    struct move move = *given;
    struct n8_group *in = &plan->groups[move.inner];
    struct n8_group *out = &plan->groups[move.outer];
    const bool whole = in->bytes == out->bytes && in->stride == out->stride;
    if (move.pixel + in->pixels > out->pixels || move.byte + in->bytes > out->bytes ||
        (!whole && !in->sliceable)) {
        return false;
    }
    settle(plan, in);
    if (!is_piece || out->pieces_of != link->parent) {
        settle(plan, out);
    }
    const bool few = out->pieces == N8_NOBODY && out->members < in->members;
    move.link = link;
    move.child_value = value_of(plan, link->child);
    move.parent_value = value_of(plan, link->parent);
    if (!all_agree(plan, &move) || !none_reads_beside(plan, &move, few ? move.outer : move.inner)) {
        return false;
    }
    plan->members[move.inner].in = move.outer;
    plan->members[move.inner].pixel = move.pixel;
    plan->members[move.inner].byte = move.byte;
    const struct box moved = {move.pixel, move.byte, in->pixels, in->bytes};
    if (link->kind != N8_SHARES_PLACE && holds(move.common, moved)) {
        plan->members[move.child_value].value = move.parent_value;
    }
    if (is_piece) {
        plan->pieces[move.inner] = (struct n8_piece){in->youngest, out->pieces};
        out->pieces = move.inner;
        out->pieces_of = link->parent;
    } else {
        out->youngest = merge(plan, in->youngest, out->youngest);
    }
    out->members += in->members;
    out->sliceable = out->sliceable && in->sliceable;
    out->born = in->born < out->born ? in->born : out->born;
    out->dies = in->dies > out->dies ? in->dies : out->dies;
    link->widens = !whole || in->pixels != out->pixels;
    in->members = 0;
    return true;
}

// True if the group of a piece can be moved as it is into the concatenation of a link: the other
// pieces that come to lie in it are its members, in the right places, and hold values of this one
// as far as they overlap. So it is where one concatenation has the pieces of another and some more.
static bool pieces_agree(struct n8_sharing_plan *plan, const struct n8_link *link,
                         const struct move *move) {
    const struct n8_model *model = plan->model;
    const struct n8_step *step = &model->steps[link->step];
    const struct n8_place parent = n8_place_in_group(plan, link->parent);
    const struct n8_group *group = &plan->groups[move->inner];
    const uint32_t value = value_of(plan, link->child);
    size_t pixel = 0;
    size_t byte = 0;
    for (size_t i = 0; i < step->row.input_count; i++) {
        plan->looks++;
        if (plan->looks > plan->end || !step->op->piece(model, step, i, &pixel, &byte)) {
            return false;
        }
        const struct n8_tensor *piece = n8_input(model, step, i);
        const struct n8_place place = n8_place_in_group(plan, step->inputs[i]);
        const size_t p = parent.pixel + pixel;
        const size_t b = parent.byte + byte;
        const bool meets = p < move->pixel + group->pixels && move->pixel < p + piece->pixels &&
                           b < move->byte + group->bytes && move->byte < b + used_bytes(piece);
        if (meets && (value_of(plan, step->inputs[i]) != value || place.group != move->inner ||
                      move->pixel + place.pixel != p || move->byte + place.byte != b)) {
            return false;
        }
    }
    return true;
}

// Follows a link, if nothing that was linked before stands against it.
static bool follow(struct n8_sharing_plan *plan, struct n8_link *link) {
    const struct n8_place child = n8_place_in_group(plan, link->child);
    const struct n8_place parent = n8_place_in_group(plan, link->parent);
    const struct place at = {link->child, parent.pixel + link->pixel, parent.byte + link->byte};
    struct move move = {
        .inner = child.group,
        .outer = parent.group,
        .pixel = at.pixel,
        .byte = at.byte,
        .common = box_of(plan, at),
    };
    const bool slice = link->kind == N8_SHARES_SLICE;
    if (child.group == parent.group) {
        return false;
    }
    if (is_frame(plan, link->child)) {
        return embed(plan, link, &move, slice);
    }
    if (slice && move.pixel >= child.pixel && move.byte >= child.byte) {
        move.pixel -= child.pixel;
        move.byte -= child.byte;
        move.common = box_of(plan, (struct place){link->parent, parent.pixel, parent.byte});
        return pieces_agree(plan, link, &move) && embed(plan, link, &move, false);
    }
    move = (struct move){
        .inner = parent.group,
        .outer = child.group,
        .pixel = child.pixel,
        .byte = child.byte,
        .common = box_of(plan, (struct place){link->child, child.pixel, child.byte}),
    };
    return link->pixel == 0 && link->byte == 0 && is_frame(plan, link->parent) &&
           embed(plan, link, &move, false);
}

// A piece of a concatenation that is not written there at once may still come there without room
// of its own: it lies at the end of the whole until that is born, and is then spread, pixel by
// pixel from the first on. No pixel is written over one that is still to be moved, since the
// pixels are further apart where they go. True if nobody looks for the piece after that.
static bool may_come_late(struct n8_sharing_plan *plan, const struct n8_link *link) {
    const struct n8_place parent = n8_place_in_group(plan, link->parent);
    struct n8_group *from = &plan->groups[n8_place_in_group(plan, link->child).group];
    const struct n8_group *to = &plan->groups[parent.group];
    const struct n8_tensor *child = &plan->model->tensors[link->child];
    if (link->kind != N8_SHARES_SLICE || from == to || link->used || !is_frame(plan, link->child) ||
        child->pixels != to->pixels || parent.pixel + link->pixel != 0 || from->tail != N8_NOBODY ||
        from->is_tail || to->tail != N8_NOBODY || to->is_tail || from->born >= to->born ||
        to->born > link->step || from->dies != link->step) {
        return false;
    }
    settle(plan, from);
    for (uint32_t m = from->youngest; m != N8_NOBODY && plan->members[m].last >= to->born;
         m = plan->members[m].elder) {
        plan->looks++;
        if (m != link->child && plan->model->tensors[m].dies >= to->born) {
            return false;
        }
    }
    size_t readers = 0;
    for (uint32_t r = plan->first_reader[link->child]; r < plan->first_reader[link->child + 1];
         r++) {
        plan->looks++;
        readers += plan->readers[r] >= to->born && plan->readers[r] <= link->step;
    }
    return readers == 1; // the concatenation itself
}

void n8_group_component(struct n8_sharing_plan *plan, uint32_t component) {
    const struct n8_component *it = &plan->components[component];
    const uint32_t *tensors = plan->tensors_of + it->first_tensor;
    const uint32_t *links = plan->links_of + it->first_link;
    for (uint32_t i = 0; i < it->tensors; i++) {
        const uint32_t t = tensors[i];
        const struct n8_tensor *tensor = &plan->model->tensors[t];
        plan->members[t] = (struct n8_member){
            .in = t,
            .elder = N8_NOBODY,
            .value = t,
            .last = tensor->dies,
        };
        plan->groups[t] = (struct n8_group){
            .pixels = tensor->pixels,
            .stride = n8_own_stride(tensor),
            .bytes = used_bytes(tensor),
            .members = 1,
            .youngest = t,
            .sliceable = plan->sliceable[t],
            .tail = N8_NOBODY,
            .born = tensor->born,
            .dies = tensor->dies,
            .pieces = N8_NOBODY,
            .pieces_of = N8_NOBODY,
        };
    }
    plan->looks += it->tensors;
    plan->end = plan->looks + MOST_LOOKS;
    for (uint32_t i = 0; i < it->links; i++) {
        struct n8_link *link = &plan->links[links[i]];
        link->widens = false;
        link->used = link->wanted && follow(plan, link);
    }
    for (uint32_t i = 0; i < it->links; i++) {
        const struct n8_link *link = &plan->links[links[i]];
        if (link->late && may_come_late(plan, link)) {
            plan->groups[n8_place_in_group(plan, link->parent).group].tail = links[i];
            plan->groups[n8_place_in_group(plan, link->child).group].is_tail = true;
        }
    }
}
