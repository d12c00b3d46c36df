// SPDX-License-Identifier: Apache-2.0
//
// The calibrator's C code under the sanitizers: every instruction set on arrays that end where
// their memory ends, held against loops as plain as can be. On ARM this runs under qemu.
#include "neon8_calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS_MAX = 40 };

struct own { // n8c_statistics and what it points to
    struct n8c_statistics it;
    uint64_t positive[N8C_BINS], negative[N8C_BINS];
    int64_t count[CHANNELS_MAX];
    uint64_t total[CHANNELS_MAX * N8C_SUM_WORDS], squares[CHANNELS_MAX * N8C_SUM_WORDS];
    float minima[CHANNELS_MAX], maxima[CHANNELS_MAX], peaks[CHANNELS_MAX];
};

static int failures;

static void expect(int holds, const char *what, enum n8c_isa isa, size_t channels, size_t plane) {
    if (!holds) {
        failures++;
        fprintf(stderr, "isa %d, %zu x %zu: %s\n", (int)isa, channels, plane, what);
    }
}

static struct own *make(void) {
    struct own *own = calloc(1, sizeof *own);
    if (own == NULL)
        abort();
    own->it = (struct n8c_statistics){
        .positive = own->positive,
        .negative = own->negative,
        .minimum = INFINITY,
        .maximum = -INFINITY,
        .exponent = N8C_EXPONENT_MIN,
        .count = own->count,
        .minima = own->minima,
        .maxima = own->maxima,
        .peaks = own->peaks,
        .total = own->total,
        .squares = own->squares,
    };
    for (size_t channel = 0; channel < CHANNELS_MAX; channel++) {
        own->minima[channel] = INFINITY;
        own->maxima[channel] = -INFINITY;
        own->peaks[channel] = INFINITY;
    }
    return own;
}

static uint32_t next(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

// Without `wild`, such as need no care.
static float value(uint32_t *state, int wild) {
    static const float awkward[] = {0, -0.0f, 1e-45f, -3.4e38f, 1, 0.5f, -1, 1.9999999f};
    switch (next(state) % 16) {
    case 0:
        return wild ? awkward[next(state) % 8] : -0.0f;
    case 1:
        return next(state) % 64 || !wild ? 0 : NAN;
    case 2:
        return next(state) % 64 || !wild ? 2 : -INFINITY;
    default:
        return ((float)next(state) - 8388608.0f) / 4194304.0f;
    }
}

static float relu(float x) {
    return x < 0 ? 0 : x;
}

// The integer `value` in 256 bits.
static void words_of(uint64_t *words, double value) {
    double rest = fabs(value);
    for (size_t i = 0; i < N8C_SUM_WORDS; i++) {
        double low = fmod(rest, 0x1p64);
        words[i] = (uint64_t)low;
        rest = (rest - low) * 0x1p-64;
    }
    uint64_t carry = 1;
    for (size_t i = 0; value < 0 && i < N8C_SUM_WORDS; i++) {
        words[i] = ~words[i] + carry;
        carry = carry && words[i] == 0;
    }
}

// What n8c_observe says that the sum of a channel is, of `times` samples, a power of two.
static void sum_up(uint64_t *total, uint64_t *square, const float *values, size_t plane,
                   uint64_t times, int activated) {
    double totals[16] = {0}, squares[16] = {0};
    for (size_t i = 0; i < plane; i++) {
        double x = activated ? relu(values[i]) : values[i];
        x = isfinite(x) ? x : 0;
        totals[i % 16] += x;
        squares[i % 16] += x * x;
    }
    for (size_t half = 8; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            totals[i] += totals[i + half];
            squares[i] += squares[i + half];
        }
    }
    double most = 0x1p127;
    words_of(total, (double)times * rint(fmin(fmax(totals[0], -most), most) * 0x1p96));
    words_of(square, (double)times * rint(fmin(squares[0], most) * 0x1p96));
}

// The largest magnitude of a channel, INFINITY if no value is finite.
static float peak_of(const float *values, size_t plane, int activated) {
    float peak = -INFINITY;
    for (size_t i = 0; i < plane; i++) {
        float x = fabsf(activated ? relu(values[i]) : values[i]);
        peak = isfinite(x) ? fmaxf(peak, x) : peak;
    }
    return fabsf(peak);
}

