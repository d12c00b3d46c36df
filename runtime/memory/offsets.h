// SPDX-License-Identifier: Apache-2.0
//
// Blocks of memory that are needed for some time each, laid into one arena.
#ifndef N8_OFFSETS_H
#define N8_OFFSETS_H

#include "include/neon8.h"

struct n8_block {
    size_t bytes;
    size_t born, dies; // steps between which it is in use, both included
    size_t tail;       // of its last bytes that are in use before it is born, too,
    size_t tail_born;  // from this step on; 0: none
    size_t offset;     // the result
};

// Adds `times` the block, or takes it away for UINT64_MAX, in the changes of the sum of blocks in
// use from one step to the next, modulo 2^64.
void n8_count_block(const struct n8_block *block, uint64_t times, uint64_t *changes);

// The largest sum of blocks in use at one of the steps 0 .. steps: no placement is smaller.
// `load`, steps + 2 entries, is told the sum at each of them.
uint64_t n8_load_of(const struct n8_block *blocks, size_t count, size_t steps, uint64_t *load);

// Finds offsets so that no two blocks in use at the same time overlap, and writes the size of
// the arena. `least` is what n8_load_of says: who reaches it stops. The result depends on the
// arguments only. N8_E_MEMORY: there is none to think in.
enum n8_status n8_place_blocks(struct n8_block *blocks, size_t count, uint64_t least,
                               uint64_t *size);

#endif // N8_OFFSETS_H
