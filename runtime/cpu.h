// SPDX-License-Identifier: Apache-2.0
#ifndef N8_CPU_H
#define N8_CPU_H

#include "include/neon8.h"

#include <stdbool.h>

// True if kernels of this level run on this processor.
bool n8_cpu_has(enum n8_isa isa);

#endif // N8_CPU_H
