// SPDX-License-Identifier: Apache-2.0
//
// What this processor can do. The only file that asks it.
#ifndef N8_CPU_H
#define N8_CPU_H

#include "include/neon8.h"

#include <stdbool.h>
#include <stddef.h>

// The levels by the names that kernels.inc uses.
enum n8_level {
#define N8_LEVEL(name, isa, march, check) N8_LEVEL_##name = isa,
#include "levels.inc"
};

// How a core orders its instructions, for kernels that were scheduled for one kind.
enum n8_core {
    N8_CORE_ANY, // not known, or of no matter
    N8_CORE_IN_ORDER,
    N8_CORE_OUT_OF_ORDER,
};

// True if kernels of this level run on this processor.
bool n8_cpu_has(enum n8_isa isa);

// True if kernels of `level` may run where none above `isa` is wanted. Levels are not nested: this
// processor may lack one below another that it has.
bool n8_serves(enum n8_isa level, enum n8_isa isa);

// The highest level that this processor has.
enum n8_isa n8_cpu_best(void);

// The level of that name in lower case; N8_ISA_AUTO if this build has none.
enum n8_isa n8_cpu_level(const char *name);

// In order where all cores of the system are: a fast core does most of the work. Where the system
// tells only of the core that runs the caller, this one's kind; ANY where it tells nothing.
enum n8_core n8_cpu_core(void);

// Bytes of the second-level cache of the first core, which is one of the smallest; what most cores
// have, where the system does not tell.
size_t n8_cpu_cache(void);

#endif // N8_CPU_H
