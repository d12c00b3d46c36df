// SPDX-License-Identifier: Apache-2.0
//
// Tensors that share memory: a result written over an operand that is needed no more, a view of
// another tensor, a piece of a concatenation that is written where it will be read.
#ifndef N8_SHARE_H
#define N8_SHARE_H

#include "place.h"
#include "reader.h"

// Tensors that lie in one block. Its pixels are `stride` bytes apart, and `bytes` of each are
// used; they are those of the largest member, the frame.
struct n8_group {
    size_t pixels, stride, bytes;
    uint32_t members;  // number of
    uint32_t first;    // member; n8_member.next leads to the others
    bool sliceable;    // every member may lie between the channels of others
    uint32_t tail;     // link of a child that lies at the end of the group until this is born
    bool is_tail;      // of another group
    size_t born, dies; // of all members together
};

// Where a tensor lies: its first value is `byte` bytes into pixel `pixel` of its group.
struct n8_member {
    uint32_t group; // of which tensor's number it has
    uint32_t next;  // member of the group, or N8_NOBODY
    uint32_t value; // equal in tensors that hold the same values as far as they overlap
    size_t pixel, byte;
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

struct n8_sharing_plan {
    const struct n8_model *model;
    uint32_t *producer; // step of each tensor, or N8_NOBODY
    struct n8_link *links;
    size_t link_count;
    struct n8_member *members; // of each tensor
    struct n8_group *groups;   // of each tensor; those without members are not in use
    uint64_t looks;            // at pairs of tensors, so far
};

// Finds all links; each is wanted. `plan` is zero but for the model, whose tensors have their
// lifetimes. N8_E_MEMORY leaves nothing to free.
enum n8_status n8_find_links(struct n8_sharing_plan *plan);

// Groups the tensors by the wanted links, one after the other, as far as they do not exclude
// each other.
void n8_group_tensors(struct n8_sharing_plan *plan);

// True if the tensor is as large as its group.
bool n8_is_frame(const struct n8_sharing_plan *plan, uint32_t tensor);

// bound.c: the largest sum of values in use at one step, each counted once wherever it could be
// held by another; no plan that shares by these links needs less. N8_E_MEMORY: none to think in.
enum n8_status n8_find_least(const struct n8_sharing_plan *plan, uint64_t *least);

void n8_free_links(struct n8_sharing_plan *plan);

#endif // N8_SHARE_H
