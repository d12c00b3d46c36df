// SPDX-License-Identifier: Apache-2.0
#include "checkasm.h"
#include "cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// What a slot needs to be checked.
struct slot {
    any_fn *twin;
    void (*cases)(struct context *context);
};

enum slot_number {
#define N8_NUMBER(slot, type) SLOT_##slot,
    N8_SLOTS(N8_NUMBER)
#undef N8_NUMBER
};

static const struct slot slots[] = {
#define N8_SLOT(slot, type) {(any_fn *)n8_##slot##_c, cases_##type},
    N8_SLOTS(N8_SLOT)
#undef N8_SLOT
};

struct row {
    enum slot_number slot;
    const char *slot_name, *level_name, *suffix;
    enum n8_isa level;
    any_fn *run;
    struct geometry geometry;
};

#define ANY_SUMS(level, core)                                                                      \
    ((int)N8_LEVEL_##level == (int)N8_ISA_DOTPROD && N8_CORE_##core == N8_CORE_IN_ORDER)

static const struct row rows[] = {
#define ROW(slot, level, variant, ...)                                                             \
    {SLOT_##slot,                                                                                  \
     #slot,                                                                                        \
     #level,                                                                                       \
     #level #variant,                                                                              \
     (enum n8_isa)N8_LEVEL_##level,                                                                \
     (any_fn *)n8_##slot##_##level##variant,                                                       \
     {__VA_ARGS__}},
#define N8_KERNEL(slot, level) ROW(slot, level, , .block = 0)
#define N8_GEMM(slot, level, variant, mr, nr, kr, packing, core)                                   \
    ROW(slot, level, variant, {mr, nr, kr, N8_PACKING_##packing}, 0, 0, 0, 0, 0, 0,                \
        ANY_SUMS(level, core))
#define N8_DEPTHWISE(slot, level, variant, block, height, width, ratio, outputs, core)             \
    ROW(slot, level, variant, {0}, block, height, width, ratio, outputs, 0, false)
#define N8_WINOGRAD(slot, level, variant, width, core) ROW(slot, level, variant, .panel = width)
#include "kernels.inc"
#undef ROW
};

// What a kernel must equal. A C kernel has all others of its slot for that; of itself it shows that
// it stays within its memory and works in place.
static any_fn *reference_of(const struct row *row) {
    if (row->level == N8_ISA_C && row->slot == SLOT_softmax_f32)
        return (any_fn *)naive_softmax_f32;
    return slots[row->slot].twin;
}

// Cases of a kernel depend on the seed and on its slot, not on what ran before.
static uint64_t seed_of(uint64_t seed, const char *name) {
    for (; *name != '\0'; name++)
        seed = (seed ^ (uint8_t)*name) * 0x100000001b3u;
    return seed;
}

static bool wanted(const struct row *row, const char *name) {
    char symbol[80];
    snprintf(symbol, sizeof symbol, "%s_%s", row->slot_name, row->suffix);
    return !name || strcmp(name, symbol) == 0 || strcmp(name, row->slot_name) == 0 ||
           strcmp(name, row->level_name) == 0;
}

static int check_rows(const char *program, uint64_t seed, const char *name) {
    unsigned long kernels = 0, others = 0, skipped = 0, cases = 0, failures = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        if (!wanted(row, name))
            continue;
        if (!n8_cpu_has(row->level)) {
            printf("checkasm: this processor has no %s: %s_%s is not checked\n", row->level_name,
                   row->slot_name, row->suffix);
            skipped++;
            continue;
        }
        const struct kernel kernel = {
            row->slot_name,         row->suffix,  row->run, reference_of(row),
            slots[row->slot].cases, row->geometry};
        struct context context = {.kernel = &kernel, .rng = {seed_of(seed, row->slot_name)}};
        kernel.cases(&context);
        kernels++;
        others += row->level != N8_ISA_C;
        cases += context.cases;
        failures += context.failures;
        if (context.failures > 0)
            printf("  %lu of %lu cases failed; again: %s --seed %llu --kernel %s_%s\n",
                   context.failures, context.cases, program, (unsigned long long)seed,
                   row->slot_name, row->suffix);
    }
    if (kernels == 0 && skipped == 0) {
        fprintf(stderr, "checkasm: no kernel is called %s\n", name);
        return 2;
    }
    if (kernels == 0)
        return 2;
    printf("checkasm: %lu kernels (%lu beyond C), %lu cases, %lu failed\n", kernels, others, cases,
           failures);
    return failures > 0;
}

int main(int count, char **arguments) {
    uint64_t seed = (uint64_t)time(NULL);
    const char *name = NULL;
    bool only_selftest = false;
    for (int i = 1; i < count; i++) {
        char *end = "";
        if (strcmp(arguments[i], "--selftest") == 0) {
            only_selftest = true;
        } else if (strcmp(arguments[i], "--seed") == 0 && i + 1 < count) {
            seed = strtoull(arguments[++i], &end, 0);
        } else if (strcmp(arguments[i], "--kernel") == 0 && i + 1 < count) {
            name = arguments[++i];
        } else {
            end = "?";
        }
        if (*end != '\0') {
            fprintf(stderr, "usage: checkasm [--selftest] [--seed N] [--kernel NAME]\n");
            return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    guard_init();
    check_signals_init();
    printf("checkasm: seed %llu\n", (unsigned long long)seed);
    if (!selftest(seed))
        return 1;
    return only_selftest ? 0 : check_rows(arguments[0], seed, name);
}
