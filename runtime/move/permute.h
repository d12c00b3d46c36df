// SPDX-License-Identifier: Apache-2.0
//
// All values of a tensor in another order, as loops over strides: what Transpose, DepthToSpace
// and channel shuffle have in common.
#ifndef N8_PERMUTE_H
#define N8_PERMUTE_H

#include "cpu/dispatch.h"
#include "include/neon8_format.h"

#include <stdbool.h>

// 8 axes of a view, cut by 3 borders between the dimensions of the input and 3 of the output.
enum { N8_PERMUTE_LOOPS = N8_FORMAT_MAX_RANK + 6 };

// From one value of a loop to the next: so many channels, or so many pixels.
struct n8_permute_step {
    bool pixels;
    size_t count;
};

struct n8_permute_loop {
    size_t size;
    struct n8_permute_step in, out;
};

// The loops from the innermost, whose values lie closest together in the output. The second one is
// that whose values lie closest together in the input, unless that is the first, or the longest
// where the first ones are neighbours in both. A unit is a tile of these two, `tile` values long
// and wide.
struct n8_permute_plan {
    size_t count; // of loops, at least 2
    struct n8_permute_loop loops[N8_PERMUTE_LOOPS];
    size_t tile[2];
    size_t units;
};

// The loops for values that are taken as an array of the 8 sizes of `view`, as many as `in` has,
// whose axis order[i] is axis i of the result; `order` is a permutation. False: a border between
// dimensions falls inside an axis that it does not divide.
bool n8_permute_plan_of(struct n8_permute_plan *plan, const int32_t in[4], const int32_t out[4],
                        const int32_t *view, const int32_t *order);

// Units [begin, end). Values are `size` bytes, 1, 2 or 4; strides are bytes between pixels.
void n8_permute(const struct n8_permute_plan *plan, const struct n8_kernels *kernels, uint8_t *to,
                size_t to_stride, const uint8_t *from, size_t from_stride, size_t size,
                size_t begin, size_t end);

#endif // N8_PERMUTE_H
