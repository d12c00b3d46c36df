// SPDX-License-Identifier: Apache-2.0
//
// Throws damaged model files at the reader. Built with ASan and UBSan, so that a read outside
// the file or an undefined operation ends the program.
//
//   fuzz_reader [--seed N] [--rounds N] [--every N] [--open N] MODEL.n8 ...
//
//   truncate   every length but the whole: must be refused
//   flip       every byte changed, checksum left alone: must be refused
//   repair     every byte changed, checksum made right: any status, but no crash
//   words      every 32-bit word set to an awkward value, checksum right: likewise
//   random     1 to 8 bytes and words at random places, checksum right: likewise
//   open       of files with open dimensions 1 to 3 numbers that are about these, checksum right:
//              likewise, N times
//
// With --every 17, one length, byte and word in 17.
//
// Whatever is accepted is run, unless it is too large to wait for, and where dimensions are open at
// some other shapes, too. No more than MAX_BLOCK bytes can be allocated at a time, and now and then
// none at all.
#include "model/checksum.h"
#include "model/model.h"
#include "neon8.h"
#include "open_damage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ARENA = 1 << 22,
    MAX_WORK = 1 << 22,
    MAX_BLOCK = 1 << 23,
    RESHAPES = 4,
    MAX_INPUTS = 64,
    CHECKED_FROM = offsetof(struct n8_file_header, checksum) + sizeof(uint32_t),
};

static const uint32_t AWKWARD[] = {
    0,          1,          2,          7,          8,          63,         64,         127,
    128,        255,        256,        65535,      65536,      1u << 20,   0x00800000, 0x3f800000,
    0x7f800000, 0x7fc00000, 0xff800000, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffff8, 0xffffffff,
};

struct counts {
    unsigned long refused, accepted, run, reshaped;
};

// What a run may cost.
struct limits {
    uint64_t arena, work;
};

static const struct limits PATIENT = {MAX_ARENA, MAX_WORK};

static uint64_t random_state;

// The linker gives calls of malloc and calloc to the functions below.
static unsigned fail_in; // the allocation that fails: 1 is the next one; 0: none does

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

static bool fails(size_t size) {
    const bool now = fail_in == 1;
    fail_in -= fail_in > 0;
    return now || size > MAX_BLOCK;
}

void *__wrap_malloc(size_t size) {
    return fails(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails(count * size) ? NULL : __real_calloc(count, size);
}

static uint64_t next_random(void) { // xorshift64*
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static void put_u32(uint8_t *at, uint32_t value) {
    memcpy(at, &value, sizeof value);
}

static void repair(uint8_t *bytes, size_t size) {
    put_u32(bytes + offsetof(struct n8_file_header, checksum),
            n8_crc32(bytes + CHECKED_FROM, size - CHECKED_FROM));
}

// What a run would cost, roughly; pools are the only steps whose work is not in `macs`.
static uint64_t work_of(const struct n8_model *model) {
    uint64_t work = model->memory.arena;
    for (size_t s = 0; s < model->facts.step_count; s++) {
        const struct n8_step *step = &model->steps[s];
        const struct n8_tensor *out = &model->tensors[step->row.output];
        const uint64_t taps = 1 + step->scratch_size / sizeof(void *);
        work += step->macs + out->pixels * (taps + (uint64_t)out->dims[1]);
        if (step->row.kind == N8_OP_MAX_POOL || step->row.kind == N8_OP_AVERAGE_POOL) {
            work += (uint64_t)out->pixels * taps * (uint64_t)out->dims[1];
        }
    }
    return work;
}

static void *buffer_for(const struct n8_model *model, enum n8_io which, size_t index) {
    struct n8_tensor_info info;
    if (n8_model_io(model, which, index, &info) != N8_OK) {
        abort();
    }
    // Aligned to nothing, and so that it ends exactly where ASan sees one byte too many.
    uint8_t *block = malloc(info.size + 1);
    if (block == NULL) {
        abort();
    }
    for (size_t i = 1; i <= info.size; i++) {
        block[i] = (uint8_t)next_random();
    }
    return block + 1;
}

static void run(const struct n8_model *model) {
    struct n8_session *session = NULL;
    if (n8_session_create(model, NULL, &session) != N8_OK) {
        return;
    }
    const size_t count = model->facts.input_count + model->facts.output_count;
    void **buffers = malloc(count * sizeof *buffers);
    if (buffers == NULL) {
        abort();
    }
    for (size_t i = 0; i < model->facts.input_count; i++) {
        buffers[i] = buffer_for(model, N8_INPUT, i);
    }
    for (size_t i = 0; i < model->facts.output_count; i++) {
        buffers[model->facts.input_count + i] = buffer_for(model, N8_OUTPUT, i);
    }
    const enum n8_status status =
        n8_session_run(session, (const void *const *)buffers, buffers + model->facts.input_count);
    if (status != N8_OK) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        free((uint8_t *)buffers[i] - 1);
    }
    free(buffers);
    n8_session_destroy(session);
}

static void expect(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "fuzz_reader: %s\n", what);
        exit(1);
    }
}

