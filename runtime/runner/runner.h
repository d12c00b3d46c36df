// SPDX-License-Identifier: Apache-2.0
//
// neon8-runner: runs and measures models on a board that has nothing else of neon8. What it reads
// may be damaged on the way, so every length is checked; what is wrong ends it with one line.
#ifndef N8_RUNNER_H
#define N8_RUNNER_H

#include "include/neon8.h"

#include <stdbool.h>
#include <stdio.h>

// Says why on standard error, in one line, and ends with status 2.
_Noreturn void n8_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Memory that is there: n8_fail otherwise. The program ends soon, so nothing is given back.
void *n8_room(size_t count, size_t size);

// A text as JSON has it; what is not printable ASCII becomes '?'.
void n8_print_text(const char *text);

// `{"runner": ...}`: the machine, its cores, caches, clocks and sensors, as the kernel tells.
void n8_print_facts(void);

// `"khz": [...], "celsius": {...}` of the given processors, and of every sensor.
void n8_print_state(const int *cpus, size_t count);

// Whole contents of a file.
void *n8_read_file(const char *path, size_t *size);

struct n8_runner_options {
    const char *model;
    int32_t threads;
    enum n8_isa isa;
    uint64_t max_bytes;
    const char
        *shapes;      // "1,3,224,224,1,1,1,1": 8 dimensions of each input, or NULL: the usual ones
    const char *cpus; // "0,2-3": where it runs, or NULL
    size_t runs;      // of bench: at most so many,
    double seconds;   // and no more that begin after so long
    size_t evict;     // bytes that are read before each run, so that caches are cold; or 0
    bool counters;    // also count cycles, instructions and refills
};

// A sample as it travels: its size, 8 dimensions of each of its arrays, and their values.
struct n8_record {
    uint8_t *bytes;
    size_t size;
    void **arrays; // the values of each
};

// A model, its session at the shapes of the last sample, and that sample.
struct n8_network {
    const struct n8_runner_options *options;
    struct n8_model *base, *model; // the latter at other shapes than the usual ones
    struct n8_session *session;
    size_t inputs, outputs, steps;
    struct n8_record in, out;
    uint64_t (*clock)(void *context); // as of n8_session_options
    void *clock_context;
};

struct n8_network n8_open_network(const struct n8_runner_options *options);

// A batch is, all little-endian: 8 bytes N8_BATCH, the number of samples as uint32, and of
// each sample the number of bytes of its arrays as uint64, 8 dimensions of each input (or output)
// as int32, the values of the arrays, and a CRC-32 of all that.
#define N8_BATCH "N8BATCH1"

// The number of samples.
uint32_t n8_begin_batch(FILE *in);

// Reads the next sample; the session is then one for its shapes.
void n8_read_sample(struct n8_network *network, FILE *in);

// Has the model at other shapes; the session is then not there.
void n8_reshape(struct n8_network *network, const int32_t (*shapes)[8]);

void n8_create_session(struct n8_network *network);
void n8_run_network(struct n8_network *network);

// Each command.
void n8_describe(const struct n8_network *network);
void n8_run_batch(struct n8_network *network, FILE *in, FILE *out);
void n8_bench(struct n8_network *network, FILE *in);

// Events that the kernel counts for this process and threads that it starts from now on.
enum { N8_COUNTERS = 4 };
struct n8_counters {
    int files[N8_COUNTERS]; // -1: this one is not there
    const char *why;        // none is there
};
extern const char *const n8_counter_names[N8_COUNTERS];

struct n8_counters n8_open_counters(void);
uint64_t n8_read_counter(int file);

#endif // N8_RUNNER_H
