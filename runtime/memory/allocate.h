// SPDX-License-Identifier: Apache-2.0
#ifndef N8_ALLOCATE_H
#define N8_ALLOCATE_H

#include "include/neon8.h"

#include <stddef.h>

// Zeroed memory aligned to N8_ALIGN, or NULL. Large blocks come as untouched pages: what a
// hostile file asks for costs nothing until it is used. Freed by n8_free.
void *n8_allocate(size_t size);

// NULL is allowed.
void n8_free(void *memory);

// Whether a model and a session of `threads` threads may be allocated: N8_OK, N8_E_ADDRESS, or
// N8_E_LIMIT.
enum n8_status n8_check_memory(const struct n8_memory *memory, size_t threads, uint64_t max_bytes);

#endif // N8_ALLOCATE_H
