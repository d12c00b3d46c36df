// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200112L // posix_memalign: aligned_alloc is missing on older Android

#include "memory.h"

#include "model.h"

#include <stdlib.h>
#include <string.h>

void *n8_allocate(size_t size) {
    void *memory = NULL;
    if (size > PTRDIFF_MAX || posix_memalign(&memory, N8_ALIGN, size == 0 ? 1 : size) != 0) {
        return NULL;
    }
    return memset(memory, 0, size);
}
