// SPDX-License-Identifier: Apache-2.0
#include "depthwise.h"

enum { PIECE = 32 }; // of taps, whose weights are widened at a time

// A kernel of any size: where a piece is all of it, as usual, its weights serve the whole row.
void N8_VECTOR_KERNEL(depthwise_s8)(const struct n8_depthwise_args *args) {
    const struct n8_rounding to = n8_rounding_of(args->zero_point, args->lo, args->hi);
    const size_t width = (size_t)args->kernel_width;
    const size_t taps = (size_t)args->kernel_height * width;
    for (size_t c = 0; c < args->channels; c += N8_DEPTHWISE_ONCE) {
        const size_t channels = args->channels - c;
        const struct n8_depthwise_channels of = n8_depthwise_channels(args, c);
        const int8_t *weights = args->weights + c * taps;
        const int8_t *places[PIECE + 1];
        struct n8_two w[PIECE / 2];
        for (size_t p = 0; p < args->pixels; p++) {
            const ptrdiff_t at = (ptrdiff_t)p * args->step + (ptrdiff_t)c;
            struct n8_two sums = of.bias;
            for (size_t first = 0; first < taps; first += PIECE) {
                const size_t left = taps - first;
                const size_t count = left < PIECE ? left : PIECE;
                for (size_t t = 0; t < count && (p == 0 || taps > PIECE); t++) {
                    const size_t y = (first + t) / width, x = (first + t) % width;
                    places[t] = args->rows[y] + (ptrdiff_t)x * args->tap_stride;
                    if (t % 2 == 0)
                        w[t / 2] = n8_depthwise_weights(weights, first + t, taps, channels);
                    places[t + 1] = places[t]; // what an odd one is paired with has weight 0
                }
                for (size_t t = 0; t < count; t += 2) {
                    n8_depthwise_pair(&sums, n8_depthwise_load(places[t] + at, channels),
                                      n8_depthwise_load(places[t + 1] + at, channels), w[t / 2]);
                }
            }
            n8_depthwise_store(args->out + (ptrdiff_t)p * args->out_stride + c, sums, &of,
                               args->slope, &to, channels);
        }
    }
}
