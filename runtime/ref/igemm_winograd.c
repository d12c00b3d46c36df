// SPDX-License-Identifier: Apache-2.0
#include "igemm.h"

// One tap of both sides of a tile.
static void add_tap(uint32_t m[2], const struct n8_igemm_args *args, size_t t, size_t tile,
                    const int8_t *weights, size_t channel) {
    const struct n8_tile *geometry = args->tile;
    const struct n8_tile sides = n8_both_sides(geometry);
    const struct n8_tile pair = {.nr = 2, .kr = geometry->kr};
    const bool pairs = geometry->packing == N8_PACKING_WINOGRAD_PAIRS;
    const int8_t *tap = weights + t * args->depth * sides.nr;
    for (size_t s = 0; s < 2; s++) {
        const int8_t *row = args->rows[2 * t + s] + (pairs ? tile / 2 * 2 : tile) * args->depth;
        for (size_t k = 0; k < args->depth; k++) {
            const int32_t x = pairs ? row[n8_panel_at(&pair, tile % 2, k)] : row[k];
            m[s] += (uint32_t)(x * tap[n8_panel_at(&sides, s * geometry->nr + channel, k)]);
        }
    }
}

void n8_igemm_winograd_sums(const struct n8_igemm_args *args, const struct n8_lanes *lanes,
                            const int8_t *weights, size_t first, size_t pixels,
                            int32_t sums[N8_MAX_MR][N8_LANES]) {
    for (size_t p = 0; p < pixels; p += 2) {
        for (size_t j = 0; j < lanes->count; j++) {
            uint32_t m[2] = {(uint32_t)lanes->bias[j], 0};
            for (size_t t = 0; t < args->taps; t++) {
                if (t == args->taps / 2) {
                    const int64_t a = (int32_t)m[0], b = (int32_t)m[1];
                    m[0] = (uint32_t)((a + b) >> args->whole);
                    m[1] = (uint32_t)((a - b) >> args->whole);
                }
                add_tap(m, args, t, (first + p) / 2, weights, lanes->at + j);
            }
            sums[p][j] = (int32_t)m[0];
            sums[p + 1][j] = (int32_t)m[1];
        }
    }
}
