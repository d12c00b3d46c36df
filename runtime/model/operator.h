// SPDX-License-Identifier: Apache-2.0
//
// What an operator is: a row of ops.inc and a file of ops/ that defines the struct below.
#ifndef N8_OPERATOR_H
#define N8_OPERATOR_H

#include "reader.h"

// Fields of n8_file_op that an operator may use. The reader refuses a file that sets others.
enum n8_fields {
    N8_FIELD_WINDOW = 1,    // kernel, stride, dilation, pad, pad_end
    N8_FIELD_COUNT_PAD = 2, // the flag N8_OP_COUNT_PAD
    N8_FIELD_AXIS = 4,
    N8_FIELD_CLAMP = 8, // lo, hi
    N8_FIELD_SCALE = 16,
    N8_FIELD_RESIDUAL = 32, // residual_scale
    N8_FIELD_SLOPE = 64,
    N8_FIELD_WEIGHTS = 128, // groups, arrays, proofs
    N8_FIELD_FILL = 256,
    N8_FIELD_FUNCTION = 512,
    N8_FIELD_TABLE = 1024,
    N8_FIELD_INDICES = 2048,
    N8_FIELD_VALUES = 4096,
    N8_FIELD_GROUPS = 1 << 13,     // those of N8_FIELD_WEIGHTS one by one: groups,
    N8_FIELD_BIAS_F32 = 1 << 14,   // bias_f32,
    N8_FIELD_MATRICES = 1 << 15,   // weights, multiplier and bias_f32
    N8_FIELD_S8_VALUES = 1 << 17,  // weights as an array of plain bytes
    N8_FIELD_MULTIPLIER = 1 << 18, // multiplier,
    N8_FIELD_LINES = 1 << 19,      // table as one of int16
    N8_FIELD_REVERSE = 1 << 20,    // the flag N8_OP_REVERSE
    N8_FIELD_RECURRENT = 1 << 16,  // the flags N8_OP_REVERSE and N8_OP_LINEAR_BEFORE_RESET
};

// What the plan of the memory may do with the tensors of a step. It follows from the file alone:
// what only some of the kernels that may serve a step keep to is not promised.
enum n8_placing {
    // Every input may lie between the channels of other tensors: each pixel is read by itself,
    // at a distance of pixel_stride. Bytes beyond its channels may be read, up to the next
    // multiple of 64, as long as the result does not depend on them.
    N8_READS_SLICES = 1,
    // So may the output: where `slice` is set, dims[1] values of each pixel are written and
    // nothing else. n8_stretch_of sees to both for those who use it.
    N8_WRITES_SLICES = 2,
    // The output may lie exactly where an input of its shape and type does, if nobody else reads
    // that one: a unit reads of this input what it is going to overwrite itself, and no more, and
    // reads each value before it writes it.
    N8_OVER_FIRST = 4,
    N8_OVER_SECOND = 8,
    // No byte beyond the channels of an input is read, so that the output may lie right there.
    N8_READS_EXACTLY = 16,
};

// An operator may look for an end of the network where the caller has it instead of in the arena:
// in session->inputs, for an input, and in session->outputs, for an output that is `caller`. If a
// step does not, its `plan` says so in the tensor.
enum n8_ends {
    N8_END_INPUT = 1,
    N8_END_OUTPUT = 2,
};

// What is said of an operator in its file; ops.inc names its functions.
struct n8_operator {
    char name[20];   // as in n8_step_info; here, as the address of one would have to be relocated
    uint32_t fields; // enum n8_fields
    // The types of all inputs and of the output, enum n8_type. in == 0: any, the same as the
    // output's unless that is said; out == 0: `check` looks at it.
    struct {
        uint8_t in, out;
    } types;
    struct {
        uint16_t least, most;
    } inputs;
    uint8_t placing;    // enum n8_placing; `plan` may change it in step->placing
    uint8_t ends;       // enum n8_ends
    uint8_t s32_inputs; // bit i: input i is int32, an index or a condition, whatever the others are
    bool moves;      // every value of an int8 output is one of an input or `fill`, before the clamp
    bool s16;        // int16 may stand where int8 is said, in any mix unless `check` forbids it
    bool s32;        // its output may be int32 where its type is not said
    bool same_shape; // the inputs have that of the output
};

