// SPDX-License-Identifier: Apache-2.0
#include "checkasm.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CAPACITY = 5 << 16 };

static uint8_t *arena;
static size_t page;

// Layout: page, region, page, page, region, page, ...
static uint8_t *region_begin(enum region region) {
    return arena + (size_t)region * (CAPACITY + 2 * page) + page;
}

void guard_init(void) {
    page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = REGION_COUNT * (CAPACITY + 2 * page);
    void *memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("checkasm: mmap");
        exit(1);
    }
    arena = memory;
    for (int i = 0; i < REGION_COUNT; i++) {
        if (mprotect(region_begin((enum region)i), CAPACITY, PROT_READ | PROT_WRITE) != 0) {
            perror("checkasm: mprotect");
            exit(1);
        }
    }
}

void *guard_place(struct rng *rng, enum region region, size_t size) {
    if (size > CAPACITY) {
        fprintf(stderr, "checkasm: a case needs %zu bytes of %d\n", size, CAPACITY);
        exit(1);
    }
    uint8_t *begin = region_begin(region);
    return rng_below(rng, 4) == 0 ? begin : begin + CAPACITY - size;
}

bool guard_contains(const void *address) {
    const uint8_t *byte = address;
    const size_t size = REGION_COUNT * (CAPACITY + 2 * page);
    return byte >= arena && byte < arena + size;
}

const uint8_t *guard_begin(enum region region) {
    return region_begin(region);
}

const uint8_t *guard_end(enum region region) {
    return region_begin(region) + CAPACITY;
}
