// SPDX-License-Identifier: Apache-2.0
//
// The checker is checked: kernels that misbehave on purpose must all be caught, and kernels
// that only do what they may must not.
#include "checkasm.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef n8_quantize_fn sample;

static void wrong_tail(int8_t *out, const float *in, size_t count, float inverse,
                       int32_t zero_point, int32_t lo, int32_t hi) {
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
    if (count % 16 == 15)
        out[count - 1] ^= 1;
}

static void writes_beyond(int8_t *out, const float *in, size_t count, float inverse,
                          int32_t zero_point, int32_t lo, int32_t hi) {
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
    ((volatile int8_t *)out)[count] ^= 0x55;
}

static void writes_before(int8_t *out, const float *in, size_t count, float inverse,
                          int32_t zero_point, int32_t lo, int32_t hi) {
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
    ((volatile int8_t *)out)[-1] ^= 0x55;
}

static void reads_beyond(int8_t *out, const float *in, size_t count, float inverse,
                         int32_t zero_point, int32_t lo, int32_t hi) {
    (void)((const volatile float *)in)[count];
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
}

static void reads_before(int8_t *out, const float *in, size_t count, float inverse,
                         int32_t zero_point, int32_t lo, int32_t hi) {
    (void)((const volatile float *)in)[-1];
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
}

static void rounds_away(int8_t *out, const float *in, size_t count, float inverse,
                        int32_t zero_point, int32_t lo, int32_t hi) {
    for (size_t i = 0; i < count; i++) {
        const float v = in[i] * inverse;
        const float rounded = isnan(v) ? 0.0f : roundf(v);
        out[i] = (int8_t)fminf(fmaxf(rounded + (float)zero_point, (float)lo), (float)hi);
    }
}

static void mistakes_nan(int8_t *out, const float *in, size_t count, float inverse,
                         int32_t zero_point, int32_t lo, int32_t hi) {
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
    for (size_t i = 0; i < count; i++)
        out[i] = isnan(in[i]) ? (int8_t)lo : out[i];
}

// Right unless another thread is inside, as a kernel with a static buffer would be. On large
// inputs it waits a while for one to come.
static void shares_state(int8_t *out, const float *in, size_t count, float inverse,
                         int32_t zero_point, int32_t lo, int32_t hi) {
    enum { PATIENCE = 200 };
    static const struct timespec moment = {.tv_nsec = 100000};
    static atomic_int users;
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
    atomic_fetch_add(&users, 1);
    for (int i = 0; i < PATIENCE && count >= 1000 && atomic_load(&users) == 1; i++)
        nanosleep(&moment, NULL);
    if (atomic_load(&users) > 1)
        out[0] ^= 1;
    atomic_fetch_sub(&users, 1);
}

// Kernels of other slots, whose output may be an operand or lie between other channels.

static void table_clears_first(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                               size_t pixels, size_t count, const int8_t *table) {
    const volatile int8_t *late = in;
    for (size_t p = 0; p < pixels; p++) {
        for (size_t i = 0; i < count; i++)
            out[p * out_stride + i] = 0;
        for (size_t i = 0; i < count; i++)
            out[p * out_stride + i] = table[late[p * in_stride + i] + 128];
    }
}

static void adds_after_writing(const struct n8_igemm_args *args) {
    for (size_t p = 0; p < args->pixels; p++)
        memset((int8_t *)args->out + (ptrdiff_t)p * args->out_stride, 0, args->channels);
    n8_igemm_s8_s8_add_c(args);
}

static void fills_gaps(const struct n8_igemm_args *args) {
    n8_igemm_s8_s8_add_c(args);
    for (size_t p = 0; p + 1 < args->pixels; p++) {
        int8_t *row = (int8_t *)args->out + (ptrdiff_t)p * args->out_stride;
        memset(row + args->channels, 0x55, (size_t)args->out_stride - args->channels);
    }
}