#pragma GCC visibility push(hidden)
#define N8_OPERATOR(kind, symbol, check, plan, pack, run)                                          \
    extern const struct n8_operator n8_op_##symbol;                                                \
    N8_ONCE enum n8_status n8_check_##check(struct n8_reader *reader, const struct n8_step *step); \
    N8_ONCE enum n8_status n8_plan_##plan(struct n8_reader *reader, struct n8_step *step);         \
    N8_ONCE enum n8_status n8_pack_##pack(struct n8_reader *reader, struct n8_step *step,          \
                                          void *memory);                                           \
    void n8_run_##run(const struct n8_session *session, const struct n8_step *step, size_t begin,  \
                      size_t end, void *scratch);
#define N8_PIECE(kind, symbol)                                                                     \
    bool n8_piece_##symbol(const struct n8_model *model, const struct n8_step *step, size_t index, \
                           size_t *pixel, size_t *byte);
#define N8_VIEW(kind, symbol)                                                                      \
    bool n8_view_##symbol(const struct n8_model *model, const struct n8_step *step, size_t *pixel, \
                          size_t *byte);
#include "ops.inc"
#pragma GCC visibility pop

// NULL: no such kind.
const struct n8_operator *n8_operator_of(uint32_t kind);

// What the operator of a step does with it:

// Whether shapes, scales and fields fit together; counts, types, the limits of each field and
// unused fields were checked before.
enum n8_status n8_check_step(struct n8_reader *reader, const struct n8_step *step);

// Fills in kernel_name, unless it is "scalar"; units, unless they are the pixels of the output;
// and, where they are not 0, the sizes and macs of the step.
enum n8_status n8_plan_step(struct n8_reader *reader, struct n8_step *step);

// Steps that only move values. n8_piece_of: whether input `index` is, as it lies, a part of the
// output, so that it may be written there at once; the run then finds it in its place and leaves it
// there. n8_view_of: whether the output is, as it lies, a part of the first input; a step that has
// nothing left to move is not run. The part begins `byte` bytes into pixel `pixel` of the larger
// tensor, and its pixels are neighbours there, too. Inputs are asked for in order, and n8_piece_of
// finds what it said of the one before.
bool n8_piece_of(const struct n8_model *model, const struct n8_step *step, size_t index,
                 size_t *pixel, size_t *byte);
bool n8_view_of(const struct n8_model *model, const struct n8_step *step, size_t *pixel,
                size_t *byte);

// Checks the weights and packs them into step->packed, packed_size zeroed bytes, aligned to
// N8_ALIGN.
enum n8_status n8_pack_step(struct n8_reader *reader, struct n8_step *step, void *memory);

// Runs units [begin, end). Threads take units in any order and at the same time, so a unit writes
// no byte that another one reads or writes, and its result does not depend on how the units are
// grouped. A unit is mostly a pixel or a row of the output; the session sees to it that nobody is
// woken for a few bytes. `scratch`: step->scratch_size bytes of this thread, aligned to N8_ALIGN.
// Nothing is left to check, and nothing fails.
void n8_run_step(const struct n8_session *session, const struct n8_step *step, size_t begin,
                 size_t end, void *scratch);

// True if input `index` of a step with pieces was moved into the output before, so that it is no
// longer where it was.
static inline bool n8_is_spread(const struct n8_model *model, const struct n8_step *step,
                                size_t index) {
    const struct n8_tensor *in = n8_input(model, step, index);
    return in->sharing == N8_SHARES_TAIL && in->shared == step->row.output;
}

// Units that make the call of a thread worth its while: of a planned step, and of units that
// each read and write this many bytes.
size_t n8_grain_of(uint64_t bytes);
size_t n8_grain(const struct n8_model *model, const struct n8_step *step);

// What a run of the step costs, in int8 multiply-accumulates: those that it has, more for other
// types, and what moving its bytes takes. As struct n8_step_info has it.
uint64_t n8_cost(const struct n8_model *model, const struct n8_step *step);

// value_range.c: value_lo and value_hi of the output of a planned step, whose inputs have theirs.
void n8_find_value_range(struct n8_reader *reader, const struct n8_step *step);

#endif // N8_OPERATOR_H
