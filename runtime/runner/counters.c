// SPDX-License-Identifier: Apache-2.0
#include "runner.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const n8_counter_names[N8_COUNTERS] = {"cycles", "instructions", "l1_refills",
                                                   "l2_refills"};

// L1 and L2 as the kernel's generic names have them; ARM numbers its own L2 refill 0x17.
static const struct {
    uint32_t type;
    uint64_t config;
} events[N8_COUNTERS] = {
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
                             PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
#if defined(__arm__) || defined(__aarch64__)
    {PERF_TYPE_RAW, 0x17},
#else
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
#endif
};

struct n8_counters n8_open_counters(void) {
    struct n8_counters counters = {.why = NULL};
    int there = 0;
    for (int i = 0; i < N8_COUNTERS; i++) {
        struct perf_event_attr event = {
            .type = events[i].type,
            .size = sizeof event,
            .config = events[i].config,
            .inherit = 1, // threads that are made later
            .exclude_kernel = 1,
            .exclude_hv = 1,
        };
        counters.files[i] = (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
        if (counters.files[i] >= 0) {
            there++;
        } else if (i == 0) {
            counters.why = strerror(errno);
        }
    }
    counters.why = there > 0 ? NULL : counters.why;
    return counters;
}

uint64_t n8_read_counter(int file) {
    uint64_t value = 0;
    return file >= 0 && read(file, &value, sizeof value) == sizeof value ? value : 0;
}
