// SPDX-License-Identifier: Apache-2.0
//
// Times of the parts of a run: its inputs are copied in, its steps, its outputs are copied out.
#include "runner.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UPS = 2, LEAST_RUNS = 3, COUNTED_RUNS = 5, MOST_CPUS = 1024, MOST_TIMES = 1 << 24 };

static uint64_t nanoseconds(void *context) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// A clock of n8_session_options that reads the counters, too.
struct counting {
    struct n8_counters counters;
    uint64_t (*values)[N8_COUNTERS]; // at each time that it is asked
    size_t next;
};

static uint64_t count(void *context) {
    struct counting *counting = context;
    for (size_t i = 0; i < N8_COUNTERS; i++) {
        counting->values[counting->next][i] = n8_read_counter(counting->counters.files[i]);
    }
    counting->next++;
    return 0;
}

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// [minimum, median, 95th percentile] in ns, each one of the times.
static void print_times(uint64_t *times, size_t count) {
    qsort(times, count, sizeof *times, compare);
    printf("[%llu, %llu, %llu]", (unsigned long long)times[0],
           (unsigned long long)times[(count - 1) / 2],
           (unsigned long long)times[(count * 95 + 99) / 100 - 1]);
}

static void print_counts(struct n8_network *network, size_t parts) {
    struct counting counting = {.counters = n8_open_counters()};
    if (counting.counters.why != NULL) {
        printf(", \"counters\": ");
        n8_print_text(counting.counters.why);
        return;
    }
    counting.values = n8_room(parts + 1, sizeof *counting.values);
    uint64_t (*sums)[N8_COUNTERS] = n8_room(parts, sizeof *sums);
    network->clock = count;
    network->clock_context = &counting;
    n8_create_session(network); // its threads are counted
    n8_run_network(network);
    for (size_t run = 0; run < COUNTED_RUNS; run++) {
        counting.next = 0;
        n8_run_network(network);
        for (size_t part = 0; part < parts; part++) {
            for (size_t i = 0; i < N8_COUNTERS; i++) {
                sums[part][i] += counting.values[part + 1][i] - counting.values[part][i];
            }
        }
    }
    printf(", \"counters\": {");
    for (size_t i = 0, seen = 0; i < N8_COUNTERS; i++) {
        if (counting.counters.files[i] >= 0) {
            printf("%s\"%s\": [", seen++ == 0 ? "" : ", ", n8_counter_names[i]);
            for (size_t part = 0; part < parts; part++) {
                printf("%s%.1f", part == 0 ? "" : ", ",
                       (double)sums[part][i] / (double)COUNTED_RUNS);
            }
            printf("]");
        }
    }
    printf("}");
}

// Which processors a list like 0,2-3 names; it was read before.
static size_t expand(const char *list, int *cpus) {
    size_t count = 0;
    while (list != NULL && *list != '\0') {
        char *end;
        const long first = strtol(list, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last && count < MOST_CPUS; cpu++) {
            cpus[count++] = (int)cpu;
        }
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

void n8_bench(struct n8_network *network, FILE *in) {
    const struct n8_runner_options *options = network->options;
    if (n8_begin_batch(in) != 1) {
        n8_fail("bench takes one sample");
    }
    const size_t parts = network->steps + 2;
    const size_t most = MOST_TIMES / (parts + 1);
    const size_t limit = options->runs < LEAST_RUNS ? LEAST_RUNS : options->runs;
    const size_t room = limit < most ? limit : most;
    uint64_t *times = n8_room(room, (parts + 1) * sizeof *times); // part by part, the sum last
    uint8_t *evicted = n8_room(options->evict, 1);
    int cpus[MOST_CPUS];
    const size_t cpu_count = expand(options->cpus, cpus);
    network->clock = nanoseconds;
    n8_read_sample(network, in);
    for (size_t run = 0; run < WARM_UPS; run++) {
        n8_run_network(network);
    }
    printf("{\"before\": {");
    n8_print_state(cpus, cpu_count);
    const uint64_t begin = nanoseconds(NULL);
    size_t runs = 0;
    while (runs < room &&
           (runs < LEAST_RUNS || (double)(nanoseconds(NULL) - begin) < 1e9 * options->seconds)) {
        for (size_t i = 0; i < options->evict; i += 16) {
            evicted[i]++;
        }
        n8_run_network(network);
        const uint64_t *stamps = n8_session_profile(network->session);
        for (size_t part = 0; part < parts; part++) {
            times[part * room + runs] = stamps[part + 1] - stamps[part];
        }
        times[parts * room + runs] = stamps[parts] - stamps[0];
        runs++;
    }
    printf("}, \"after\": {");
    n8_print_state(cpus, cpu_count);
    printf("}, \"runs\": %zu, \"total\": ", runs);
    print_times(times + parts * room, runs);
    printf(", \"parts\": [");
    for (size_t part = 0; part < parts; part++) {
        printf("%s", part == 0 ? "" : ", ");
        print_times(times + part * room, runs);
    }
    printf("], \"kernels\": [");
    for (size_t step = 0; step < network->steps; step++) {
        struct n8_step_info info;
        n8_model_step(network->model, step, &info);
        printf("%s", step == 0 ? "" : ", ");
        n8_print_text(info.kernel);
    }
    printf("]");
    if (options->counters) {
        print_counts(network, parts);
    }
    printf("}\n");
}
