// SPDX-License-Identifier: Apache-2.0
//
// The implicit GEMM (3)(12) without its epilogue, for any geometry: the truth of all kernels.
//
// Both sides are widened to 16 bits in blocks of the depth first, so that the loop that does
// the work is a plain 16-bit dot product, which compilers turn into pmaddwd and smlal. A panel
// is taken four channels at a time, whatever its width.
#include "igemm.h"

#include "panel.h"

#include <string.h>

enum { BLOCK = 256 }; // bytes of depth widened at a time
_Static_assert(BLOCK % N8_MAX_STEP == 0, "a block holds whole steps");

// Bytes k .. k + size of `count` lanes.
N8_INLINE void widen(int16_t w[N8_LANES][BLOCK], const int8_t *weights, const struct n8_tile *tile,
                     size_t at, size_t count, size_t k, size_t size) {
    for (size_t i = 0; i < size; i += tile->kr) {
        for (size_t n = 0; n < count; n++) {
            const int8_t *restrict from = weights + n8_panel_at(tile, at + n, k + i);
            for (size_t j = 0; j < tile->kr; j++)
                w[n][i + j] = from[j];
        }
    }
}

// One tap of a tile, whose rows are at `rows` or, where that is not NULL, `packed`. `marks`: those
// of GROUPS, or NULL.
static void accumulate(int32_t sums[N8_MAX_MR][N8_LANES], const struct n8_tile *tile,
                       const struct n8_lanes *lanes, const int8_t *const *rows,
                       const int8_t *packed, const int8_t *weights, const uint64_t *marks,
                       size_t depth, size_t pixels) {
    const struct n8_tile panel = {.nr = tile->mr, .kr = tile->kr}; // of packed rows
    int16_t w[N8_LANES][BLOCK];
    int16_t x[BLOCK];
    if (lanes->count < N8_LANES)
        memset(w, 0, sizeof w);
    for (size_t k = 0; k < depth; k += BLOCK) {
        const size_t size = depth - k < BLOCK ? depth - k : BLOCK;
        // The geometry of the C rows as constants, for speed; nothing depends on it.
        if (N8_FOR_SPEED && tile->kr == 16 && tile->packing == N8_PACKING_CHANNELS &&
            lanes->count == N8_LANES) {
            const struct n8_tile usual = {tile->mr, tile->nr, 16, N8_PACKING_CHANNELS};
            widen(w, weights, &usual, lanes->at, N8_LANES, k, size);
        } else {
            widen(w, weights, tile, lanes->at, lanes->count, k, size);
        }
        for (size_t p = 0; p < pixels; p++) {
            for (size_t i = 0; packed && i < size; i++)
                x[i] = packed[n8_panel_at(&panel, p, k + i)];
            const int8_t *restrict row = packed ? NULL : rows[p] + k;
            for (size_t i = 0; row && i < size; i++)
                x[i] = row[i];
            for (size_t i = 0; marks && i < size; i++)
                x[i] = rows[p][n8_grouped_at(marks, k + i)];
            int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            for (size_t i = 0; i < size; i++) {
                s0 += x[i] * w[0][i];
                s1 += x[i] * w[1][i];
                s2 += x[i] * w[2][i];
                s3 += x[i] * w[3][i];
            }
            sums[p][0] += s0;
            sums[p][1] += s1;
            sums[p][2] += s2;
            sums[p][3] += s3;
        }
    }
}

static struct n8_lanes lanes_at(const struct n8_igemm_args *args, size_t panel, size_t at) {
    const size_t nr = args->tile->nr;
    struct n8_lanes lanes = {.first = panel + at, .at = at};
    lanes.count = nr - at < N8_LANES ? nr - at : N8_LANES;
    const size_t left = args->channels - lanes.first;
    lanes.channels = left < lanes.count ? left : lanes.count;
    const size_t size = lanes.count * sizeof(int32_t);
    memcpy(lanes.bias, args->bias + lanes.first, size);
    if (args->multiplier)
        memcpy(lanes.multiplier, args->multiplier + lanes.first, size);
    if (args->bias_f32)
        memcpy(lanes.bias_f32, args->bias_f32 + lanes.first, size);
    if (args->slope)
        memcpy(lanes.slope, args->slope + lanes.first, size);
    return lanes;
}

void n8_igemm(const struct n8_igemm_args *args, n8_igemm_store_fn *store) {
    const struct n8_tile tile = *args->tile;
    const bool winograd = n8_is_winograd(&tile);
    const uint64_t *words =
        tile.packing == N8_PACKING_GROUPS ? (const uint64_t *)(const void *)args->deep : NULL;
    const size_t group = N8_BLOCKS * N8_BLOCK, groups = (args->depth + group - 1) / group;
    const size_t tap = args->depth * (winograd ? 2 * tile.nr : tile.nr);
    const int8_t *weights = args->weights;
    for (size_t panel = 0; panel < args->channels; panel += tile.nr, weights += args->taps * tap) {
        for (size_t at = 0; at < tile.nr && panel + at < args->channels; at += N8_LANES) {
            const struct n8_lanes lanes = lanes_at(args, panel, at);
            const int8_t *const *rows = args->rows;
            const int8_t *packed = tile.packing == N8_PACKING_BOTH ? rows[0] : NULL;
            for (size_t p = 0; p < args->pixels; p += tile.mr, rows += args->taps * tile.mr) {
                const size_t pixels = args->pixels - p < tile.mr ? args->pixels - p : tile.mr;
                int32_t sums[N8_MAX_MR][N8_LANES];
                for (size_t i = 0; i < pixels; i++)
                    memcpy(sums[i], lanes.bias, sizeof lanes.bias);
                if (winograd)
                    n8_igemm_winograd_sums(args, &lanes, weights, p, pixels, sums);
                for (size_t t = 0; t < args->taps && !winograd; t++) {
                    const uint64_t *marks =
                        words ? words + (panel / tile.nr * args->taps + t) * groups : NULL;
                    accumulate(sums, &tile, &lanes, packed ? NULL : rows + t * tile.mr, packed,
                               weights + t * tap, marks, args->depth, pixels);
                    packed = packed ? packed + args->depth * tile.mr : NULL;
                }
                for (size_t i = 0; i < pixels; i++)
                    store(args, &lanes, p + i, sums[i]);
            }
        }
    }
}