// Compares statistics with a loop over all values, each put through relu() if `activated`, of
// `times` equal samples.
static void compare(struct own *own, const float *values, size_t channels, size_t plane,
                    uint64_t times, int activated, enum n8c_isa isa) {
    static uint64_t positive[N8C_BINS], negative[N8C_BINS];
    memset(positive, 0, sizeof positive);
    memset(negative, 0, sizeof negative);
    uint64_t zeros = 0, nans = 0, infs = 0;
    double factor = ldexp(N8C_BINS, -own->it.exponent);
    for (size_t i = 0; i < channels * plane; i++) {
        float x = activated ? relu(values[i]) : values[i];
        if (isnan(x))
            nans += times;
        else if (isinf(x))
            infs += times;
        else if (x == 0)
            zeros += times;
        else
            (x > 0 ? positive : negative)[(size_t)(fabs((double)x) * factor)] += times;
    }
    expect(memcmp(positive, own->positive, sizeof positive) == 0, "positive", isa, channels, plane);
    expect(memcmp(negative, own->negative, sizeof negative) == 0, "negative", isa, channels, plane);
    for (size_t i = 0; i < channels; i++) {
        uint64_t total[N8C_SUM_WORDS], square[N8C_SUM_WORDS];
        sum_up(total, square, values + i * plane, plane, times, activated);
        expect(memcmp(total, own->total + i * N8C_SUM_WORDS, sizeof total) == 0, "total", isa,
               channels, plane);
        expect(memcmp(square, own->squares + i * N8C_SUM_WORDS, sizeof square) == 0, "squares", isa,
               channels, plane);
        expect(peak_of(values + i * plane, plane, activated) == own->peaks[i], "peaks", isa,
               channels, plane);
    }
    expect(zeros == own->it.zeros, "zeros", isa, channels, plane);
    expect(nans == own->it.nans, "nans", isa, channels, plane);
    expect(infs == own->it.infs, "infs", isa, channels, plane);
}

static void check(enum n8c_isa isa, size_t channels, size_t plane, int wild) {
    uint32_t state = (uint32_t)(channels * 1000 + plane);
    struct own *raw = make(), *activated = make();
    size_t size = channels * plane;
    float *values = malloc(size * sizeof *values);
    if (values == NULL)
        abort();
    for (size_t i = 0; i < size; i++)
        values[i] = value(&state, wild);
    struct n8c_tensor tensor = {
        .values = values,
        .channels = channels,
        .plane = plane,
        .slope = 1,
        .lo = 0,
        .hi = INFINITY,
        .raw = &raw->it,
        .activated = &activated->it,
    };
    // The second time the range is there already.
    for (int i = 0; i < 2; i++)
        expect(n8c_observe(&tensor, 1, isa) == N8C_OK, "observe", isa, channels, plane);
    compare(raw, values, channels, plane, 2, 0, isa);
    compare(activated, values, channels, plane, 2, 1, isa);
    // Both in one pass, as only one of them has a histogram.
    struct own *sums = make(), *after = make();
    sums->it.positive = sums->it.negative = NULL;
    tensor.raw = &sums->it;
    tensor.activated = &after->it;
    for (int i = 0; i < 2; i++)
        expect(n8c_observe(&tensor, 1, isa) == N8C_OK, "observe", isa, channels, plane);
    compare(after, values, channels, plane, 2, 1, isa);
    free(sums);
    free(after);
    free(values);
    free(raw);
    free(activated);
}

