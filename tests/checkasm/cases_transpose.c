// SPDX-License-Identifier: Apache-2.0
//
// Values in another order: tiles, what is left of them, and strides with room between.
#include "checkasm.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST = 68,    // values along one side
    ROUNDS = 500, // and one that is large
    LARGE = 1000,
    PIXEL = 8,
};

// Every number of channels with every number of pixels up to four tiles. The last plane, or pixel,
// ends where it is read and written no further.
void cases_n8_planes_fn(struct context *context) {
    struct rng *rng = &context->rng;
    const bool to_planes = strcmp(context->kernel->slot, "deinterleave_s8") == 0;
    for (int step = 0; step <= MOST * PIXEL; step++) {
        const bool last = step == MOST * PIXEL;
        const size_t pixels = last ? LARGE : (size_t)(step % MOST);
        const size_t channels = last ? 3 : (size_t)(step / MOST) + 1;
        const size_t pixel = PIXEL + (rng_below(rng, 2) ? 0 : rng_below(rng, 20));
        const size_t plane = pixels + rng_below(rng, 3) * rng_below(rng, 40);
        const size_t planes_size = (channels - 1) * plane + pixels;
        const size_t pixels_size = pixels == 0 ? 0 : (pixels - 1) * pixel + PIXEL;
        const size_t in_size = to_planes ? pixels_size : planes_size;
        const size_t out_size = to_planes ? planes_size : pixels_size;
        int8_t *out = guard_place(rng, REGION_OUT, out_size);
        int8_t *in = guard_place(rng, REGION_IN, in_size);
        rng_bytes(rng, in, in_size);
        struct test_case test = {.out = (uint8_t *)out, .out_size = out_size};
        test.call = (struct call){
            .signature = SIGNATURE_PLANES,
            .x = {(uintptr_t)out, to_planes ? plane : pixel, (uintptr_t)in,
                  to_planes ? pixel : plane, channels, pixels},
        };
        snprintf(test.text, sizeof test.text, "channels=%zu pixels=%zu pixel=%zu plane=%zu",
                 channels, pixels, pixel, plane);
        check_step(context, &test, last);
    }
}

void cases_n8_transpose_fn(struct context *context) {
    enum { FEW = 12, SIZE = sizeof(float) };
    struct rng *rng = &context->rng;
    for (int step = 0; step <= FEW * FEW + ROUNDS; step++) {
        const bool last = step == FEW * FEW + ROUNDS;
        size_t rows = (size_t)step % FEW, columns = (size_t)step / FEW;
        if (last) {
            rows = LARGE;
            columns = FEW;
        } else if (step >= FEW * FEW) {
            rows = rng_below(rng, MOST);
            columns = rng_below(rng, MOST);
        }
        const size_t in_stride = columns * SIZE + rng_below(rng, 2) * rng_below(rng, 20);
        const size_t out_stride = rows * SIZE + rng_below(rng, 2) * rng_below(rng, 20);
        const bool none = rows == 0 || columns == 0;
        const size_t in_size = none ? 0 : (rows - 1) * in_stride + columns * SIZE;
        const size_t out_size = none ? 0 : (columns - 1) * out_stride + rows * SIZE;
        uint8_t *out = guard_place(rng, REGION_OUT, out_size);
        uint8_t *in = guard_place(rng, REGION_IN, in_size);
        rng_bytes(rng, in, in_size);
        struct test_case test = {.out = out, .out_size = out_size};
        test.call = (struct call){
            .signature = SIGNATURE_TRANSPOSE,
            .x = {(uintptr_t)out, out_stride, (uintptr_t)in, in_stride, rows, columns},
        };
        snprintf(test.text, sizeof test.text, "rows=%zu columns=%zu strides=%zu,%zu", rows, columns,
                 out_stride, in_stride);
        check_step(context, &test, last);
    }
}
