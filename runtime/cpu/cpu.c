// SPDX-License-Identifier: Apache-2.0
#include "cpu.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__aarch64__) || defined(__arm__)
#include "hwcap.h"
#endif

#if defined(__aarch64__) && !defined(N8_NO_SME)
#include "kernel.h"

// Whether outer products are right: of two pixels and two channels, here.
static bool multiplies(void) {
    static _Atomic int known; // 1 + the answer
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        _Alignas(16) static const int8_t image[8] = {1, 0, 0, 0, 3}, weights[8] = {1, 0, 0, 0, 2};
        _Alignas(16) static const int32_t bias[4] = {0};
        _Alignas(16) int8_t packed[64];
        int32_t sums[2][2];
        const struct n8_windows_args windows = {.image = image,
                                                .padding = image,
                                                .height = 1,
                                                .width = sizeof image,
                                                .left = 16,
                                                .step = 4,
                                                .tap = 1,
                                                .taps = 1,
                                                .tap_row = 1,
                                                .tap_rows = 1,
                                                .packed = packed,
                                                .block = 16};
        n8_igemm_s8_s32_sme(&(struct n8_igemm_args){.out = sums,
                                                    .out_stride = sizeof sums[0],
                                                    .windows = &windows,
                                                    .weights = weights,
                                                    .pixels = 2,
                                                    .channels = 2,
                                                    .taps = 1,
                                                    .depth = 4,
                                                    .bias = bias});
        answer = 1 + (sums[0][1] == 2);
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}
#endif

bool n8_cpu_has(enum n8_isa isa) {
    switch ((int)isa) {
#define N8_LEVEL(name, number, march, check)                                                       \
    case number:                                                                                   \
        return check;
#include "levels.inc"
    default:
        return false;
    }
}

bool n8_serves(enum n8_isa level, enum n8_isa isa) {
    return level <= isa && n8_cpu_has(level);
}

enum n8_isa n8_cpu_best(void) {
    enum n8_isa best = N8_ISA_C;
#define N8_LEVEL(name, number, march, check) best = n8_cpu_has(number) ? number : best;
#include "levels.inc"
    return best;
}

enum n8_isa n8_cpu_level(const char *wanted) {
#define N8_LEVEL(name, number, march, check)                                                       \
    if (strcmp(wanted, #name) == 0) {                                                              \
        return number;                                                                             \
    }
#include "levels.inc"
    return N8_ISA_AUTO;
}

// The number in a file of /sys/devices/system/cpu, "0x..." or of bytes as in "512K"; 0: none.
static uint64_t number_in(const char *name) {
#ifndef __linux__
    (void)name;
    return 0;
#else
    char text[80];
    snprintf(text, sizeof text, "/sys/devices/system/cpu/%s", name);
    FILE *file = fopen(text, "re");
    if (file == NULL) {
        return 0;
    }
    const bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    char *end = text;
    const uint64_t number = read ? strtoull(text, &end, 0) : 0;
    return *end == 'K' ? number << 10 : number;
#endif
}

// A second-level cache, in bytes: what is likely, and what is believed.
enum { LIKELY_CACHE = 512 << 10, LEAST_CACHE = 128 << 10, MOST_CACHE = 2 << 20 };

size_t n8_cpu_cache(void) {
    const uint64_t size = number_in("cpu0/cache/index2/size");
    return size == 0            ? LIKELY_CACHE
           : size < LEAST_CACHE ? LEAST_CACHE
           : size > MOST_CACHE  ? MOST_CACHE
                                : (size_t)size;
}

#if defined(__aarch64__)

// The kernel answers for MIDR_EL1 where this bit of AT_HWCAP is set.
#define HWCAP_CPUID_BIT (1UL << 11)

enum { MAX_CORES = 1024 };

// The kind of a core with this value of MIDR_EL1.
static enum n8_core core_of(uint64_t midr) {
    static const uint16_t in_order[] = {
        0xd02, // Cortex-A34
        0xd03, // A53
        0xd04, // A35
        0xd05, // A55
        0xd46, // A510
        0xd80, // A520
    };
    if (midr >> 24 != 0x41) { // the implementer: Arm's part numbers follow
        return N8_CORE_OUT_OF_ORDER;
    }
    for (size_t i = 0; i < sizeof in_order / sizeof in_order[0]; i++) {
        if ((midr >> 4 & 0xfff) == in_order[i]) {
            return N8_CORE_IN_ORDER;
        }
    }
    return N8_CORE_OUT_OF_ORDER;
}

// 0: there is no such core, or Linux does not tell.
static uint64_t midr_of(int number) {
    char name[48];
    snprintf(name, sizeof name, "cpu%d/regs/identification/midr_el1", number);
    return number_in(name);
}

static enum n8_core find_core(void) {
    enum n8_core core = N8_CORE_ANY;
    uint64_t midr;
    for (int i = 0; i < MAX_CORES && (midr = midr_of(i)) != 0; i++) {
        core = core_of(midr);
        if (core == N8_CORE_OUT_OF_ORDER) {
            return core;
        }
    }
    if (core == N8_CORE_ANY && (getauxval(AT_HWCAP) & HWCAP_CPUID_BIT) != 0) {
        __asm__("mrs %0, midr_el1" : "=r"(midr));
        core = core_of(midr);
    }
    return core;
}

enum n8_core n8_cpu_core(void) {
    static _Atomic int known; // 1 + the answer: a file of each core is read for it
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        answer = 1 + (int)find_core();
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return (enum n8_core)(answer - 1);
}

#else

enum n8_core n8_cpu_core(void) {
    return N8_CORE_ANY;
}

#endif
