// SPDX-License-Identifier: Apache-2.0
//
// cpu.h of a processor that is not there, and threads.h of one thread that tells parts apart.
#include "cpu/cpu.h"
#include "exec/threads.h"
#include "neon8_trace.h"
#include "record.h"

#include <string.h>

static struct {
    enum n8_isa level;
    enum n8_core core;
    size_t cache;
} it = {N8_ISA_C, N8_CORE_ANY, 512 << 10};

int n8_trace_processor(const char *level, int in_order, size_t cache) {
    const enum n8_isa isa = n8_cpu_level(level);
    if (isa == N8_ISA_AUTO) {
        return 0;
    }
    it.level = isa;
    it.core = in_order ? N8_CORE_IN_ORDER : N8_CORE_OUT_OF_ORDER;
    it.cache = cache;
    return 1;
}

bool n8_cpu_has(enum n8_isa isa) {
    return isa <= it.level;
}

bool n8_serves(enum n8_isa level, enum n8_isa isa) {
    return level <= isa && n8_cpu_has(level);
}

enum n8_isa n8_cpu_best(void) {
    return it.level;
}

enum n8_isa n8_cpu_level(const char *wanted) {
#define N8_LEVEL(name, isa, march, check)                                                          \
    if (strcmp(wanted, #name) == 0) {                                                              \
        return isa;                                                                                \
    }
#include "levels.inc"
    return N8_ISA_AUTO;
}

enum n8_core n8_cpu_core(void) {
    return it.core;
}

size_t n8_cpu_cache(void) {
    return it.cache;
}

size_t n8_threads_count(const struct n8_threads *threads) {
    return 1;
}

enum n8_status n8_threads_create(int32_t count, struct n8_threads **out) {
    *out = NULL;
    return N8_E_UNSUPPORTED;
}

void n8_threads_destroy(struct n8_threads *threads) {}

void n8_threads_run(struct n8_threads *threads, size_t units, size_t grain, n8_work_fn *work,
                    void *context) {
    n8_record_part();
    work(context, 0, units, 0);
}
