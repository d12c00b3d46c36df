// SPDX-License-Identifier: Apache-2.0
//
// Threads of one session. Work comes in units that may run in any order; whoever is free
// takes the next ones, so fast and slow cores share a layer by themselves.
#ifndef N8_THREADS_H
#define N8_THREADS_H

#include <stddef.h>

struct n8_threads;

// Does units [begin, end); `worker` is 0 for the calling thread, else 1 .. count - 1.
typedef void n8_work_fn(void *context, size_t begin, size_t end, size_t worker);

// Starts count - 1 workers; NULL if that fails. count >= 2.
struct n8_threads *n8_threads_create(size_t count);
void n8_threads_destroy(struct n8_threads *threads);

// Runs `work` over [0, units) and returns when all are done. Nobody takes fewer than `grain`
// units, >= 1, at once but the last ones. On this thread alone if there are not more, and if
// `threads` is NULL or belongs to the process that this one was forked from.
void n8_threads_run(struct n8_threads *threads, size_t units, size_t grain, n8_work_fn *work,
                    void *context);

#endif // N8_THREADS_H
