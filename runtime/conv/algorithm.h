// SPDX-License-Identifier: Apache-2.0
//
// The algorithms of convolutions: conv.c finds out which one a layer takes, one file has each.
#ifndef N8_CONV_ALGORITHM_H
#define N8_CONV_ALGORITHM_H

#include "conv.h"
#include "size.h"

#include <string.h>

enum { N8_ALIGN_PART = 16 }; // of each group's packed weights and arrays

// What each algorithm has: plan completes a plan whose kernel is chosen, with sizes that saturate
// to SIZE_MAX; pack packs the weights into group_weights bytes of each group, which are zero; and
// run is n8_conv_run.
#pragma GCC visibility push(hidden)
#define N8_FUNCTIONS(symbol)                                                                       \
    N8_ONCE void n8_conv_plan_##symbol(struct n8_conv *conv, const struct n8_kernels *kernels,     \
                                       const struct n8_conv_certificate *certificate);             \
    void n8_conv_pack_##symbol(const struct n8_conv *conv, const int8_t *weights, void *memory);   \
    void n8_conv_run_##symbol(const struct n8_conv *conv, const struct n8_conv_io *io,             \
                              size_t begin, size_t end, void *scratch);
N8_CONV_ALGORITHMS(N8_FUNCTIONS)
#undef N8_FUNCTIONS
#pragma GCC visibility pop

// What one unit computes: pixels, tiles or rows [first, first + count) of an image, of which a
// block has up to `block`, and a slice of the channels of a group.
struct n8_conv_unit {
    size_t block, image, first, count;
    size_t group, channel, channels;
    size_t alike; // units from this one on that differ in their channels only
};

static inline struct n8_conv_unit n8_conv_unit_at(const struct n8_conv *conv, size_t unit,
                                                  size_t of_image, size_t block) {
    const size_t blocks = n8_pieces(of_image, block);
    struct n8_conv_unit it = {.block = unit, .alike = 1};
    size_t slice = 0;       // of the group
    if (conv->slices > 1) { // else without divisions, of which a small unit would notice each
        const size_t slices = conv->slices / conv->groups;
        const size_t together = conv->cached == 0 ? conv->slices : conv->cached;
        const size_t all = together * (conv->units / conv->slices); // units of so many slices
        const size_t before = unit / all * together, rest = conv->slices - before;
        const size_t some = rest < together ? rest : together;
        const size_t at = before + unit % all % some;
        it.block = unit % all / some;
        it.group = at / slices;
        slice = at % slices;
        it.alike = n8_smaller(some - unit % all % some, slices - slice);
    }
    it.image = it.block / blocks;
    it.first = it.block % blocks * block;
    it.count = n8_smaller(of_image - it.first, block);
    it.channel = slice * conv->slice;
    it.channels = n8_smaller(conv->group_out - it.channel, conv->slice);
    return it;
}

// The same of all units before `end` that are alike, with their channels. How many they are.
size_t n8_conv_units_at(const struct n8_conv *conv, size_t unit, size_t end, size_t of_image,
                        size_t block, struct n8_conv_unit *at);

// winograd16.c: how many of the tiles of an image a unit has.
size_t n8_winograd16_block(size_t depth, size_t tiles, bool transforms);

// depthwise.c: the columns that `pixels` neighbouring outputs see, from first to last.
size_t n8_depthwise_window(const struct n8_conv2d_shape *s, size_t pixels);

// Makes the copies of `block` outputs fit a second-level cache, if columns take `column` bytes.
void n8_depthwise_fit(struct n8_conv *conv, size_t block, size_t column);

// Sets the slices of a plan whose panels are of `panel` bytes. Weights that do not fit half of a
// second-level cache of `cache` bytes are sliced so that they do, and read once instead of once for
// each block; and where there are fewer units than many threads want, as in a fully connected
// layer, threads share the channels, too.
void n8_plan_slices(struct n8_conv *conv, size_t blocks, size_t panel, size_t cache);

// The arguments of a GEMM kernel for the `count` output pixels from pixel `first` of all images on
// and channels [channel, channel + channels) of one group, but for its rows and weights.
void n8_igemm_args_of(const struct n8_conv *conv, const struct n8_conv_io *io, size_t first,
                      size_t count, size_t group, size_t channel, size_t channels,
                      struct n8_igemm_args *args);

// What becomes of the accumulators of `pixels` output pixels from `pixel` of all images on and of
// channels [channel, channel + channels) of the layer, whose entries of the arrays begin at
// `entry`: int8, int16 or float32. `bias`: what is still to be added to them, or NULL.
struct n8_conv_accumulators {
    int32_t *acc; // `stride` bytes from pixel to pixel; may be changed
    ptrdiff_t stride;
    const int32_t *bias;
    size_t pixel, pixels, channel, channels, entry;
};
void n8_conv_output(const struct n8_conv *conv, const struct n8_conv_io *io,
                    const struct n8_conv_accumulators *it);

// (5d) of an output channel whose weights above 0 add up to `above`, the magnitudes of those below
// to `below`: what its sums begin with, and what is added to their products with the multiplier.
// False where one fused multiply-add does not give the bytes of (5).
bool n8_fuse_channel(float multiplier, int32_t bias, int64_t above, int64_t below,
                     const struct n8_conv2d_epilogue *e, int32_t *start, float *addend);

// The same of packed arrays, into others of that layout. A panel of so many channels that are not
// all proved starts with 0; how many do.
size_t n8_conv_fuse(const struct n8_conv *conv, const int8_t *weights, size_t panel, int32_t *start,
                    float *addend);

// Whether the tiles of a kernel of (23) may run on from one row of outputs into the next.
static inline bool n8_winograd_runs_on(const struct n8_tile *tile,
                                       const struct n8_conv2d_shape *shape) {
    return shape->out_width % (tile->packing == N8_PACKING_WINOGRAD_PAIRS ? 4 : 2) == 0;
}

// The arrays of a model file are as aligned as the caller's buffer: not at all.
static inline int32_t n8_load_i32(const int32_t *array, size_t index) {
    int32_t value;
    memcpy(&value, (const uint8_t *)array + index * sizeof value, sizeof value);
    return value;
}

// The same of weights, which are int8 or int16.
static inline int16_t n8_load_weight(const struct n8_conv *conv, const int8_t *weights,
                                     size_t index) {
    if (!conv->weights_s16) {
        return weights[index];
    }
    int16_t value;
    memcpy(&value, weights + index * sizeof value, sizeof value);
    return value;
}

// Where one tap of a window falls.
static inline int64_t n8_tap_at(int64_t out, int32_t stride, int32_t tap, int32_t dilation,
                                int32_t pad) {
    return out * stride + (int64_t)tap * dilation - pad;
}

#endif // N8_CONV_ALGORITHM_H
