// SPDX-License-Identifier: Apache-2.0
//
// Tensors that share memory: a result written over an operand that is needed no more, a view of
// another tensor, a piece of a concatenation that is written where it will be read.
#ifndef N8_SHARING_H
#define N8_SHARING_H

#include "model/reader.h"
#include "offsets.h"

// Tensors that lie in one block. Its pixels are `stride` bytes apart, and `bytes` of each are
// used; they are those of the largest member, the frame.
struct n8_group {
    size_t pixels, stride, bytes;
    uint32_t members;  // number of; 0: the group became part of another
    uint32_t youngest; // member; n8_member.elder leads to the others
    bool sliceable;    // every member may lie between the channels of others
    uint32_t tail;     // link of a child that lies at the end of the group until this is born
    bool is_tail;      // of another group
    size_t born, dies; // of all members together
    size_t offset;     // of its first byte in the arena, once it has a place
    // Members that came as pieces of one concatenation, its parent, and lie beside each other.
    // They are not among the others yet, so that nobody compares them with each other.
    uint32_t pieces; // the last of them, or N8_NOBODY; n8_piece.before leads to the others
    uint32_t pieces_of;
};

// Where a tensor lies: its first value is `byte` bytes into pixel `pixel` of where another tensor
// does, and so on up to the one whose number the group has.
struct n8_member {
    uint32_t in;    // the other tensor, or its own number
    uint32_t elder; // the member that was born before it, or N8_NOBODY
    uint32_t value; // another tensor; who leads to the same one holds the same where both overlap
    size_t pixel, byte;
    size_t last; // when it and its elders have died
};

// Members of a group that came together, as one piece of a concatenation.
struct n8_piece {
    uint32_t youngest, before;
};

// A way to share, found in the steps, and whether it is used.
struct n8_link {
    enum n8_sharing kind;
    uint32_t step;
    uint32_t child, parent; // the child lies where the parent does, `pixel` and `byte` further on
    size_t pixel, byte;
    bool wanted, used;
    bool late;   // wanted of a slice that is not used: the child gets there before it is needed
    bool widens; // used, and the child's group became part of a larger frame
};

enum { N8_NOBODY = UINT32_MAX };

// What is grouped independently of all others.
struct n8_component {
    uint32_t first_tensor, tensors;
    uint32_t first_link, links;
    size_t born, dies; // of all its tensors together
};

struct n8_sharing_plan {
    const struct n8_model *model;
    uint32_t *producer;     // step of each tensor, or N8_NOBODY
    uint32_t *readers;      // steps, of one tensor after the other; one that reads it twice, twice
    uint32_t *first_reader; // of each tensor, and the end of the last one's
    struct n8_link *links;
    size_t link_count;
    struct n8_member *members; // of each tensor
    struct n8_group *groups;   // of each tensor; those without members are not in use
    struct n8_piece *pieces;   // of each tensor whose group is one
    uint32_t *merged;          // room to put lists in order
    bool *sliceable;           // of each tensor: it may lie between the channels of others
    // Tensors that links connect, whatever they are connected by, are a component. These lists
    // hold the tensors and the links of one component after the other.
    uint32_t *tensors_of, *links_of;
    struct n8_component *components;
    uint32_t *component; // of each tensor
    size_t component_count;
    uint64_t looks; // at tensors and pairs of them, so far
    uint64_t end;   // of the looks of one grouping
};

// links.c: finds all links; each is wanted. `plan` is zero but for the model, whose tensors have
// their lifetimes. N8_E_MEMORY leaves nothing to free.
enum n8_status n8_find_links(struct n8_sharing_plan *plan);

// Groups the tensors of a component by the wanted links, one after the other, as far as they do
// not exclude each other.
void n8_group_component(struct n8_sharing_plan *plan, uint32_t component);

// A place in a group.
struct n8_place {
    uint32_t group;
    size_t pixel, byte;
};

// Where a tensor lies in its group.
struct n8_place n8_place_in_group(struct n8_sharing_plan *plan, uint32_t tensor);

// bound.c: the largest sum of values in use at one step, each counted once wherever it could be
// held by another; no plan that shares by these links needs less. N8_E_MEMORY: none to think in.
enum n8_status n8_find_least(const struct n8_sharing_plan *plan, uint64_t *least);

void n8_free_links(struct n8_sharing_plan *plan);

#endif // N8_SHARING_H
