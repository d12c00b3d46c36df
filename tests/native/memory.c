// SPDX-License-Identifier: Apache-2.0
//
// What n8_model_measure says beforehand and n8_model_memory afterwards, against what is taken: the
// linker gives every call of malloc, calloc and free here and in the library to the functions
// below, which count.
//
//   memory MODEL.n8
#define TEST "memory"
#include "model_file.h"

#include <stdatomic.h>

enum {
    HEADER = 16,           // bytes before each block, which hold its size
    BESIDE_MODEL = 128,    // what may come on top of the figures, in bytes
    BESIDE_SESSION = 2048, // as neon8.h says
};

// Atomic for the threads, and for the compiler, which takes free for a function that changes
// nothing here.
static atomic_size_t live; // bytes that were asked for and not freed
static atomic_size_t calls;

void *__real_calloc(size_t count, size_t size);
void __real_free(void *block);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void __wrap_free(void *block);

void *__wrap_calloc(size_t count, size_t size) {
    if (count != 0 && size > (SIZE_MAX - HEADER) / count) {
        return NULL;
    }
    const size_t bytes = count * size;
    uint8_t *block = __real_calloc(1, bytes + HEADER);
    if (block == NULL) {
        return NULL;
    }
    memcpy(block, &bytes, sizeof bytes);
    live += bytes;
    calls++;
    return block + HEADER;
}

void *__wrap_malloc(size_t size) {
    return __wrap_calloc(1, size);
}

void __wrap_free(void *block) {
    if (block != NULL) {
        size_t bytes;
        memcpy(&bytes, (uint8_t *)block - HEADER, sizeof bytes);
        live -= bytes;
        __real_free((uint8_t *)block - HEADER);
    }
}

// What was taken since `before` must be `said`, and hardly more.
static void demand_taken(size_t before, uint64_t said, uint64_t beside, const char *what) {
    const uint64_t taken = live - before;
    if (taken < said || taken > said + beside) {
        fprintf(stderr, "memory: %s takes %llu bytes, %llu were said\n", what,
                (unsigned long long)taken, (unsigned long long)said);
        exit(1);
    }
}

// A run takes nothing at all, so that nothing can fail in it.
static void check_run(const struct n8_model *model, struct n8_session *session) {
    struct ends ends = make_ends(model);
    const size_t before = calls;
    run_once(session, &ends);
    demand(calls == before, "a run allocates");
    free_ends(&ends);
}

static void check_session(const struct n8_model *model, const struct n8_memory *memory,
                          int32_t threads) {
    const size_t before = live;
    const struct n8_session_options options = {.threads = threads};
    struct n8_session *session;
    demand(n8_session_create(model, &options, &session) == N8_OK, "a session");
    demand_taken(before, memory->arena + memory->scratch * (uint64_t)threads, BESIDE_SESSION,
                 "a session");
    check_run(model, session);
    n8_session_destroy(session);
    demand(live == before, "a session keeps memory");
}

int main(int argc, char **argv) {
    static const int32_t threads[] = {1, 2, 5, 64};
    demand(argc == 2, "give the path of a model");
    size_t size;
    void *bytes = read_file(argv[1], &size);
    const size_t start = live;
    struct n8_memory said, memory;
    demand(n8_model_measure(bytes, size, NULL, &said, NULL) == N8_OK, "the figures");
    demand(live == start && calls > 1, "measuring keeps memory");

    struct n8_model *model;
    demand(n8_model_open(bytes, size, NULL, &model, NULL) == N8_OK, "the model");
    demand_taken(start, said.tables + said.packed, BESIDE_MODEL, "the model");
    demand(n8_model_memory(model, &memory) == N8_OK, "the figures of the model");
    demand(memcmp(&memory, &said, sizeof memory) == 0, "the figures differ once it is open");
    demand(memory.packed > 0 && memory.arena > 0 && memory.scratch > 0, "a figure is 0");
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        check_session(model, &memory, threads[i]);
    }
    n8_model_close(model);
    demand(live == start, "the model keeps memory");
    free(bytes);
    demand(live == 0, "memory is lost");
    printf("memory: as was said, with 1 to 64 threads\n");
    return 0;
}