// A refusal says why, and names a string inside the file or nothing.
static void check_error(const struct n8_model_error *error, const uint8_t *bytes, size_t size) {
    expect(error->reason != NULL && strlen(error->reason) > 10, "a refusal without a reason");
    if (error->name != NULL) {
        const uint8_t *name = (const uint8_t *)error->name;
        expect(name >= bytes && name < bytes + size, "a name outside the file");
        expect(memchr(name, 0, (size_t)(bytes + size - name)) != NULL, "a name without an end");
    }
}

static bool within(const struct n8_model *model, const struct limits *limits) {
    return model->memory.arena <= limits->arena && work_of(model) <= limits->work;
}

// A size within the bounds of a dimension, mostly a small one, or now and then one that is not.
static int32_t any_size(const struct n8_dimension *bounds) {
    const int64_t count = ((int64_t)bounds->hi - bounds->lo) / bounds->step + 1;
    const int64_t most = next_random() % 4 == 0 ? count : count < 8 ? count : 8;
    const int64_t at = (int64_t)(next_random() % (uint64_t)most);
    return (int32_t)(bounds->lo + at * bounds->step) + (next_random() % 64 == 0);
}

static void choose_shapes(const struct n8_model *model, int32_t shapes[MAX_INPUTS][8]) {
    for (size_t i = 0; i < model->facts.input_count; i++) {
        struct n8_dimension bounds;
        for (size_t axis = 0; n8_model_bounds(model, i, axis, &bounds) == N8_OK; axis++) {
            shapes[i][axis] = bounds.same == 8 * i + axis
                                  ? any_size(&bounds)
                                  : shapes[bounds.same / 8][bounds.same % 8];
        }
    }
}

static void reshape(const struct n8_model *model, const struct limits *limits,
                    struct counts *counts) {
    int32_t shapes[MAX_INPUTS][8] = {{0}};
    choose_shapes(model, shapes);
    struct n8_model *other = NULL;
    struct n8_model_error error;
    fail_in = next_random() % 16 == 0 ? 1 + (unsigned)(next_random() % 8) : 0;
    const enum n8_status status =
        n8_model_reshape(model, (const int32_t (*)[8])shapes, &other, &error);
    fail_in = 0;
    expect((status == N8_OK) == (other != NULL), "a status that does not fit its result");
    expect(status == N8_OK || strlen(error.reason) > 10, "a refusal without a reason");
    if (other != NULL) {
        counts->reshaped++;
        if (within(other, limits)) {
            run(other);
        }
        n8_model_close(other);
    }
}

