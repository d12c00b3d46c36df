// SPDX-License-Identifier: Apache-2.0
//
// Dynamic storage allocation with lifetimes that are known: NP-hard, but networks are kind to
// it. One block after the other is laid where it fits, in several orders; then, as in squeaky
// wheel optimization (Joslin and Clements, 1999), blocks that ended up too high come earlier in
// the next round. The first placement of the least size ends the search, a budget of looks at
// pairs of blocks ends it otherwise.
#include "offsets.h"

#include "size.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET = 1 << 22 }; // looks at a block: some milliseconds

static const size_t NOBODY = SIZE_MAX;

// A block, or what of it is needed before it is born: bytes in use from one step to another.
struct part {
    size_t block;
    size_t begin, end; // bytes of the block; the same: there is no such part
    size_t born, dies;
    size_t next; // another part of the same node, or NOBODY
};

// A step of the tree of lifetimes.
struct node {
    size_t first; // part, or NOBODY
    size_t count; // of parts here and below
};

// Offsets that a block cannot have, as a part that lives together with it lies there.
struct span {
    size_t from, to;
    size_t dies; // the part
};

// A placement in the making.
struct placing {
    const struct n8_block *blocks;
    size_t count;
    struct part *parts; // 2 of each block
    size_t *order;      // of the blocks, as they are laid
    size_t *offsets;    // of each block
    size_t steps;       // all parts are born and die before this one
    struct node *nodes; // of each step: the parts that have a place, by their lifetimes
    struct span *taken; // offsets of the block to be laid
    size_t taken_count;
    uint64_t least;
    uint64_t looks;
};

// Who lives together --------------------------------------------------------------------
//
// An interval tree: the root is the step in the middle, the steps before it and after it are the
// subtrees on its two sides. A part belongs to the highest node whose step it is alive at, so
// that the parts of one node are all alive together.

static void insert(struct placing *p, size_t number) {
    struct part *part = &p->parts[number];
    size_t from = 0;
    size_t to = p->steps;
    for (;;) {
        const size_t middle = from + (to - from) / 2;
        struct node *node = &p->nodes[middle];
        node->count++;
        if (part->dies < middle) {
            to = middle;
        } else if (part->born > middle) {
            from = middle + 1;
        } else {
            part->next = node->first;
            node->first = number;
            return;
        }
    }
}

// Finds the offsets that are taken by the parts at the nodes of steps [from, to) that live together
// with `part`.
static void find_taken(struct placing *p, const struct part *part, size_t from, size_t to) {
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const struct node *node = &p->nodes[middle];
        p->looks++;
        if (node->count == 0) {
            return;
        }
        for (size_t i = node->first; i != NOBODY; i = p->parts[i].next) {
            const struct part *other = &p->parts[i];
            p->looks++;
            if (other->born <= part->dies && part->born <= other->dies) {
                const size_t begin = n8_add(p->offsets[other->block], other->begin);
                const size_t end = n8_add(p->offsets[other->block], other->end);
                p->taken[p->taken_count++] = (struct span){
                    .from = begin < part->end ? 0 : begin - part->end + 1,
                    .to = end < part->begin ? 0 : end - part->begin,
                    .dies = other->dies,
                };
            }
        }
        if (part->born < middle && part->dies > middle) {
            find_taken(p, part, from, middle);
        }
        if (part->dies > middle) {
            from = middle + 1;
        } else if (part->born < middle) {
            to = middle;
        } else {
            return;
        }
    }
}

static int by_offset(const void *left, const void *right) {
    const struct span *a = left;
    const struct span *b = right;
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    if (a->to != b->to) {
        return a->to < b->to ? -1 : 1;
    }
    return a->dies < b->dies ? -1 : a->dies > b->dies;
}

// How a gap is chosen, and on which side of it the block lies.
enum fit {
    LOWEST,   // the first gap, at its lower end
    SIDES,    // the smallest gap, next to the neighbour that stays longer; the ends of the arena
              // stay for ever
    SMALLEST, // the smallest gap below `least`, else the first; at its lower end
    FITS,
};

struct gap {
    size_t from, to;     // offsets of the block
    size_t below, above; // when the neighbours die
};

static size_t choose_offset(struct placing *p, size_t block, enum fit fit) {
    p->taken_count = 0;
    for (size_t i = 2 * block; i < 2 * block + 2; i++) {
        if (p->parts[i].begin != p->parts[i].end) {
            find_taken(p, &p->parts[i], 0, p->steps);
        }
    }
    qsort(p->taken, p->taken_count, sizeof *p->taken, by_offset);
    for (size_t count = p->taken_count; count > 1; count /= 2) {
        p->looks += p->taken_count;
    }
    const size_t bytes = p->blocks[block].bytes;
    struct gap best = {.from = SIZE_MAX};
    struct gap gap = {.from = 0, .below = SIZE_MAX};
    for (size_t i = 0; i <= p->taken_count; i++) {
        const bool last = i == p->taken_count;
        const struct span *other = &p->taken[i];
        gap.to = last ? SIZE_MAX : other->from == 0 ? 0 : other->from - 1;
        gap.above = last ? SIZE_MAX : other->dies;
        if (last && gap.from <= p->least && p->least - gap.from >= bytes) {
            gap.to = (size_t)p->least - bytes; // the arena's wanted end is a wall
        }
        if ((last || other->from > 0) && gap.to >= gap.from) {
            if (best.from == SIZE_MAX || gap.to - gap.from < best.to - best.from) {
                best = gap;
            }
            if (fit == LOWEST) {
                break;
            }
        }
        if (!last && other->to > gap.from) {
            gap.from = other->to;
            gap.below = other->dies;
        }
    }
    const bool high = fit == SIDES && best.to != SIZE_MAX && best.above > best.below;
    return high ? best.to : best.from;
}

