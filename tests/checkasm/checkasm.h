// SPDX-License-Identifier: Apache-2.0
//
// checkasm: every kernel of kernels.inc against its twin, byte for byte. A row of another
// instruction set is compared with the C kernel of its slot, which serves any geometry, and so is
// that kernel with each of them; where it is alone, with a naive implementation of the contract in
// kernel.h. Sizes, tails and the order of all arrays follow the geometry of the row.
#ifndef N8_CHECKASM_H
#define N8_CHECKASM_H

#include "call.h"
#include "kernel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct context;

// What a row of kernels.inc says about a convolution.
struct geometry {
    struct n8_tile tile;   // igemm
    size_t block;          // depthwise
    int32_t height, width; // of the kernel that it serves, or 0
    int32_t ratio;
    int32_t outputs; // depthwise: rows of them at once
    size_t panel;    // winograd
    bool alike;      // igemm: all panels begin alike where results are small
};

// One row of kernels.inc.
struct kernel {
    const char *slot;
    const char *suffix; // level and variant
    any_fn *run;
    any_fn *reference;
    void (*cases)(struct context *context);
    struct geometry geometry;
};

// Memory between two inaccessible pages each.
enum region {
    REGION_OUT,
    REGION_IN,
    REGION_WEIGHTS,
    REGION_DEEP,
    REGION_ROWS,
    REGION_WINDOWS,
    REGION_PACKED,
    REGION_BIAS,
    REGION_MULTIPLIER,
    REGION_BIAS_F32,
    REGION_START,
    REGION_SLOPE,
    REGION_RESIDUAL,
    REGION_ARGS,
    REGION_COUNT,
};

static inline size_t round_up(size_t value, size_t unit) {
    return (value + unit - 1) / unit * unit;
}

struct rng {
    uint64_t state;
};

// What is being checked, and what came of it.
struct context {
    const struct kernel *kernel;
    struct rng rng;
    unsigned long cases, failures;
    char reason[96]; // of the first failure
    bool quiet;      // selftest: failures are wanted, not printed
};

// An operand that may be `out` itself: a field of the arguments, an argument, or, both NULL, none.
// It is NULL or has out_size bytes, with gaps where the output has them.
struct operand {
    const int8_t **field;
    uint64_t *argument;
};

// One call with the place of its output: `out_size` bytes, gaps included. It is made once as it is
// and once in place of each operand.
struct test_case {
    struct call call;
    uint8_t *out;
    size_t out_size;
    char text[200]; // the sizes, for messages
    struct operand operands[2];
};

// rng.c
uint64_t rng_next(struct rng *rng);
uint32_t rng_below(struct rng *rng, uint32_t bound);
int32_t rng_range(struct rng *rng, int32_t low, int32_t high); // both included
float rng_float(struct rng *rng, float low, float high);
void rng_bytes(struct rng *rng, void *out, size_t size);

// guard.c. A placed buffer ends at the guard page after it or, every fourth time, starts
// at the one before it.
void guard_init(void);
void *guard_place(struct rng *rng, enum region region, size_t size);
bool guard_contains(const void *address); // is it one of the guard pages?
const uint8_t *guard_begin(enum region region);
const uint8_t *guard_end(enum region region);

// data.c: the values that the checks are about.
struct range {
    int32_t zero_point, lo, hi;
};
enum { DATA_PATTERNS = 6 };
enum { DATA_TIES = 5 }; // a pattern with small sums, for multipliers that give x.5
struct range data_range(struct rng *rng, bool inside);
void data_operands(struct rng *rng, int pattern, int8_t *in, size_t in_size, int8_t *weights,
                   size_t weights_size);
void data_limit(int8_t *weight);
void data_lowest(struct rng *rng, int8_t *weight, bool deep);
void data_bias(struct rng *rng, int pattern, int32_t *bias, size_t count, int64_t reach);
void data_small(struct rng *rng, int pattern, int32_t *bias, float *multiplier, int32_t sums,
                int32_t reach, float others);
float data_residual_scale(struct rng *rng, int pattern, float *scale);
void data_multipliers(struct rng *rng, int pattern, float *out, size_t count);
void data_float_biases(struct rng *rng, const float *multipliers, float *out, size_t count);
void data_floats(struct rng *rng, float *out, size_t count, float unit);
void data_s16(struct rng *rng, int16_t *values, size_t count, int32_t lo, int32_t hi);
int32_t data_sum(struct rng *rng);
float data_slope(struct rng *rng);
// Arguments of 32 bits as a call has them: with noise above.
uint64_t data_int32(struct rng *rng, int32_t value);
uint64_t data_float(struct rng *rng, float value);

// check.c. A step is a case, the last one under fire and in threads, too.
void check_case(struct context *context, struct test_case *test);
void check_step(struct context *context, struct test_case *test, bool last);
void check_signals_init(void);

// Set by the timer, for the kernel of the selftest that waits for it.
extern volatile unsigned long check_ticks;

// All cases of one signature, by the type of its kernels; the last is a large one, under fire and
// in threads.
#define N8_CASES(slot, type) void cases_##type(struct context *context);
N8_SLOTS(N8_CASES)
#undef N8_CASES

// selftest.c: whether every misbehaving kernel was caught and no other.
bool selftest(uint64_t seed);

// naive.c
n8_softmax_fn naive_softmax_f32;

#endif // N8_CHECKASM_H
