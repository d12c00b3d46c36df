// SPDX-License-Identifier: Apache-2.0
#ifndef N8_MEMORY_H
#define N8_MEMORY_H

#include <stddef.h>

// Zeroed memory aligned to N8_ALIGN, or NULL. Freed by free().
void *n8_allocate(size_t size);

#endif // N8_MEMORY_H
