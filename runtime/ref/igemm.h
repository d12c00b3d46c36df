// SPDX-License-Identifier: Apache-2.0
//
// What the C kernels of implicit GEMM share. They differ in what becomes of the sums.
#ifndef N8_REF_IGEMM_H
#define N8_REF_IGEMM_H

#include "epilogue.h"
#include "panel.h"

#include <string.h>

enum { N8_LANES = 4 };

// Up to four neighbouring channels of a panel and their entries of the arrays.
struct n8_lanes {
    size_t first;    // channel of the layer
    size_t at;       // the same in its panel
    size_t count;    // of the panel
    size_t channels; // of the layer: what is stored
    int32_t bias[N8_LANES];
    float multiplier[N8_LANES], bias_f32[N8_LANES], slope[N8_LANES];
};

// Stores pixel p of these lanes.
typedef void n8_igemm_store_fn(const struct n8_igemm_args *args, const struct n8_lanes *lanes,
                               size_t p, const int32_t sums[N8_LANES]);

// The sums of pixels first .. first + pixels, the next even number of them, by (23).
void n8_igemm_winograd_sums(const struct n8_igemm_args *args, const struct n8_lanes *lanes,
                            const int8_t *weights, size_t first, size_t pixels,
                            int32_t sums[N8_MAX_MR][N8_LANES]);

// All sums of a layer (3)(12), for any geometry, each of which `store` takes.
void n8_igemm(const struct n8_igemm_args *args, n8_igemm_store_fn *store);

// Stores one pixel's values as int8 (5)(5b).
N8_INLINE void n8_igemm_store_s8(const struct n8_igemm_args *args, const struct n8_lanes *lanes,
                                 size_t p, float v[N8_LANES]) {
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    int8_t q[N8_LANES];
    if (args->slope) {
        for (size_t j = 0; j < N8_LANES; j++)
            v[j] = n8_leaky(v[j], lanes->slope[j]);
    }
    for (size_t j = 0; j < N8_LANES; j++)
        q[j] = n8_round_s8(v[j], limits);
    int8_t *out = (int8_t *)args->out + (ptrdiff_t)p * args->out_stride + lanes->first;
    for (size_t j = 0; j < lanes->channels; j++)
        out[j] = q[j];
}

#endif // N8_REF_IGEMM_H
