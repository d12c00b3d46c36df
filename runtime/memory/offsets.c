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

void n8_count_block(const struct n8_block *block, uint64_t times, uint64_t *changes) {
    changes[block->born] += times * block->bytes;
    changes[block->dies + 1] -= times * block->bytes;
    changes[block->tail_born] += times * block->tail; // nothing where there is no tail
    changes[block->tail == 0 ? 0 : block->born] -= times * block->tail;
}

uint64_t n8_load_of(const struct n8_block *blocks, size_t count, size_t steps, uint64_t *load) {
    memset(load, 0, (steps + 2) * sizeof *load);
    for (size_t i = 0; i < count; i++) {
        n8_count_block(&blocks[i], 1, load);
    }
    uint64_t most = 0;
    for (size_t s = 0; s <= steps; s++) {
        load[s] += s == 0 ? 0 : load[s - 1];
        most = load[s] > most ? load[s] : most;
    }
    return most;
}

// A block, or the tail that it has before it is born: what is in use from one step to another.
struct part {
    size_t block;
    size_t begin, bytes; // in the block
    size_t born, dies;
};

static const size_t NOBODY = SIZE_MAX;

// A step of the tree of lifetimes.
struct node {
    size_t first; // part, or NOBODY; p->others leads to the next
    size_t count; // of parts here and below
};

// Where a part lies that lives together with the block to be laid.
struct span {
    size_t from, to;
    size_t dies;
    size_t part;
};

// A placement in the making.
struct placing {
    const struct n8_block *blocks;
    size_t count;
    const struct part *parts; // 2 of each block; the second has no bytes where there is no tail
    size_t *order;            // of the blocks, as they are laid
    size_t *offsets;          // of each block
    size_t steps;             // all parts are born and die before this one
    struct node *nodes;       // of each step: the parts that have a place, by their lifetimes
    size_t *others;           // of each part: another one of its node, or NONE
    size_t *laid;             // parts that have a place, by their offset
    size_t laid_count;
    struct span *met; // laid parts that live together with a block
    size_t met_count;
    uint64_t least;
    uint64_t looks;
};

static bool together(const struct part *a, const struct part *b) {
    return a->born <= b->dies && b->born <= a->dies;
}

static size_t begin_of(const struct placing *p, size_t part) {
    return n8_add(p->offsets[p->parts[part].block], p->parts[part].begin);
}

static size_t end_of(const struct placing *p, size_t part) {
    return n8_add(begin_of(p, part), p->parts[part].bytes);
}

// Who lives together --------------------------------------------------------------------
//
// An interval tree: the root is the step in the middle, the steps before it and after it are the
// subtrees on its two sides. A part belongs to the highest node whose step it is alive at, so
// that the parts of one node are all alive together.

static void clear(struct placing *p) {
    p->laid_count = 0;
    for (size_t s = 0; s < p->steps; s++) {
        p->nodes[s] = (struct node){.first = NOBODY};
    }
}

static void insert(struct placing *p, size_t part) {
    const struct part *it = &p->parts[part];
    const size_t begin = begin_of(p, part);
    size_t i = p->laid_count++;
    for (; i > 0 && begin_of(p, p->laid[i - 1]) > begin; i--) {
        p->laid[i] = p->laid[i - 1];
    }
    p->laid[i] = part;
    size_t from = 0;
    size_t to = p->steps;
    for (;;) {
        const size_t middle = from + (to - from) / 2;
        struct node *node = &p->nodes[middle];
        node->count++;
        if (it->dies < middle) {
            to = middle;
        } else if (it->born > middle) {
            from = middle + 1;
        } else {
            p->others[part] = node->first;
            node->first = part;
            return;
        }
    }
}

static void add_met(struct placing *p, size_t part) {
    p->met[p->met_count++] = (struct span){
        .from = begin_of(p, part),
        .to = end_of(p, part),
        .dies = p->parts[part].dies,
        .part = part,
    };
}

// Appends the parts at the nodes of steps [from, to) that live together with `part` to p->met,
// up to `most` in all.
static void meet_nodes(struct placing *p, size_t part, size_t from, size_t to, size_t most) {
    const struct part *it = &p->parts[part];
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const struct node *node = &p->nodes[middle];
        p->looks++;
        if (node->count == 0) {
            return;
        }
        for (size_t other = node->first; other != NOBODY; other = p->others[other]) {
            p->looks++;
            if (p->met_count >= most) {
                return;
            }
            if (together(it, &p->parts[other])) {
                add_met(p, other);
            }
        }
        if (it->born < middle && it->dies > middle) {
            meet_nodes(p, part, from, middle, most);
        }
        if (it->dies > middle) {
            from = middle + 1;
        } else if (it->born < middle) {
            to = middle;
        } else {
            return;
        }
    }
}

