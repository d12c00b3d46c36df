// SPDX-License-Identifier: Apache-2.0
//
// neon8_trace: the runtime as another processor would run it, without its kernels.
//
// The library is all of runtime/ with the kernel table of that processor, so it plans, chooses and
// packs as the processor does; but its kernels compute nothing and are written down instead. What
// a run gives is therefore meaningless, and how often it called which kernel with which sizes is
// exact. This header comes on top of neon8.h; `cc -E -P -DN8_CDEF` makes of it what cffi reads.
//
// Not for several threads: there is one record.
#ifndef NEON8_TRACE_H
#define NEON8_TRACE_H

#ifdef N8_CDEF
#define N8_TRACE_API
#else
#include <stddef.h>
#include <stdint.h>
#define N8_TRACE_API __attribute__((visibility("default")))
#endif

enum { N8_TRACE_SIZES = 8 };

// Calls of a kernel that have the same sizes.
struct n8_trace_call {
    uint32_t part;                  // of the run: copies of inputs, then steps, then of outputs
    const char *kernel;             // its symbol
    uint32_t sizes[N8_TRACE_SIZES]; // kernels.c says which, for each kind of kernel
    uint64_t count;
};

// The processor for which models that are opened from now on are planned: `level` as N8_ISA names
// it, whether its cores run instructions in order, and the bytes of its second-level cache. Returns
// 0 if there is no such level.
N8_TRACE_API int n8_trace_processor(const char *level, int in_order, size_t cache);

// Forgets all calls; the next run begins with part 0.
N8_TRACE_API void n8_trace_begin(void);

// How many calls there are, and parts; SIZE_MAX: memory ran out.
N8_TRACE_API size_t n8_trace_count(size_t *parts);

// All of them, in the order in which each first occurred; until the next run.
N8_TRACE_API const struct n8_trace_call *n8_trace_calls(void);

#endif // NEON8_TRACE_H
