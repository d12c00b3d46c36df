// SPDX-License-Identifier: Apache-2.0
#ifndef N8_MEMORY_H
#define N8_MEMORY_H

#include <stddef.h>

// Zeroed memory aligned to N8_ALIGN, or NULL. Large blocks come as untouched pages: what a
// hostile file asks for costs nothing until it is used. Freed by n8_free.
void *n8_allocate(size_t size);

// NULL is allowed.
void n8_free(void *memory);

#endif // N8_MEMORY_H
