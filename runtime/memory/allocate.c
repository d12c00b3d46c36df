// SPDX-License-Identifier: Apache-2.0
#include "allocate.h"

#include "model/model.h"

#include <stdlib.h>
#include <string.h>

// calloc, since only it knows which pages are zero already; what it returned is kept in front
// of the aligned block. malloc aligns to two pointers at least, so there is room for one.
void *n8_allocate(size_t size) {
    if (size > PTRDIFF_MAX - N8_ALIGN) {
        return NULL;
    }
    uint8_t *block = calloc(1, size + N8_ALIGN);
    if (block == NULL) {
        return NULL;
    }
    uint8_t *memory = block + (N8_ALIGN - (uintptr_t)block % N8_ALIGN);
    memcpy(memory - sizeof block, &block, sizeof block);
    return memory;
}

void n8_free(void *memory) {
    if (memory != NULL) {
        void *block;
        memcpy(&block, (uint8_t *)memory - sizeof block, sizeof block);
        free(block);
    }
}

static bool fits(const struct n8_memory *memory, size_t threads, uint64_t most) {
    // No sum overflows: there are few arrays, each of which fits size_t or says that it does not.
    const uint64_t shared = memory->tables + memory->packed + memory->arena;
    return shared <= most && memory->scratch <= (most - shared) / threads;
}

enum n8_status n8_check_memory(const struct n8_memory *memory, size_t threads, uint64_t max_bytes) {
    if (!fits(memory, threads, PTRDIFF_MAX)) {
        return N8_E_ADDRESS;
    }
    return fits(memory, threads, max_bytes) ? N8_OK : N8_E_LIMIT;
}
