// SPDX-License-Identifier: Apache-2.0
//
// Where the weights of an implicit GEMM lie: the orders that enum n8_packing names.
#ifndef N8_PANEL_H
#define N8_PANEL_H

#include "kernel.h"

#include <stdbool.h>

// Depths are multiples of this.
static inline size_t n8_panel_step(const struct n8_tile *tile) {
    switch (tile->packing) {
    case N8_PACKING_WINOGRAD:
        return 2 * tile->kr;
    case N8_PACKING_CHANNELS_BY_4:
    case N8_PACKING_GROUPS_BY_4:
        return 4 * tile->kr;
    case N8_PACKING_CHANNELS:
    case N8_PACKING_GROUPS:
    case N8_PACKING_BOTH:
    case N8_PACKING_WINDOWS:
    case N8_PACKING_WINOGRAD_PAIRS:
    default:
        return tile->kr;
    }
}

// Whether rows are packed, by the driver or by the kernel.
static inline bool n8_packs_rows(const struct n8_tile *tile) {
    return tile->packing == N8_PACKING_BOTH || tile->packing == N8_PACKING_WINDOWS;
}

// Lanes of int16 of a channel, each of which sums four products of a group; 0 without groups.
static inline size_t n8_panel_lanes(const struct n8_tile *tile) {
    return tile->packing == N8_PACKING_GROUPS        ? tile->kr / 2
           : tile->packing == N8_PACKING_GROUPS_BY_4 ? tile->kr
                                                     : 0;
}

// Groups of a tap, each with its mark.
static inline size_t n8_panel_groups(const struct n8_tile *tile, size_t depth) {
    const size_t group = 4 * n8_panel_lanes(tile);
    return group == 0 ? 0 : (depth + group - 1) / group;
}

// Bytes of its marks.
static inline size_t n8_panel_marks(const struct n8_tile *tile, size_t depth) {
    const size_t groups = n8_panel_groups(tile, depth);
    return tile->packing == N8_PACKING_GROUPS_BY_4
               ? (groups + N8_WORD_MARKS - 1) / N8_WORD_MARKS * sizeof(uint32_t)
               : groups * sizeof(uint64_t);
}

// Where in a row lies what byte k of a tap in the order GROUPS is multiplied with; `marks`: of the
// tap.
static inline size_t n8_grouped_at(const uint64_t *marks, size_t k) {
    const size_t block = k / N8_BLOCK;
    const uint64_t word = marks[block / N8_BLOCKS];
    return (size_t)(word >> 16 * (block % N8_BLOCKS) & UINT16_MAX) / 2 * N8_BLOCK + k % N8_BLOCK;
}

static inline bool n8_is_winograd(const struct n8_tile *tile) {
    return tile->packing == N8_PACKING_WINOGRAD || tile->packing == N8_PACKING_WINOGRAD_PAIRS;
}

// The panels of both sides of (23) as one, of twice as many channels.
static inline struct n8_tile n8_both_sides(const struct n8_tile *tile) {
    return (struct n8_tile){.nr = 2 * tile->nr, .kr = tile->kr};
}

// Offset of byte k of channel n in one tap of a panel. From a multiple of kr, kr bytes are
// contiguous.
static inline __attribute__((always_inline)) size_t n8_panel_at(const struct n8_tile *tile,
                                                                size_t n, size_t k) {
    const size_t byte = k & (tile->kr - 1);
    return (k - byte) * tile->nr + n * tile->kr + byte;
}

#endif // N8_PANEL_H