// Every pixel of a layer with wide padding, one at a time; one value of the input is NaN.
static void check_draw(void) {
    enum { CHANNELS = 3, HEIGHT = 5, WIDTH = 4, ROWS = 3, COLUMNS = 2, STEP = 4, PAD = 9 };
    enum { SIZE = CHANNELS * HEIGHT * WIDTH, FOUND = CHANNELS * ROWS * COLUMNS };
    enum { DOWN = HEIGHT + 2 * PAD - (ROWS - 1) * STEP, ACROSS = WIDTH + 2 * PAD - COLUMNS + 1 };
    float *values = malloc(SIZE * sizeof *values);
    float *rows = malloc((N8C_ROWS + 1) * FOUND * sizeof *rows);
    if (values == NULL || rows == NULL)
        abort();
    for (size_t i = 0; i < SIZE; i++)
        values[i] = i == 7 ? NAN : (float)i - 20;
    struct n8c_source source = {values, CHANNELS, HEIGHT, WIDTH, 0, 1, 0, 30};
    uint64_t keys[N8C_ROWS + 1], words[2 * N8C_PIXELS] = {0}, slots[N8C_ROWS + 1], sum = 0;
    size_t finite = 0;
    for (uint64_t sample = 0; sample < 1000; sample++) {
        struct n8c_rows layer = {
            .pixels = DOWN * ACROSS,
            .columns = ACROSS,
            .kernel = {ROWS, COLUMNS},
            .strides = {1, 1},
            .dilations = {STEP, 1},
            .spread = {1, 1},
            .pads = {PAD, PAD},
            .sources = &source,
            .source_count = 1,
            .size = FOUND,
            .rows = rows,
            .keys = keys,
            .slots = slots,
        };
        for (size_t i = 0; i <= N8C_ROWS; i++)
            slots[i] = i;
        words[0] = sample;
        expect(n8c_draw(&layer, 1, words) == N8C_OK, "draw", N8C_ISA_AUTO, 0, 0);
        finite += layer.used;
        for (size_t i = 0; i < layer.used * FOUND; i++) {
            expect(rows[i] >= 0 && rows[i] <= 30, "row", N8C_ISA_AUTO, 0, 0);
            sum += (uint64_t)rows[i];
        }
    }
    expect(finite > 1900 && finite < 2000 && sum > 0, "finite rows", N8C_ISA_AUTO, 0, 0);
    free(values);
    free(rows);
}

static void check_solvers(void) {
    double *counts = calloc(N8C_BINS, sizeof *counts), *out = calloc(N8C_BINS, sizeof *out);
    if (counts == NULL || out == NULL)
        abort();
    int64_t levels[] = {0, 1, 127, 65535};
    double steps[] = {1e-3, 0.5, 16, 4096};
    for (size_t filled = 0; filled <= N8C_BINS; filled += 512) {
        for (size_t bin = 0; bin < filled; bin++)
            counts[bin] = (double)(bin % 7);
        int fine = n8c_divergence(out, counts, 128, N8C_BINS, 128) == N8C_OK &&
                   n8c_squared_error(out, counts, steps, 4, levels, 4) == N8C_OK;
        expect(fine, "solvers", N8C_ISA_AUTO, filled, 1);
    }
    expect(n8c_divergence(out, counts, 127, N8C_BINS, 128) == N8C_E_ARGUMENT, "first", N8C_ISA_AUTO,
           0, 0);
    expect(n8c_divergence(out, counts, 128, N8C_BINS + 1, 128) == N8C_E_ARGUMENT, "last",
           N8C_ISA_AUTO, 0, 0);
    expect(n8c_observe(NULL, 1, N8C_ISA_AUTO) == N8C_E_ARGUMENT, "NULL", N8C_ISA_AUTO, 0, 0);
    free(counts);
    free(out);
}

int main(void) {
    static const size_t planes[] = {1,  2,   7,   8,    15,   16,   17,   31,   33,
                                    49, 169, 729, 1023, 1024, 1025, 2048, 5000, 12321};
    // N8C_ISA_AUTO is one of these.
    for (int isa = N8C_ISA_BASELINE; isa <= N8C_ISA_AVX512; isa++) {
        if (n8c_observe(NULL, 0, (enum n8c_isa)isa) == N8C_E_UNSUPPORTED)
            continue;
        for (size_t i = 0; i < sizeof planes / sizeof *planes; i++) {
            for (size_t channels = 1; channels <= CHANNELS_MAX; channels += 13) {
                for (int wild = 0; wild < 2; wild++)
                    check((enum n8c_isa)isa, channels, planes[i], wild);
            }
        }
    }
    check_draw();
    check_solvers();
    printf("calibrate_check: %d failures\n", failures);
    return failures != 0;
}
