// SPDX-License-Identifier: Apache-2.0
//
// Blocks of memory that are needed for some time each, laid into one arena.
#ifndef N8_OFFSETS_H
#define N8_OFFSETS_H

#include "include/neon8.h"

struct n8_block {
    size_t bytes;
    size_t born, dies;             // steps between which it is in use, both included
    size_t early_begin, early_end; // bytes of it that are in use before it is born, too, from
    size_t early_born;             // this step on; the same: none
    size_t offset;                 // the result
};

// Finds offsets so that no two blocks in use at the same time overlap, and writes the size of the
// arena. `least` is the largest sum of blocks in use at one step: who reaches it stops. The result
// depends on the arguments only. N8_E_MEMORY.
enum n8_status n8_place_blocks(struct n8_block *blocks, size_t count, uint64_t least,
                               uint64_t *size);

#endif // N8_OFFSETS_H
