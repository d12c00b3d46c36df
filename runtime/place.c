// SPDX-License-Identifier: Apache-2.0
//
// Dynamic storage allocation with lifetimes that are known: NP-hard, but networks are kind to
// it. One block after the other is laid where it fits, in several orders; then, as in squeaky
// wheel optimization (Joslin and Clements, 1999), blocks that ended up too high come earlier in
// the next round. The first placement of the least size ends the search, a budget of looks at
// pairs of blocks ends it otherwise.
#include "place.h"

#include "size.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET = 1 << 22 }; // looks at a block: some milliseconds

uint64_t n8_load_of(const struct n8_block *blocks, size_t count, size_t steps, uint64_t *load) {
    memset(load, 0, (steps + 2) * sizeof *load);
    for (size_t i = 0; i < count; i++) { // differences first, modulo 2^64
        load[blocks[i].born] += blocks[i].bytes;
        load[blocks[i].dies + 1] -= blocks[i].bytes;
        load[blocks[i].tail_born] += blocks[i].tail; // nothing where there is no tail
        load[blocks[i].tail == 0 ? 0 : blocks[i].born] -= blocks[i].tail;
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

// A placement in the making.
struct placing {
    const struct n8_block *blocks;
    size_t count;
    const struct part *parts; // 2 of each block; the second has no bytes where there is no tail
    size_t *order;            // of the blocks, as they are laid
    size_t *offsets;          // of each block
    size_t *laid;             // parts that have a place, by their offset
    size_t laid_count;
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
    struct gap best = {.from = SIZE_MAX};
    struct gap gap = {.from = 0, .below = SIZE_MAX};
    for (size_t i = 0; i <= p->laid_count; i++) {
        const bool last = i == p->laid_count;
        const struct part *other = last ? NULL : &p->parts[p->laid[i]];
        p->looks++;
        if (!last && !together(it, other)) {
            continue;
        }
        gap.to = last ? SIZE_MAX : begin_of(p, p->laid[i]);
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
        if (!last && end_of(p, p->laid[i]) > gap.from) {
            gap.from = end_of(p, p->laid[i]);
            gap.below = other->dies;
        }
    }
    const bool high = fit == SIDES && best.to != SIZE_MAX && best.above > best.below;
    return high ? best.to - it->bytes : best.from;
}

// The lowest offset at which neither of the two parts of a block meets another.
static size_t choose_for_both(struct placing *p, size_t block) {
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < p->laid_count; i++) {
            const size_t begin = begin_of(p, p->laid[i]);
            const size_t end = end_of(p, p->laid[i]);
            for (size_t k = 2 * block; k < 2 * block + 2; k++) {
                const struct part *part = &p->parts[k];
                const size_t from = n8_add(offset, part->begin);
                p->looks++;
                if (together(part, &p->parts[p->laid[i]]) && from < end &&
                    begin < n8_add(from, part->bytes)) {
                    offset = end > part->begin ? end - part->begin : 0;
                    moved = true;
                }
            }
        }
    }
    return offset;
}

static void insert(struct placing *p, size_t part) {
    const size_t begin = begin_of(p, part);
    size_t i = p->laid_count++;
    for (; i > 0 && begin_of(p, p->laid[i - 1]) > begin; i--) {
        p->laid[i] = p->laid[i - 1];
    }
    p->laid[i] = part;
}

// Lays all blocks in p->order. Returns the size of the arena.
static size_t lay(struct placing *p, enum fit fit) {
    size_t size = 0;
    p->laid_count = 0;
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
    size_t size; // of the best
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

enum n8_status n8_place_blocks(struct n8_block *blocks, size_t count, uint64_t least,
                               uint64_t *size) {
    *size = 0;
    if (count == 0) {
        return N8_OK;
    }
    size_t *indices = malloc(5 * count * sizeof *indices);
    struct part *parts = calloc(2 * count, sizeof *parts);
    struct key *keys = malloc(count * sizeof *keys);
    if (indices == NULL || parts == NULL || keys == NULL) {
        free(indices);
        free(parts);
        free(keys);
        return N8_E_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        const struct n8_block *block = &blocks[i];
        parts[2 * i] = (struct part){i, 0, block->bytes, block->born, block->dies};
        if (block->tail != 0) {
            parts[2 * i + 1] = (struct part){i, block->bytes - block->tail, block->tail,
                                             block->tail_born, block->born - 1};
        }
    }
    struct search search = {
        .placing =
            {
                .blocks = blocks,
                .count = count,
                .parts = parts,
                .order = indices,
                .offsets = indices + count,
                .laid = indices + 2 * count,
                .least = least,
            },
        .keys = keys,
        .best = indices + 4 * count,
        .size = SIZE_MAX,
    };
    find(&search);
    for (size_t i = 0; i < count; i++) {
        blocks[i].offset = search.best[i];
    }
    *size = search.size;
    free(keys);
    free(parts);
    free(indices);
    return N8_OK;
}
