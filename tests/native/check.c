// SPDX-License-Identifier: Apache-2.0
//
// The calibrator's C code under the sanitizers, on arrays that end where their memory ends: every
// instruction set gives the same bits. tests/host/calibrate holds those against numpy on a PC; the
// digest says so of ARM, where this runs under qemu.
#include "neon8_calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANNELS_MAX = 40 };

static const uint64_t DIGEST = 0x2b85bf906091d636;

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

static void take(uint64_t *digest, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        *digest = (*digest ^ at[i]) * 0x100000001b3;
}

// All that was found of `channels` channels.
static void take_all(uint64_t *digest, const struct own *own, size_t channels) {
    const struct n8c_statistics *it = &own->it;
    const uint64_t numbers[] = {
        it->zeros,         it->nans,        it->infs,        it->sample_argmin,
        it->sample_argmax, it->sample_nans, it->sample_infs, (uint64_t)it->exponent};
    const float ends[] = {it->minimum, it->maximum, it->sample_minimum, it->sample_maximum};
    take(digest, own->positive, sizeof own->positive);
    take(digest, own->negative, sizeof own->negative);
    take(digest, own->count, channels * sizeof *own->count);
    take(digest, own->total, channels * N8C_SUM_WORDS * sizeof *own->total);
    take(digest, own->squares, channels * N8C_SUM_WORDS * sizeof *own->squares);
    take(digest, own->minima, channels * sizeof *own->minima);
    take(digest, own->maxima, channels * sizeof *own->maxima);
    take(digest, own->peaks, channels * sizeof *own->peaks);
    take(digest, numbers, sizeof numbers);
    take(digest, ends, sizeof ends);
}

static void check(uint64_t *digest, enum n8c_isa isa, size_t channels, size_t plane, int wild) {
    uint32_t state = (uint32_t)(channels * 1000 + plane);
    size_t size = channels * plane;
    float *values = malloc(size * sizeof *values);
    if (values == NULL)
        abort();
    for (size_t i = 0; i < size; i++)
        values[i] = value(&state, wild);
    for (int one = 0; one < 2; one++) { // in one pass, if only one of the two has a histogram
        struct own *raw = make(), *activated = make();
        if (one)
            raw->it.positive = raw->it.negative = NULL;
        const struct n8c_tensor tensor = {
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
        take_all(digest, raw, channels);
        take_all(digest, activated, channels);
        free(raw);
        free(activated);
    }
    free(values);
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
        uint64_t digest = 0;
        for (size_t i = 0; i < sizeof planes / sizeof *planes; i++) {
            for (size_t channels = 1; channels <= CHANNELS_MAX; channels += 13) {
                for (int wild = 0; wild < 2; wild++)
                    check(&digest, (enum n8c_isa)isa, channels, planes[i], wild);
            }
        }
        if (digest != DIGEST) {
            failures++;
            fprintf(stderr, "isa %d: digest %#llx\n", isa, (unsigned long long)digest);
        }
    }
    check_draw();
    check_solvers();
    printf("calibrate_check: %d failures\n", failures);
    return failures != 0;
}