static int by_place(const void *left, const void *right) {
    const struct span *a = left;
    const struct span *b = right;
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    return a->part < b->part ? -1 : a->part > b->part;
}

static void sort_met(struct placing *p) {
    for (size_t count = p->met_count; count > 1; count /= 2) {
        p->looks += p->met_count;
    }
    qsort(p->met, p->met_count, sizeof *p->met, by_place);
}

// Parts that live together with `part`, by their offset.
static void meet(struct placing *p, size_t part) {
    enum { FEW = 32 }; // so many are quicker looked at than looked for
    p->met_count = 0;
    if (p->laid_count > FEW) {
        meet_nodes(p, part, 0, p->steps, p->laid_count / FEW);
        if (p->met_count < p->laid_count / FEW) {
            sort_met(p);
            return;
        }
    }
    p->met_count = 0;
    p->looks += p->laid_count;
    for (size_t i = 0; i < p->laid_count; i++) {
        if (together(&p->parts[part], &p->parts[p->laid[i]])) {
            add_met(p, p->laid[i]);
        }
    }
}

// How a gap is chosen, and on which side of it the block lies.
enum fit {
    LOWEST,   // the first gap, at its lower end
    SMALLEST, // the smallest gap below `least`, else the first; at its lower end
    SIDES,    // the smallest gap, next to the neighbour that stays longer; the ends of the arena
              // stay for ever
};

struct gap {
    size_t from, to;     // to: SIZE_MAX for the one above all
    size_t below, above; // when the neighbours die
};

