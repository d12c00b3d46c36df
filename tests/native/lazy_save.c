// SPDX-License-Identifier: Apache-2.0
//
// A caller whose ZA is dormant finds it in its buffer after a kernel of level sme, and ZA off, as
// the procedure call standard for AArch64 asks of functions with a private-ZA interface.
#include "cpu/cpu.h"
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__aarch64__) && !defined(N8_NO_SME)

// What TPIDR2_EL0 points to.
struct block {
    uint8_t *buffer;
    uint16_t slices;
    uint8_t reserved[6];
};

static void call_kernel(int32_t sums[2][2]) {
    _Alignas(16) static const int8_t image[8] = {1, 0, 0, 0, 3}, weights[8] = {1, 0, 0, 0, 2};
    _Alignas(16) static const int32_t bias[4] = {5, -7};
    _Alignas(16) int8_t packed[64];
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
}

// Turns ZA on and loads all its vectors.
static void fill_za(const uint8_t *from, size_t length) {
    __asm__ volatile(".arch armv8-a+sme\n"
                     "smstart za\n"
                     "mov w12, #0\n"
                     "1: ldr za[w12, 0], [%0]\n"
                     "add %0, %0, %1\n"
                     "add w12, w12, #1\n"
                     "cmp x12, %1\n"
                     "b.lo 1b\n"
                     : "+r"(from)
                     : "r"(length)
                     : "x12", "cc", "memory");
}

static uint64_t svcr(void) {
    uint64_t value;
    __asm__ volatile(".arch armv8-a+sme\nmrs %0, svcr" : "=r"(value));
    return value;
}

static const struct block *pending(void) {
    const struct block *block;
    __asm__ volatile(".arch armv8-a+sme\nmrs %0, tpidr2_el0" : "=r"(block));
    return block;
}

// Calls with a block of so many vectors, or without a buffer; what is wrong afterwards.
static const char *check(size_t length, uint16_t slices, bool saves) {
    uint8_t *za = malloc(length * length), *buffer = malloc(length * length);
    if (za == NULL || buffer == NULL)
        abort();
    for (size_t i = 0; i < length * length; i++)
        za[i] = (uint8_t)(i * 37 + i / 251);
    memset(buffer, 0xa5, length * length);
    const struct block block = {.buffer = saves ? buffer : NULL, .slices = slices};
    int32_t sums[2][2];
    fill_za(za, length);
    __asm__ volatile(".arch armv8-a+sme\nmsr tpidr2_el0, %0" : : "r"(&block) : "memory");
    call_kernel(sums);
    const char *wrong = NULL;
    if (svcr() != 0 || pending() != NULL)
        wrong = "ZA is not off";
    const size_t saved = saves ? slices * length : 0;
    if (memcmp(buffer, za, saved) != 0)
        wrong = "ZA is not saved";
    for (size_t i = saved; i < length * length; i++)
        wrong = buffer[i] != 0xa5 ? "written beyond the vectors asked for" : wrong;
    if (sums[0][0] != 6 || sums[0][1] != -5 || sums[1][0] != 8 || sums[1][1] != -1)
        wrong = "the sums";
    free(za);
    free(buffer);
    return wrong;
}

int main(void) {
    if (!n8_cpu_has(N8_ISA_SME)) {
        printf("lazy_save: this processor has no sme: nothing is checked\n");
        return 0;
    }
    size_t length;
    __asm__(".arch armv8-a+sme\nrdsvl %0, #1" : "=r"(length));
    const char *all[] = {check(length, (uint16_t)length, true), check(length, 3, true),
                         check(length, 0, true), check(length, (uint16_t)length, false)};
    int failures = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i] != NULL)
            printf("lazy_save: case %zu: %s\n", i, all[i]);
        failures += all[i] != NULL;
    }
    printf("lazy_save: vectors of %zu bits, %d failures\n", length * 8, failures);
    return failures != 0;
}

#else

int main(void) {
    printf("lazy_save: this build has no level sme: nothing is checked\n");
    return 0;
}

#endif
