// SPDX-License-Identifier: Apache-2.0
//
// Tensors that share memory: a result written over an operand that is needed no more, a view of
// another tensor, a piece of a concatenation that is written where it will be read.
#ifndef N8_SHARING_H
#define N8_SHARING_H

#include "model/reader.h"

enum { N8_NOBODY = UINT32_MAX };

// What becomes of a link.
enum n8_wish {
    N8_WISH_USE,
    N8_WISH_WAIT, // of a slice: the child waits at the end of the parent until that is needed
    N8_WISH_DROP,
};

// A tensor, the child, that could lie within another one, its parent.
struct n8_link {
    enum n8_sharing kind; // a place, a view or a slice
    uint32_t step;        // which allows it
    uint32_t child, parent;
    size_t pixel, byte;      // where in the parent the child begins
    enum n8_wish wish, kept; // `kept`: while another one is tried
    bool used;               // when tensors were last grouped
};

// Tensors that lie in one block, as large as the largest of them.
struct n8_group {
    size_t pixels;     // of the block,
    size_t stride;     // which are so many bytes apart
    size_t bytes;      // and of which so many are used
    uint32_t youngest; // member; N8_NOBODY: the group became part of another
    bool sliceable;    // every member may lie between the channels of others
    size_t born, dies; // of all members together
    uint32_t tail;     // the link of a child that waits at the end of the group, or N8_NOBODY
    bool waits;        // it is such a child's
    size_t offset;     // in the arena, once it has a place
};

// Where in its group a tensor lies.
struct n8_member {
    uint32_t group;
    size_t pixel, byte;
    uint32_t value; // members of the same value hold the same where they overlap
    uint32_t elder; // the member that was born before this one, or N8_NOBODY
    size_t last;    // step after which neither this member nor its elders are needed
};

struct n8_sharing_plan {
    const struct n8_model *model;
    struct n8_link *links; // in the order of the steps
    size_t link_count;
    // For each tensor:
    uint32_t *maker; // the step, or N8_NOBODY for an input of the network
    bool *sliceable; // whoever makes or reads it accepts channels of others between its own
    struct n8_member *members;
    struct n8_group *groups; // by the number of the tensor that each began with
    uint64_t looks;          // at tensors and pairs of them, so far
};

// links.c: finds all links. The plan is zero but for the model, whose tensors have their lifetimes.
// N8_E_MEMORY leaves nothing to free.
enum n8_status n8_find_links(struct n8_sharing_plan *plan);
void n8_free_links(struct n8_sharing_plan *plan);

// groups.c: groups the tensors by links in their order, as far as these do not exclude each other.
void n8_group_tensors(struct n8_sharing_plan *plan);

// bound.c: the largest sum of values in use at one step, each counted once wherever another tensor
// may hold it: no plan that shares by these links needs less. N8_E_MEMORY.
enum n8_status n8_find_least(const struct n8_sharing_plan *plan, uint64_t *least);

// Some bytes of some pixels of a group or a tensor.
struct n8_box {
    size_t pixel, byte, pixel_end, byte_end;
};

// Bytes of a pixel without padding.
static inline size_t n8_used_bytes(const struct n8_tensor *tensor) {
    return (size_t)tensor->dims[1] * n8_value_size(tensor);
}

static inline struct n8_box n8_box_at(const struct n8_tensor *tensor, size_t pixel, size_t byte) {
    return (struct n8_box){pixel, byte, pixel + tensor->pixels, byte + n8_used_bytes(tensor)};
}

static inline bool n8_boxes_meet(struct n8_box a, struct n8_box b) {
    return a.pixel < b.pixel_end && b.pixel < a.pixel_end && a.byte < b.byte_end &&
           b.byte < a.byte_end;
}

#endif // N8_SHARING_H
