// SPDX-License-Identifier: Apache-2.0
//
// Threads of one session or of several. Work comes in units that may run in any order; whoever
// is free takes the next ones, so fast and slow cores share a layer by themselves.
#ifndef N8_THREADS_H
#define N8_THREADS_H

#include "include/neon8.h"

enum { N8_MAX_THREADS = 64 };

// Does units [begin, end); `worker` is 0 for the thread that runs the session, else one of the
// pool's, 1 .. count - 1.
typedef void n8_work_fn(void *context, size_t begin, size_t end, size_t worker);

// Threads of a run, the calling one among them.
size_t n8_threads_count(const struct n8_threads *threads);

// Runs `work` over [0, units) and returns when all are done. Nobody takes fewer than `grain`
// units, >= 1, at once but the last ones. On this thread alone if there are not more, and if
// `threads` is NULL or belongs to the process that this one was forked from. Several threads
// may call this at once; the workers help first who called first.
void n8_threads_run(struct n8_threads *threads, size_t units, size_t grain, n8_work_fn *work,
                    void *context);

#endif // N8_THREADS_H