// Opens a copy that ends where ASan's red zone begins, at the usual shapes if `shapes` is NULL.
static enum n8_status try_shapes(const uint8_t *bytes, size_t size, const int32_t (*shapes)[8],
                                 const struct limits *limits, struct counts *counts) {
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, bytes, size);
    struct n8_model *model = NULL;
    struct n8_model_error error;
    struct n8_memory memory;
    const struct n8_model_options options = {.shapes = shapes};
    const enum n8_status measured = n8_model_measure(copy, size, &options, &memory, &error);
    if (measured != N8_OK) {
        check_error(&error, copy, size);
    }
    const enum n8_status status = n8_model_open(copy, size, &options, &model, &error);
    if (status != N8_OK) {
        check_error(&error, copy, size);
    }
    free(copy);
    expect((status == N8_OK) == (model != NULL), "a status that does not fit its result");
    expect(measured == N8_OK || measured == status, "measured and opened differ");
    if (status != N8_OK) {
        counts->refused++;
        return status;
    }
    expect(memcmp(&memory, &model->memory, sizeof memory) == 0, "memory was not foreseen");
    expect(memory.arena >= memory.arena_least, "an arena below the least");
    counts->accepted++;
    if (within(model, limits)) {
        counts->run++;
        run(model);
    }
    for (int i = 0; model->origin != NULL && model->facts.input_count <= MAX_INPUTS && i < RESHAPES;
         i++) {
        reshape(model, limits, counts);
    }
    n8_model_close(model);
    return status;
}

static enum n8_status try_open(const uint8_t *bytes, size_t size, struct counts *counts) {
    return try_shapes(bytes, size, NULL, &PATIENT, counts);
}

static void must_refuse(const uint8_t *bytes, size_t size, struct counts *counts, const char *what,
                        size_t at) {
    if (try_open(bytes, size, counts) == N8_OK) {
        fprintf(stderr, "fuzz_reader: accepted a model %s at byte %zu\n", what, at);
        exit(1);
    }
}

static void damage_each_byte(uint8_t *bytes, size_t size, size_t every, struct counts *counts) {
    static const uint8_t changes[] = {0x01, 0x80, 0xff};
    for (size_t i = 0; i < size; i += every) {
        const uint8_t before = bytes[i];
        uint32_t checksum;
        memcpy(&checksum, bytes + offsetof(struct n8_file_header, checksum), sizeof checksum);
        for (size_t c = 0; c < sizeof changes; c++) {
            bytes[i] = (uint8_t)(before ^ changes[c]);
            must_refuse(bytes, size, counts, "changed", i);
            repair(bytes, size);
            try_open(bytes, size, counts);
            put_u32(bytes + offsetof(struct n8_file_header, checksum), checksum);
            bytes[i] = before;
        }
    }
}

static void damage_each_word(uint8_t *bytes, size_t size, size_t every, struct counts *counts) {
    const size_t step = every * sizeof(uint32_t);
    struct n8_file_header header;
    memcpy(&header, bytes, sizeof header);
    for (size_t i = CHECKED_FROM; i + sizeof(uint32_t) <= header.data; i += step) {
        uint32_t before;
        memcpy(&before, bytes + i, sizeof before);
        for (size_t v = 0; v < sizeof AWKWARD / sizeof AWKWARD[0]; v++) {
            put_u32(bytes + i, AWKWARD[v]);
            repair(bytes, size);
            try_open(bytes, size, counts);
        }
        put_u32(bytes + i, before);
    }
    repair(bytes, size);
}

static void damage_at_random(const uint8_t *bytes, size_t size, unsigned long rounds,
                             struct counts *counts) {
    uint8_t *copy = malloc(size);
    if (copy == NULL) {
        abort();
    }
    for (unsigned long round = 0; round < rounds; round++) {
        memcpy(copy, bytes, size);
        for (uint64_t n = next_random() % 8 + 1; n > 0; n--) {
            const size_t at = CHECKED_FROM + (size_t)next_random() % (size - CHECKED_FROM - 3);
            if (next_random() % 2 == 0) {
                copy[at] = (uint8_t)next_random();
            } else {
                const size_t which = (size_t)next_random() % (sizeof AWKWARD / sizeof AWKWARD[0]);
                put_u32(copy + at / 4 * 4, AWKWARD[which]);
            }
        }
        repair(copy, size);
        try_open(copy, size, counts);
    }
    free(copy);
}