// Lays all blocks in p->order. Returns the size of the arena.
static size_t lay(struct placing *p, enum fit fit) {
    size_t size = 0;
    for (size_t s = 0; s < p->steps; s++) {
        p->nodes[s] = (struct node){.first = NOBODY};
    }
    for (size_t n = 0; n < p->count; n++) {
        const size_t block = p->order[n];
        // Once the budget is spent, what is left lies above all others.
        const size_t offset = p->looks > BUDGET ? size : choose_offset(p, block, fit);
        const size_t end = n8_add(offset, p->blocks[block].bytes);
        p->offsets[block] = offset;
        insert(p, 2 * block);
        if (p->blocks[block].early_begin != p->blocks[block].early_end) {
            insert(p, 2 * block + 1);
        }
        size = end > size ? end : size;
    }
    return size;
}

// Orders ------------------------------------------------------------------------------

struct key {
    uint64_t first, second; // largest first
    size_t block;
};

static int by_key(const void *left, const void *right) {
    const struct key *a = left;
    const struct key *b = right;
    if (a->first != b->first) {
        return a->first > b->first ? -1 : 1;
    }
    if (a->second != b->second) {
        return a->second > b->second ? -1 : 1;
    }
    return a->block < b->block ? -1 : a->block > b->block; // the same plan on every C library
}

static void sort_order(struct placing *p, struct key *keys) {
    qsort(keys, p->count, sizeof *keys, by_key);
    for (size_t i = 0; i < p->count; i++) {
        p->order[i] = keys[i].block;
    }
}

enum order { BY_BIRTH, BY_LIFE, BY_AREA, BY_SIZE, ORDERS };

static void set_order(struct placing *p, struct key *keys, enum order order) {
    for (size_t i = 0; i < p->count; i++) {
        const struct n8_block *block = &p->blocks[i];
        const uint64_t life = block->dies - block->born + 1;
        const uint64_t first[ORDERS] = {UINT64_MAX - block->born, life, block->bytes * life,
                                        block->bytes};
        keys[i] = (struct key){first[order],
                               order == BY_BIRTH || order == BY_LIFE ? block->bytes : life, i};
    }
    sort_order(p, keys);
}

// Blocks that end above the least size come earlier, by a share of their way to the front.
static void squeak(struct placing *p, struct key *keys, size_t round) {
    for (size_t i = 0; i < p->count; i++) {
        const size_t block = p->order[i];
        const bool high = n8_add(p->offsets[block], p->blocks[block].bytes) > p->least;
        const size_t at = high ? i - i / (2 + round % 3) : i;
        keys[i] = (struct key){UINT64_MAX - at, high, block};
    }
    sort_order(p, keys);
}

// Lays the blocks until they are as low as possible or the budget is spent. `best`: the offsets.
static size_t search(struct placing *p, struct key *keys, size_t *best) {
    enum { ROUNDS = 12 };
    const size_t pairs = (size_t)ORDERS * (size_t)FITS;
    size_t size = SIZE_MAX;
    for (size_t turn = 0; turn == 0 || (size > p->least && p->looks <= BUDGET); turn++) {
        const size_t pair = turn < pairs ? turn : turn / ROUNDS % pairs;
        // First each order with each fit once, then each pair with rounds of squeaking.
        if (turn < pairs || turn % ROUNDS == 0) {
            set_order(p, keys, (enum order)(pair / FITS));
        } else {
            squeak(p, keys, turn);
        }
        const size_t found = lay(p, (enum fit)(pair % FITS));
        if (found < size) {
            size = found;
            memcpy(best, p->offsets, p->count * sizeof *best);
        }
    }
    return size;
}

static void set_parts(struct placing *p) {
    for (size_t i = 0; i < p->count; i++) {
        const struct n8_block *block = &p->blocks[i];
        p->parts[2 * i] = (struct part){i, 0, block->bytes, block->born, block->dies, NOBODY};
        p->parts[2 * i + 1] = (struct part){
            i, block->early_begin, block->early_end, block->early_born, block->born - 1, NOBODY};
    }
}

enum n8_status n8_place_blocks(struct n8_block *blocks, size_t count, uint64_t least,
                               uint64_t *size) {
    size_t steps = 1;
    for (size_t i = 0; i < count; i++) {
        steps = blocks[i].dies >= steps ? blocks[i].dies + 1 : steps;
    }
    struct placing p = {
        .blocks = blocks,
        .count = count,
        .parts = malloc((2 * count + 1) * sizeof *p.parts),
        .order = malloc((count + 1) * sizeof *p.order),
        .offsets = malloc((count + 1) * sizeof *p.offsets),
        .steps = steps,
        .nodes = malloc(steps * sizeof *p.nodes),
        .taken = malloc((4 * count + 1) * sizeof *p.taken),
        .least = least,
    };
    struct key *keys = malloc((count + 1) * sizeof *keys);
    size_t *best = malloc((count + 1) * sizeof *best);
    const bool room = p.order != NULL && p.offsets != NULL && best != NULL && p.parts != NULL &&
                      p.nodes != NULL && p.taken != NULL && keys != NULL;
    if (room) {
        set_parts(&p);
        *size = count == 0 ? 0 : search(&p, keys, best);
        for (size_t i = 0; i < count; i++) {
            blocks[i].offset = best[i];
        }
    }
    free(p.order);
    free(p.offsets);
    free(best);
    free(p.parts);
    free(p.nodes);
    free(p.taken);
    free(keys);
    return room ? N8_OK : N8_E_MEMORY;
}