static size_t choose_offset(struct placing *p, size_t block, enum fit fit) {
    const struct part *it = &p->parts[2 * block];
    meet(p, 2 * block);
    struct gap best = {.from = SIZE_MAX};
    struct gap gap = {.from = 0, .below = SIZE_MAX};
    for (size_t i = 0; i <= p->met_count; i++) {
        const bool last = i == p->met_count;
        const struct span *other = &p->met[i];
        gap.to = last ? SIZE_MAX : other->from;
        gap.above = last ? SIZE_MAX : other->dies;
        if (last && gap.from < p->least && p->least - gap.from >= it->bytes) {
            gap.to = (size_t)p->least; // the arena's wanted end is a wall
        }
        if (gap.to > gap.from && gap.to - gap.from >= it->bytes) {
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
    return high ? best.to - it->bytes : best.from;
}

// The lowest offset at which neither of the two parts of a block meets another.
static size_t choose_for_both(struct placing *p, size_t block) {
    p->met_count = 0;
    for (size_t k = 2 * block; k < 2 * block + 2; k++) {
        const struct part *part = &p->parts[k];
        const size_t first = p->met_count;
        meet_nodes(p, k, 0, p->steps, SIZE_MAX);
        for (size_t i = first; i < p->met_count; i++) { // offsets of the block that are taken
            struct span *span = &p->met[i];
            const size_t end = n8_add(part->begin, part->bytes);
            span->from = span->from < end ? 0 : span->from - end + 1;
            span->to = span->to < part->begin ? 0 : span->to - part->begin;
        }
    }
    sort_met(p);
    size_t offset = 0;
    for (size_t i = 0; i < p->met_count && p->met[i].from <= offset; i++) {
        offset = p->met[i].to > offset ? p->met[i].to : offset;
    }
    return offset;
}

// Lays all blocks in p->order. Returns the size of the arena.
static size_t lay(struct placing *p, enum fit fit) {
    size_t size = 0;
    clear(p);
    for (size_t n = 0; n < p->count; n++) {
        const size_t block = p->order[n];
        const bool tail = p->parts[2 * block + 1].bytes != 0;
        p->offsets[block] = tail ? choose_for_both(p, block) : choose_offset(p, block, fit);
        insert(p, 2 * block);
        if (tail) {
            insert(p, 2 * block + 1);
        }
        size = end_of(p, 2 * block) > size ? end_of(p, 2 * block) : size;
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

enum order { BY_SIZE, BY_AREA, BY_LIFE, BY_BIRTH, ORDERS };

static void set_order(struct placing *p, struct key *keys, enum order order) {
    for (size_t i = 0; i < p->count; i++) {
        const struct n8_block *block = &p->blocks[i];
        const uint64_t life = block->dies - block->born + 1;
        keys[i] = (struct key){.first = block->bytes, .second = life, .block = i};
        if (order == BY_AREA) {
            keys[i].first = block->bytes * life;
        } else if (order == BY_LIFE) {
            keys[i].first = life;
            keys[i].second = block->bytes;
        } else if (order == BY_BIRTH) {
            keys[i].first = UINT64_MAX - block->born;
            keys[i].second = block->bytes;
        }
    }
    qsort(keys, p->count, sizeof *keys, by_key);
    for (size_t i = 0; i < p->count; i++) {
        p->order[i] = keys[i].block;
    }
}

// Blocks that end above the least size come earlier, by a share of their way to the front.
static void squeak(struct placing *p, struct key *keys, size_t round) {
    for (size_t i = 0; i < p->count; i++) {
        const bool high = end_of(p, 2 * p->order[i]) > p->least;
        const size_t at = high ? i - i / (2 + round % 3) : i;
        keys[i] = (struct key){.first = UINT64_MAX - at, .second = high, .block = p->order[i]};
    }
    qsort(keys, p->count, sizeof *keys, by_key);
    for (size_t i = 0; i < p->count; i++) {
        p->order[i] = keys[i].block;
    }
}

struct search {
    struct placing placing;
    struct key *keys;
    size_t *best;
    uint64_t size; // of the best
};

// True if the search is over.
static bool keep(struct search *search, size_t size) {
    struct placing *p = &search->placing;
    if (size < search->size) {
        search->size = size;
        memcpy(search->best, p->offsets, p->count * sizeof *search->best);
    }
    return search->size <= p->least || p->looks > BUDGET;
}

static void find(struct search *search) {
    struct placing *p = &search->placing;
    static const enum fit fits[] = {SIDES, LOWEST, SMALLEST};
    const size_t fit_count = sizeof fits / sizeof fits[0];
    for (size_t order = 0; order < ORDERS; order++) {
        for (size_t f = 0; f < fit_count; f++) {
            set_order(p, search->keys, (enum order)(ORDERS - 1 - order));
            if (keep(search, lay(p, fits[f]))) {
                return;
            }
        }
    }
    for (size_t start = 0;; start = (start + 1) % ((size_t)ORDERS * fit_count)) {
        enum { ROUNDS = 12 };
        set_order(p, search->keys, (enum order)(start / fit_count));
        for (size_t round = 0; round < ROUNDS; round++) {
            if (keep(search, lay(p, fits[start % fit_count]))) {
                return;
            }
            squeak(p, search->keys, round + (size_t)(p->looks % 2));
        }
    }
}

static void set_parts(struct part *parts, const struct n8_block *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct n8_block *block = &blocks[i];
        parts[2 * i] = (struct part){i, 0, block->bytes, block->born, block->dies};
        if (block->tail != 0) {
            parts[2 * i + 1] = (struct part){i, block->bytes - block->tail, block->tail,
                                             block->tail_born, block->born - 1};
        }
    }
}

enum n8_status n8_place_blocks(struct n8_block *blocks, size_t count, uint64_t least,
                               uint64_t *size) {
    *size = 0;
    if (count == 0) {
        return N8_OK;
    }
    size_t steps = 1;
    for (size_t i = 0; i < count; i++) {
        steps = blocks[i].dies >= steps ? blocks[i].dies + 1 : steps;
    }
    size_t *indices = malloc(7 * count * sizeof *indices);
    struct part *parts = calloc(2 * count, sizeof *parts);
    struct span *met = malloc(4 * count * sizeof *met);
    struct key *keys = malloc(count * sizeof *keys);
    struct node *nodes = malloc(steps * sizeof *nodes);
    const bool room =
        indices != NULL && parts != NULL && met != NULL && keys != NULL && nodes != NULL;
    if (room) {
        struct search search = {
            .placing =
                {
                    .blocks = blocks,
                    .count = count,
                    .parts = parts,
                    .order = indices,
                    .offsets = indices + count,
                    .steps = steps,
                    .nodes = nodes,
                    .others = indices + 2 * count,
                    .laid = indices + 4 * count,
                    .met = met,
                    .least = least,
                },
            .keys = keys,
            .best = indices + 6 * count,
            .size = UINT64_MAX,
        };
        set_parts(parts, blocks, count);
        find(&search);
        for (size_t i = 0; i < count; i++) {
            blocks[i].offset = search.best[i];
        }
        *size = search.size;
    }
    free(indices);
    free(parts);
    free(met);
    free(keys);
    free(nodes);
    return room ? N8_OK : N8_E_MEMORY;
}