// Every second file is opened at some shapes of the one that was not damaged.
static void damage_what_is_open(const uint8_t *bytes, size_t size, unsigned long rounds,
                                struct counts *counts) {
    static const struct limits HASTY = {1 << 17, 1 << 17};
    struct n8_model *model = NULL;
    expect(n8_model_open(bytes, size, NULL, &model, NULL) == N8_OK, "cannot open the model");
    uint8_t *copy = malloc(size);
    if (copy == NULL) {
        abort();
    }
    for (unsigned long round = 0; model->origin != NULL && round < rounds; round++) {
        int32_t shapes[MAX_INPUTS][8] = {{0}};
        memcpy(copy, bytes, size);
        damage_open(copy, next_random);
        repair(copy, size);
        choose_shapes(model, shapes);
        const bool usual = round % 2 == 0;
        try_shapes(copy, size, usual ? NULL : (const int32_t (*)[8])shapes, &HASTY, counts);
        if ((round + 1) % 100000 == 0) {
            printf("%lu damaged numbers about open dimensions\n", round + 1);
            fflush(stdout);
        }
    }
    free(copy);
    n8_model_close(model);
}

static uint8_t *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "fuzz_reader: cannot read %s\n", path);
        exit(2);
    }
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size);
    if (bytes == NULL || fread(bytes, 1, *size, file) != *size) {
        fprintf(stderr, "fuzz_reader: cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    return bytes;
}

static void fuzz(const char *path, size_t every, unsigned long rounds, unsigned long open) {
    size_t size = 0;
    uint8_t *bytes = read_file(path, &size);
    struct counts counts = {0};
    if (try_open(bytes, size, &counts) != N8_OK || counts.run != 1) {
        fprintf(stderr, "fuzz_reader: %s is no valid small model\n", path);
        exit(1);
    }
    for (size_t length = 0; length < size; length += every) {
        must_refuse(bytes, length, &counts, "truncated", length);
    }
    damage_each_byte(bytes, size, every, &counts);
    damage_each_word(bytes, size, every, &counts);
    damage_at_random(bytes, size, rounds, &counts);
    damage_what_is_open(bytes, size, open, &counts);
    printf("%s: %lu refused, %lu accepted, %lu of them run, %lu other shapes\n", path,
           counts.refused, counts.accepted, counts.run, counts.reshaped);
    free(bytes);
}

int main(int argc, char **argv) {
    unsigned long rounds = 20000, every = 1, open = 20000;
    uint64_t seed = 1;
    int first = 1;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--seed") == 0) {
            seed = strtoull(argv[first + 1], NULL, 0);
        } else if (strcmp(argv[first], "--rounds") == 0) {
            rounds = strtoul(argv[first + 1], NULL, 0);
        } else if (strcmp(argv[first], "--every") == 0) {
            every = strtoul(argv[first + 1], NULL, 0);
        } else if (strcmp(argv[first], "--open") == 0) {
            open = strtoul(argv[first + 1], NULL, 0);
        } else {
            fprintf(stderr, "fuzz_reader: unknown option %s\n", argv[first]);
            return 2;
        }
    }
    if (first >= argc || every == 0) {
        fprintf(stderr, "usage: fuzz_reader [--seed N] [--rounds N] [--every N] [--open N] "
                        "MODEL.n8 ...\n");
        return 2;
    }
    printf("seed %" PRIu64 "\n", seed);
    for (int i = first; i < argc; i++) {
        random_state = seed * 2 + 1;
        fuzz(argv[i], every, rounds, open);
    }
    return 0;
}
