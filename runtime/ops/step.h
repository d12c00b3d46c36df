// SPDX-License-Identifier: Apache-2.0
//
// What the steps of several operators share.
#ifndef N8_STEP_H
#define N8_STEP_H

#include "exec/session.h"
#include "model/operator.h"

// How a step whose values do not look at their neighbours goes through its pixels: `pixels` of
// them at a time, each time `count` values in one run of bytes, the same in every tensor. All
// at once where the output and its inputs of the same shape lie alike and without a gap; the
// padding of the channels is then computed like the rest, and nobody looks at it.
struct n8_stretch {
    size_t pixels, count;
};
struct n8_stretch n8_stretch_of(const struct n8_model *model, const struct n8_step *step,
                                size_t pixels);

// What several operators check.
enum n8_status n8_check_same_scale(struct n8_reader *reader, const struct n8_tensor *a,
                                   const struct n8_tensor *b);
// Of steps that move values: the same scale, too, and an int16 input's range in that of its output.
enum n8_status n8_check_moved(struct n8_reader *reader, const struct n8_tensor *in,
                              const struct n8_tensor *out);
// The `check` of steps that move all values of their input, and make no others.
enum n8_status n8_check_rearranged(struct n8_reader *reader, const struct n8_step *step);

// Copies the tables of a step, `count` int8 values, which the output must be able to hold.
enum n8_status n8_copy_tables(struct n8_reader *reader, const struct n8_step *step, int8_t *to,
                              size_t count);

#endif // N8_STEP_H