static void writes_next_channel(const struct n8_pool_args *args) {
    n8_maxpool_s8_c(args);
    ((volatile int8_t *)args->out)[args->channels] ^= 1;
}

#if defined(__aarch64__)
#define SAMPLES "samples_aarch64.inc"
#elif defined(__arm__)
#define SAMPLES "samples_armv7.inc"
#endif
#if defined(SAMPLES)
#define SAMPLE(symbol, text, reason) sample symbol;
#include SAMPLES
#undef SAMPLE
#endif

// What they are blamed for, in part.
#define BYTE   "of the output is"
#define GUARD  "guard page"
#define EITHER ""

static const struct {
    const char *name;
    sample *run;
    const char *reason; // NULL: it behaves
} samples[] = {
    {"behaves", n8_quantize_f32_s8_c, NULL},
    {"wrong byte in the tail", wrong_tail, BYTE},
    {"writes beyond the output", writes_beyond, EITHER},
    {"writes before the output", writes_before, EITHER},
    {"reads beyond the input", reads_beyond, GUARD},
    {"reads before the input", reads_before, GUARD},
    {"rounds half away from zero", rounds_away, BYTE},
    {"mistakes NaN", mistakes_nan, BYTE},
    {"shares state between threads", shares_state, "when two threads run it"},
#if defined(SAMPLES)
#define SAMPLE(symbol, text, reason) {text, symbol, reason},
#include SAMPLES
#undef SAMPLE
#endif
};

#define OTHER(slot_, text, symbol, cases_, reason)                                                 \
    {{.slot = #slot_,                                                                              \
      .suffix = text,                                                                              \
      .run = (any_fn *)symbol,                                                                     \
      .reference = (any_fn *)n8_##slot_##_c,                                                       \
      .cases = cases_,                                                                             \
      .geometry = {.tile = {.mr = 2, .nr = 2, .kr = 4}}},                                          \
     reason},
static const struct {
    struct kernel kernel; // the suffix says what it does
    const char *reason;
} others[] = {
    // clang-format off
    OTHER(table_s8, "clears its output before it reads", table_clears_first, cases_n8_table_fn, BYTE)
    OTHER(igemm_s8_s8_add, "behaves", n8_igemm_s8_s8_add_c, cases_n8_igemm_fn, NULL)
    OTHER(igemm_s8_s8_add, "writes before it reads what it adds", adds_after_writing, cases_n8_igemm_fn, BYTE)
    OTHER(igemm_s8_s8_add, "writes between its pixels", fills_gaps, cases_n8_igemm_fn, BYTE)
    OTHER(maxpool_s8, "writes one more channel", writes_next_channel, cases_n8_pool_fn, EITHER)
    // clang-format on
};
#undef OTHER

// True if the kernel misbehaves and is caught for it, or neither.
static bool judge(const struct kernel *kernel, uint64_t seed, const char *reason,
                  unsigned *caught) {
    struct context context = {.kernel = kernel, .rng = {seed}, .quiet = true};
    kernel->cases(&context);
    const bool failed = context.failures > 0;
    *caught += failed;
    if (failed ? reason && strstr(context.reason, reason) : !reason)
        return true;
    printf("SELFTEST FAIL a kernel that %s was %s%s\n", kernel->suffix,
           failed ? "blamed: " : "not caught", context.reason);
    return false;
}

bool selftest(uint64_t seed) {
    unsigned caught = 0;
    bool right = true;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const struct kernel kernel = {"selftest",
                                      samples[i].name,
                                      (any_fn *)samples[i].run,
                                      (any_fn *)n8_quantize_f32_s8_c,
                                      cases_n8_quantize_fn,
                                      {{0}, 0, 0, 0, 0, 0, 0, false}};
        right &= judge(&kernel, seed, samples[i].reason, &caught);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        right &= judge(&others[i].kernel, seed, others[i].reason, &caught);
    printf("checkasm: selftest: %u misbehaving kernels caught%s\n", caught,
           right ? "" : ", but see above");
    return right;
}
