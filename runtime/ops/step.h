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

// Operands that are broadcast as ONNX does, axis by axis from the last on. The `check` of such a
// step, and its `run`: `combine` gets `count` neighbouring values of the output; the next value of
// operand i is `steps[i]` values further.
enum n8_status n8_check_broadcast(struct n8_reader *reader, const struct n8_step *step);
typedef void n8_combine_fn(const struct n8_step *step, void *out, const void *const *operands,
                           const size_t *steps, size_t count);
void n8_run_broadcast(const struct n8_session *session, const struct n8_step *step, size_t begin,
                      size_t end, n8_combine_fn *combine);

// The `run` of a step whose kernel has int16 for input and output, of which either may be int8:
// `compute` gets some values that follow one another.
typedef void n8_compute_s16_fn(const struct n8_session *session, const struct n8_step *step,
                               int16_t *out, const int16_t *in, size_t count);
void n8_run_s16(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, n8_compute_s16_fn *compute);

// A product of matrices as a convolution: of `rows` pixels with `depth` channels to `columns` ones.
struct n8_conv2d_shape n8_matrix_shape(int32_t rows, int32_t depth, int32_t columns);

// What several operators check.
enum n8_status n8_check_same_scale(struct n8_reader *reader, const struct n8_tensor *a,
                                   const struct n8_tensor *b);
// The same for steps that move values: the same scale, too, and an int16 input's range in that of
// its output.
enum n8_status n8_check_moved(struct n8_reader *reader, const struct n8_tensor *in,
                              const struct n8_tensor *out);
// The `check` of steps that move all values of their input, and make no others.
enum n8_status n8_check_rearranged(struct n8_reader *reader, const struct n8_step *step);

// Copies the tables of a step, `count` int8 values, which the output must be able to hold.
enum n8_status n8_copy_tables(struct n8_reader *reader, const struct n8_step *step, int8_t *to,
                              size_t count);

// table.c: (8) of bytes in one run, as pixels of as many as all kernels like.
void n8_look_up(n8_table_fn *kernel, int8_t *out, const int8_t *in, size_t count,
                const int8_t *table);

// unary.c: x to the power of the exponent, (15).
double n8_power(double x, double exponent);

#endif // N8_STEP_H
