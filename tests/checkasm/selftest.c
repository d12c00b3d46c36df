// SPDX-License-Identifier: Apache-2.0
//
// The checker is checked: kernels that misbehave on purpose must all be caught, and kernels
// that only do what they may must not.
#include "checkasm.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

typedef n8_quantize_fn sample;

static void wrong_tail(int8_t *out, const float *in, size_t count, float inverse,
                       int32_t zero_point, int32_t lo, int32_t hi) {
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
    if (count % 16 == 15)
        out[count - 1] ^= 1;
}

static void writes_behind(int8_t *out, const float *in, size_t count, float inverse,
                          int32_t zero_point, int32_t lo, int32_t hi) {
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
    ((volatile int8_t *)out)[count] ^= 0x55;
}

static void writes_before(int8_t *out, const float *in, size_t count, float inverse,
                          int32_t zero_point, int32_t lo, int32_t hi) {
    n8_quantize_f32_s8_c(out, in, count, inverse, zero_point, lo, hi);
    ((volatile int8_t *)out)[-1] ^= 0x55;
}

static void reads_behind(int8_t *out, const float *in, size_t count, float inverse,
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

#if defined(__aarch64__)
#define SAMPLE(symbol, text, behaves) sample symbol;
#include "samples_aarch64.inc"
#undef SAMPLE
#endif

static const struct {
    const char *name;
    sample *run;
    bool behaves;
} samples[] = {
    {"behaves", n8_quantize_f32_s8_c, true},
    {"wrong byte in the tail", wrong_tail, false},
    {"writes behind the output", writes_behind, false},
    {"writes before the output", writes_before, false},
    {"reads behind the input", reads_behind, false},
    {"reads before the input", reads_before, false},
    {"rounds half away from zero", rounds_away, false},
    {"mistakes NaN", mistakes_nan, false},
    {"shares state between threads", shares_state, false},
#if defined(__aarch64__)
#define SAMPLE(symbol, text, behaves) {text, symbol, behaves},
#include "samples_aarch64.inc"
#undef SAMPLE
#endif
};

bool selftest(uint64_t seed) {
    unsigned caught = 0;
    bool right = true;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const struct kernel kernel = {"selftest",
                                      samples[i].name,
                                      (any_fn *)samples[i].run,
                                      (any_fn *)naive_quantize_f32_s8,
                                      cases_quantize,
                                      {{0}, 0, 0, 0, 0, 0}};
        struct context context = {.kernel = &kernel, .rng = {seed}, .quiet = true};
        cases_quantize(&context);
        if ((context.failures == 0) != samples[i].behaves) {
            printf("SELFTEST FAIL a kernel that %s was %s\n", samples[i].name,
                   samples[i].behaves ? "blamed" : "not caught");
            right = false;
        }
        caught += context.failures > 0;
    }
    printf("checkasm: selftest: %u misbehaving kernels caught%s\n", caught,
           right ? "" : ", but see above");
    return right;
}
