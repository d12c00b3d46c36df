// SPDX-License-Identifier: Apache-2.0
//
// Threads of one session. Work comes in units that may run in any order; whoever is free
// takes the next ones, so fast and slow cores share a layer by themselves.
#ifndef N8_POOL_H
#define N8_POOL_H

#include <stddef.h>

struct n8_pool;

// Does units [begin, end); `worker` is 0 for the calling thread, else 1 .. threads - 1.
typedef void n8_work_fn(void *context, size_t begin, size_t end, size_t worker);

// Starts threads - 1 workers; NULL if that fails. threads >= 2.
struct n8_pool *n8_pool_create(size_t threads);
void n8_pool_destroy(struct n8_pool *pool);

// Runs `work` over [0, units) and returns when all are done. pool NULL: on this thread.
void n8_pool_run(struct n8_pool *pool, size_t units, n8_work_fn *work, void *context);

#endif // N8_POOL_H
